package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
)

const patience = 60 * time.Second

// script is a model that calls a command, reads a file and ends.
const script = `
- text: some words that stream
  reasoning: a thought
  tools: [{name: execute_command, input: {command: "echo one <&>"}}]
- tools: [{name: read_file, input: {path: a.txt}}]
- tools: [{name: attempt_completion, input: {result: "done é"}}]
`

// bench is a store with a task, and a server for it.
type bench struct {
	testing.TB
	dir   string
	store *store.Store
	id    string
	srv   *Server
	opt   testOptions // of srv
	url   string
	token string
	log   *lockedBuffer
	web   *httptest.Server
}

// testOptions are the options of a server and of its service.
type testOptions struct {
	Options
	Store   *store.Store
	Engine  *engine.Engine
	Restart service.Restart

	Database func(context.Context) error
}

// serve makes the server.
func (o testOptions) serve() (*Server, error) {
	home := filepath.Join(filepath.Dir(o.Store.Root()), "home-of-"+filepath.Base(o.Store.Root()))
	file := filepath.Join(home, "config.toml") // without the storages of the machine
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte("sources = \"none\"\n"), 0o600); err != nil {
		return nil, err
	}
	place := config.Place{Dir: home, Env: func(name string) string { return map[string]string{"HOME": home, "ROOST_CONFIG": file}[name] }}
	o.Service = service.New(o.Store, o.Engine, service.Options{Now: o.Now, Log: o.Log, Restart: o.Restart, Place: &place, Database: o.Database})
	return New(o.Options)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newBench(t testing.TB, change ...func(*testOptions)) *bench {
	t.Helper()
	dir := t.TempDir()
	g := &bench{TB: t, dir: dir, log: &lockedBuffer{}}
	if err := os.MkdirAll(filepath.Join(dir, "ws"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ws/a.txt": "words\n", "model.yaml": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.store = fixture.Must[*store.Store](t)(store.Open(store.Options{Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "root.state"), Cache: filepath.Join(dir, "cache"), Program: "test"}))
	g.id = g.run(engine.Request{Text: "paint the fence", Choice: setup.Choice{Workspace: filepath.Join(dir, "ws"), Provider: "script", Model: filepath.Join(dir, "model.yaml"), Approve: "all"}})
	g.token = fixture.Must[string](t)(Token(g.store.Root(), false))
	o := testOptions{Store: g.store}
	o.Options = Options{Token: g.token, Log: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Version: api.Version{Version: "test"}}
	for _, f := range change {
		f(&o)
	}
	g.srv = fixture.Must[*Server](t)(o.serve())
	g.opt = o
	g.web = httptest.NewServer(g.srv.Handler())
	g.url = g.web.URL
	t.Cleanup(func() {
		g.srv.halt() // streams end, so that the web server can
		g.web.Close()
		g.srv.End()
	})
	return g
}

// run starts or continues a task in this process, waits for its end and gives its id.
func (g *bench) run(r engine.Request) string {
	g.Helper()
	e := engine.New(g.store, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	run, err := e.Start(context.Background(), r)
	if err != nil {
		g.Fatal(err)
	}
	o, err := run.Wait(context.Background())
	if err != nil || o.State != "completed" {
		g.Fatal(o, err)
	}
	if err := e.Close(context.Background()); err != nil {
		g.Fatal(err)
	}
	return run.TaskID
}

// ask sends a request; a header without a value is taken away.
func (g *bench) ask(method, path string, headers ...string) *http.Response {
	g.Helper()
	req, err := http.NewRequest(method, g.url+path, nil)
	if err != nil {
		g.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { resp.Body.Close() })
	return resp
}

// logIn follows a log-in link and gives the cookie.
func (g *bench) logIn() *http.Cookie {
	g.Helper()
	resp := g.ask("GET", fixture.Must[string](g)(g.srv.LoginPath(context.Background())), "Authorization: ", "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0")
	if len(resp.Cookies()) != 1 {
		g.Fatalf("the log-in link: got %s and no cookie", resp.Status)
	}
	return resp.Cookies()[0]
}

// get gives the body of an answer that must be 200.
func (g *bench) get(path string, headers ...string) []byte {
	g.Helper()
	resp := g.ask("GET", path, headers...)
	body := fixture.Must[[]byte](g)(io.ReadAll(resp.Body))
	if resp.StatusCode != http.StatusOK {
		g.Fatalf("GET %s: %s\n%s", path, resp.Status, body)
	}
	return body
}

// refused checks that a request is answered with a problem, and gives it.
func (g *bench) refused(status int, code, method, path string, headers ...string) api.Problem {
	g.Helper()
	resp := g.ask(method, path, headers...)
	body := fixture.Must[[]byte](g)(io.ReadAll(resp.Body))
	var p api.Problem
	err := json.Unmarshal(body, &p)
	if resp.StatusCode != status || err != nil || p.Code != code || p.Status != status || resp.Header.Get("Content-Type") != "application/problem+json" {
		g.Errorf("%s %s %q: %s %s, want %d %s\n%s", method, path, headers, resp.Status, resp.Header.Get("Content-Type"), status, code, body)
	}
	return p
}

// frame is one event as a client reads it.
type frame struct{ ID, Type, Data string }

// stream is an open event stream.
type stream struct {
	t    testing.TB
	resp *http.Response
	in   *bufio.Reader
}

func (g *bench) follow(path string, headers ...string) *stream {
	g.Helper()
	resp := g.ask("GET", path, headers...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != streamMedia {
		g.Fatalf("%s: got %s %s, want resp.StatusCode = http.StatusOK and resp.Header.Get(\"Content-Type\") = streamMedia",
			path, resp.Status, resp.Header.Get("Content-Type"))
	}
	return &stream{g, resp, bufio.NewReader(resp.Body)}
}

// next is the next event; ok is false at the end of the stream.
func (s *stream) next() (f frame, ok bool) {
	f, err := readFrame(s.in)
	return f, err == nil
}

// readFrame reads an event as the specification of EventSource says, as far as a server
// may use it; comments and empty events are skipped.
func readFrame(in *bufio.Reader) (f frame, err error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return f, err // an event without its blank line is none
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && f.Data != "":
			f.Data = strings.TrimSuffix(f.Data, "\n")
			return f, nil
		case line == "":
			f = frame{}
		case name == "id":
			f.ID = value
		case name == "event":
			f.Type = value
		case name == "data":
			f.Data += value + "\n"
		}
	}
}

// take reads so many events.
func (s *stream) take(n int) (out []frame) {
	s.t.Helper()
	for len(out) < n {
		f, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended behind %d of %d events", len(out), n)
		}
		out = append(out, f)
	}
	return out
}

// journalOf is what streams must give of a task: read off its log, in one go.
func journalOf(t testing.TB, s *store.Store, id string) (out []frame) {
	t.Helper()
	ref := fixture.Must[store.Ref](t)(s.Find(context.Background(), id))
	err := events.ReadJournal(context.Background(), s, ref, events.Cursor{}, func(e events.Item) error {
		out = append(out, frame{e.ID, e.Type, string(e.Data)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (g *bench) events() []frame { return journalOf(g, g.store, g.id) }

func (g *bench) path(format string, args ...any) string {
	return "/v1/tasks/" + g.id + fmt.Sprintf(format, args...)
}
