package server

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// The rules of rules_test.go, as far as they concern what a run does.

// Nobody says yes by saying nothing: not by going away, not by waiting, not by ending it.
func TestRuleB11SilenceIsNoConsent(t *testing.T) {
	var e *engine.Engine
	g := newBench(t, func(o *testOptions) {
		e = engine.New(o.Store, engine.Options{Config: setup.Config{Keys: map[string]string{}}, Hold: 50 * time.Millisecond})
		o.Engine = e
	})
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	effects := filepath.Join(g.dir, "ws", "effects.txt")
	r := g.started(wantsCommand, "approve=ask")
	s := g.follow("/v1/tasks/" + r.Task + "/events?after=0")
	s.take(3)
	s.resp.Body.Close()
	q := g.question(r.Task)
	for end := time.Now().Add(patience); e.Runs() != nil && len(e.Runs()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the run keeps its task although nobody answers")
		}
	}
	g.state(r.ID, "waiting")
	if again := g.question(r.Task); again.ID != q.ID {
		t.Errorf("question %s became %s", q.ID, again.ID)
	}
	for _, body := range []string{`{}`, `{"text":""}`, `{"text":"maybe"}`, `{"choice":1}`} {
		if resp := g.send("POST", "/v1/questions/"+q.ID+"/answer", body); resp.StatusCode != 422 {
			t.Errorf("%s: got %s, want resp.StatusCode = 422", body, resp.Status)
		}
	}
	g.did(200, nil, "POST", "/v1/tasks/"+r.Task+"/cancel", `{}`)
	if _, err := os.Stat(effects); err == nil {
		t.Error("the command ran although nobody allowed it")
	}
}

// A tool that fails is an event of a run that goes on.
func TestRuleB15AToolsErrorEndsNothing(t *testing.T) {
	g := newWorkingBench(t)
	r := g.started(`
- tools: [{name: read_file, input: {path: missing.txt}}]
- tools: [{name: read_file, input: {path: a.txt}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	s := g.follow("/v1/tasks/" + r.Task + "/events?after=0")
	var ends []string
	for len(ends) == 0 || ends[len(ends)-1] != "run.ended" {
		f := s.take(1)[0]
		var e struct{ Outcome string }
		switch f.Type {
		case "tool.finished", "run.ended":
			if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, e.Outcome)
			if f.Type == "run.ended" {
				ends = append(ends, f.Type)
			}
		}
	}
	if d := cmp.Diff([]string{"error", "ok", "completed", "run.ended"}, ends); d != "" {
		t.Error(d)
	}
}

// What the server says of where things are does not depend on how it was reached.
func TestRuleB17LinksAreRelative(t *testing.T) {
	g := newWorkingBench(t)
	head := g.did(201, nil, "POST", "/v1/tasks", g.task(sayDone, "go"))
	if l := head.Get("Location"); !strings.HasPrefix(l, "/v1/") {
		t.Errorf("Location: %s", l)
	}
	absolute := regexp.MustCompile(`https?://[^"\s]*(127\.0\.0\.1|localhost)[^"\s]*`)
	for _, path := range []string{"/v1/tasks", "/v1/runs", "/v1/sources", "/openapi.json", g.path(""), g.path("/messages"), "/v1/tasks/nothing"} {
		body := fixture.Must[[]byte](t)(io.ReadAll(g.ask("GET", path).Body))
		if found := absolute.Find(body); found != nil {
			t.Errorf("%s names %s", path, found)
		}
	}
}

// What is streamed is added to what was streamed: followers, journal and Roo's file have
// the whole text.
func TestRuleB21DeltasAppend(t *testing.T) {
	g := newWorkingBench(t)
	const text = "one two three four five six seven eight"
	var r made
	g.did(201, &r, "POST", "/v1/tasks", g.task(`
- {delay: 20ms, text: "`+text+`", tools: [{name: attempt_completion, input: {result: done}}]}
`, "go"))
	s := g.follow("/v1/tasks/" + r.Task + "/events?after=0")
	heard := map[float64]string{}
	for {
		f := s.take(1)[0]
		if f.Type == "run.ended" {
			break
		}
		if f.Type != "message.delta" {
			continue
		}
		var d struct {
			Message float64
			Offset  int
			Text    string
		}
		if err := json.Unmarshal([]byte(f.Data), &d); err != nil {
			t.Fatal(err)
		}
		if d.Offset > len(heard[d.Message]) && heard[d.Message] != "" || f.ID != "" {
			t.Errorf("a piece at %d behind %d bytes, id %q", d.Offset, len(heard[d.Message]), f.ID)
		}
		if heard[d.Message] != "" || d.Offset == 0 {
			heard[d.Message] += d.Text
		}
	}
	for message, got := range heard {
		if !strings.HasPrefix(text, got) {
			t.Errorf("message %v was streamed as %q", message, got)
		}
	}
	var page struct{ Items []json.RawMessage }
	g.did(200, &page, "GET", "/v1/tasks/"+r.Task+"/messages", "")
	whole := 0
	for _, item := range page.Items {
		var m struct {
			Say, Text string
			Partial   bool
		}
		if err := json.Unmarshal(item, &m); err != nil {
			t.Fatal(err)
		}
		if m.Partial {
			t.Errorf("left half: %s", item)
		}
		if m.Say == "text" && m.Text == text {
			whole++
		}
	}
	if whole != 1 {
		t.Errorf("the text is there %d times", whole)
	}
}
