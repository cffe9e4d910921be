package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
)

// newWorkingBench is a fixture whose server works on tasks.
func newWorkingBench(t testing.TB, change ...func(*testOptions)) *bench {
	t.Helper()
	var e *engine.Engine
	g := newBench(t, append([]func(*testOptions){func(o *testOptions) {
		e = engine.New(o.Store, engine.Options{Confined: true, Config: setup.Config{Keys: map[string]string{}}})
		o.Engine = e
	}}, change...)...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

// play writes a script for a model and gives its path.
func (g *bench) model(text string) string {
	g.Helper()
	f, err := os.CreateTemp(g.dir, "model-*.yaml")
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		g.Fatal(err)
	}
	return f.Name()
}

const (
	sayDone  = `[{tools: [{name: attempt_completion, input: {result: done}}]}]`
	askWhich = `
- tools: [{name: ask_followup_question, input: {question: "Which?", follow_up: [{text: red}, {text: green}]}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`
	wantsCommand = `
- tools: [{name: execute_command, input: {command: "echo one >> effects.txt"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`
	hangs = `[{delay: 10m, text: a word, tools: [{name: attempt_completion, input: {result: done}}]}]`
)

// send sends a body; a header without a value is taken away.
func (g *bench) send(method, path, body string, headers ...string) *http.Response {
	g.Helper()
	req, err := http.NewRequest(method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", jsonMedia)
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	for _, h := range headers {
		if name, value, _ := strings.Cut(h, ": "); value != "" {
			req.Header.Set(name, value)
		} else {
			req.Header.Del(name)
		}
	}
	resp, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { resp.Body.Close() })
	return resp
}

// did sends a request that must be answered with a status, and gives headers and document.
func (g *bench) did(status int, into any, method, path, body string, headers ...string) http.Header {
	g.Helper()
	resp := g.send(method, path, body, headers...)
	data := fixture.Must[[]byte](g)(io.ReadAll(resp.Body))
	if resp.StatusCode != status {
		g.Fatalf("%s %s %s: %s, want %d\n%s", method, path, body, resp.Status, status, data)
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			g.Fatalf("got %s %s: %v\n%s, want no error", method, path, err, data)
		}
	}
	return resp.Header
}

// denied sends a request that must be answered with a problem.
func (g *bench) denied(status int, code, method, path, body string, headers ...string) (p api.Problem) {
	g.Helper()
	head := g.did(status, &p, method, path, body, headers...)
	if p.Code != code || p.Status != status || head.Get("Content-Type") != "application/problem+json" {
		g.Errorf("%s %s %s: %s %+v, want %s", method, path, body, head.Get("Content-Type"), p, code)
	}
	return p
}

// task is the body that starts a task with a script.
func (g *bench) task(script, message string, more ...string) string {
	body := map[string]any{"workspace": filepath.Join(g.dir, "ws"), "provider": "script", "model": g.model(script), "approve": "all"}
	if message != "" {
		body["message"] = map[string]string{"text": message}
	}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		body[name] = value
	}
	return string(fixture.Must[[]byte](g)(json.Marshal(body)))
}

// started starts a task.
func (g *bench) started(script string, more ...string) api.Run {
	g.Helper()
	var r made
	g.did(201, &r, "POST", "/v1/tasks", g.task(script, "go", more...))
	return api.Run(r)
}

// made is the answer to a new task, read as its run.
type made api.Run

func (m *made) UnmarshalJSON(data []byte) error {
	var s api.Started
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s.ID != s.Task {
		return fmt.Errorf("the task is %q and %q", s.ID, s.Task)
	}
	if s.Run == nil {
		*m = made{Task: s.ID, State: s.Status}
		return nil
	}
	if *m = made(*s.Run); m.ID != s.RunID || m.Task != s.ID {
		return fmt.Errorf("task %s with run %s has run %s of %s", s.ID, s.RunID, m.ID, m.Task)
	}
	return nil
}

// state waits until a run is in a state.
func (g *bench) state(run, want string) (r api.Run) {
	g.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		g.did(200, &r, "GET", "/v1/runs/"+run, "", "Prefer: wait=1")
		if r.State == want {
			return r
		}
		if time.Now().After(end) {
			g.Fatalf("the run is %s (%s), want %s", r.State, r.Reason, want)
		}
	}
}

// question waits for the question of a task.
func (g *bench) question(task string) api.Question {
	g.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var page api.Page[api.Question]
		g.did(200, &page, "GET", "/v1/questions?task="+task, "")
		if len(page.Items) > 0 {
			return page.Items[0]
		}
		if time.Now().After(end) {
			g.Fatal("nothing is asked")
		}
	}
}

// newWorkingBenchOn is a server that works on tasks of another store.
func newWorkingBenchOn(t testing.TB, s *store.Store, like *bench) *bench {
	t.Helper()
	e := engine.New(s, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	g := &bench{TB: t, dir: like.dir, store: s, id: like.id, token: like.token, log: &lockedBuffer{}}
	g.srv = fixture.Must[*Server](t)(New(Options{Service: service.New(s, e, service.Options{}), Token: g.token}))
	g.web = httptest.NewServer(g.srv.Handler())
	g.url = g.web.URL
	t.Cleanup(func() {
		g.srv.halt()
		g.web.Close()
		g.srv.End()
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func problemIn(t testing.TB, resp *http.Response) (p api.Problem) {
	t.Helper()
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		t.Error(err)
	}
	return p
}
