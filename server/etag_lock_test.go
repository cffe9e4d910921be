package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store/labels"

	"github.com/roost-dev/roost/store"
)

// between lets another process's change of the task happen after If-Match was compared, and
// before a route does what it does.
func (g *bench) between(change func()) {
	for i := range g.srv.routes {
		rt := &g.srv.routes[i]
		if do := rt.act; do != nil {
			rt.act = func(s *Server, a *asked) (*reply, error) {
				change()
				return do(s, a)
			}
		}
	}
}

// What If-Match wants is compared with the lock held, on every route that takes the task
// over: another process that comes in between is seen, and nothing is done.
func TestIfMatchIsComparedWithTheLockHeld(t *testing.T) {
	g := newWorkingBench(t)
	other := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: g.store.Root(), State: g.store.Root() + ".state", Cache: filepath.Join(g.dir, "cache-other"), Program: "other"}))
	ref := fixture.Must[store.Ref](t)(other.Find(t.Context(), g.id))
	log := filepath.Join(ref.Log, "journal.jsonl")
	var theirs []byte
	on := false
	g.between(func() {
		if on {
			pinned := !fixture.Must[api.Summary](t)(rowOfTask(other, ref)).Pinned
			if _, err := labels.Set(t.Context(), other, ref, labels.Change{Pinned: &pinned}); err != nil {
				t.Error(err)
			}
			theirs = fixture.Must[[]byte](t)(os.ReadFile(log))
		}
	})
	start := `{"message":{"text":"go"},"provider":"script","model":"` + g.model(sayDone) + `","approve":"all"}`
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/rewinds", `{"to":"#3"}`},
		{"POST", "/undo", `{}`},
		{"POST", "/forks", `{}`},
		{"POST", "/checkpoints", ``},
		{"POST", "/condense", `{"provider":"script","model":"` + g.model(sayDone) + `"}`},
		{"POST", "/runs", start},
		{"POST", "/messages", `{"text":"go"}`},
		{"PATCH", "", `{"title":"never"}`},
		{"PATCH", "", `{"mode":"ask"}`},
		{"DELETE", "", ""},
	} {
		tag := g.did(200, nil, "GET", g.path(""), "").Get("ETag")
		on = true
		g.denied(412, "etag_mismatch", c.method, g.path("%s", c.path), c.body, "If-Match: "+tag)
		on = false
		if now := fixture.Must[[]byte](t)(os.ReadFile(log)); !bytes.Equal(now, theirs) {
			t.Errorf("%s %s was refused and wrote %s", c.method, c.path, now[len(theirs):])
		}
	}
	for _, f := range g.events() {
		switch f.Type {
		case "history.rewound", "history.condensed", "run.queued", "input.queued":
			t.Errorf("%s %s", f.Type, f.Data)
		}
	}
	if sum := fixture.Must[api.Summary](t)(rowOfTask(g.store, ref)); sum.Title == "never" || sum.Mode == "ask" {
		t.Errorf(`got %+v, want sum.Title != "never" and sum.Mode != "ask"`, sum)
	}
	// As it was seen each of them is done, also one that takes the task over more than once.
	tag := func() string { return "If-Match: " + g.did(200, nil, "GET", g.path(""), "").Get("ETag") }
	g.did(200, nil, "POST", g.path("/rewinds"), `{"to":"#3"}`, tag())
	g.did(200, nil, "POST", g.path("/undo"), `{}`, tag())
	g.did(201, nil, "POST", g.path("/forks"), `{}`, tag())
	g.did(200, nil, "PATCH", g.path(""), `{"title":"ours","approve":"read"}`, tag())
	var run struct{ ID string }
	g.did(202, &run, "POST", g.path("/runs"), start, tag())
	g.state(run.ID, "completed")
	g.did(200, nil, "DELETE", g.path(""), "", tag()) // while the task's files may still be written behind the run
}

// What a task says of itself is what If-Match compares, and not how many bytes its files
// take: those are written behind the journal. To read it again is to learn of them.
func TestATagHoldsWhileFilesAreWritten(t *testing.T) {
	g := newWorkingBench(t)
	var fork api.ForkResult
	g.did(201, &fork, "POST", g.path("/forks"), `{}`)
	for _, id := range []string{g.id, fork.ID} {
		path := "/v1/tasks/" + id
		tag := g.did(200, nil, "GET", path, "").Get("ETag")
		name := filepath.Join(g.store.Root(), "tasks", id, "history_item.json")
		if err := os.WriteFile(name, append(fixture.Must[[]byte](t)(os.ReadFile(name)), "  \n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		larger := g.did(200, nil, "GET", path, "", "If-None-Match: "+tag).Get("ETag")
		if larger == tag {
			t.Errorf("two bodies have the tag %s", tag)
		}
		g.did(304, nil, "GET", path, "", "If-None-Match: "+larger)
		head := g.did(200, nil, "PATCH", path, `{"title":"as it was seen"}`, "If-Match: "+tag)
		g.denied(412, "etag_mismatch", "PATCH", path, `{"title":"never"}`, "If-Match: "+larger)
		next := head.Get("ETag")
		g.denied(412, "etag_mismatch", "PATCH", path, `{"title":"never"}`, "If-Match: W/"+next)
		g.did(200, nil, "PATCH", path, `{"title":"next"}`, `If-Match: "other", `+next)
	}
}

// A task says where else it stands as lists do, and that is not what If-Match compares.
func TestATaskNamesItsCopies(t *testing.T) {
	g := newWorkingBench(t)
	storage := filepath.Join(g.dir, "foreign")
	other := filepath.Join(storage, "tasks", g.id)
	if err := os.CopyFS(other, os.DirFS(filepath.Join(g.store.Root(), "tasks", g.id))); err != nil {
		t.Fatal(err)
	}
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: g.store.Root(), State: g.store.Root() + ".state", Cache: filepath.Join(g.dir, "cache2"), Program: "test", Sources: []string{storage}}))
	w := newWorkingBenchOn(t, s, g)
	var list api.Page[api.Summary]
	w.did(200, &list, "GET", "/v1/tasks?query="+g.id, "")
	var one api.Summary
	tag := w.did(200, &one, "GET", "/v1/tasks/"+g.id, "").Get("ETag")
	if len(list.Items) != 1 || !slices.Equal(one.Copies, []string{other}) || !slices.Equal(list.Items[0].Copies, one.Copies) {
		t.Fatalf("%q, and the list says %+v", one.Copies, list.Items)
	}
	if err := os.RemoveAll(other); err != nil {
		t.Fatal(err)
	}
	var alone api.Summary
	if now := w.did(200, &alone, "GET", "/v1/tasks/"+g.id, "", "If-None-Match: "+tag).Get("ETag"); now == tag || len(alone.Copies) > 0 {
		t.Errorf("the copy is gone: %q, %s after %s", alone.Copies, now, tag)
	}
	w.did(200, nil, "PATCH", "/v1/tasks/"+g.id, `{"title":"as it was seen"}`, "If-Match: "+tag)
	if err := os.CopyFS(other, os.DirFS(filepath.Join(g.store.Root(), "tasks", g.id))); err != nil {
		t.Fatal(err)
	}
	var patched api.Summary
	if w.did(200, &patched, "PATCH", "/v1/tasks/"+g.id, `{"tags":["x"]}`); !slices.Equal(patched.Copies, []string{other}) {
		t.Errorf("a change answers with %q", patched.Copies)
	}
}

// Who is told of a run's end may at once change the task as he sees it then.
func TestATagTakenBehindTheEndOfARun(t *testing.T) {
	g := newWorkingBench(t)
	for range 3 {
		s := g.follow(g.path("/events"))
		g.did(202, nil, "POST", g.path("/runs"), `{"message":{"text":"go"},"provider":"script","model":"`+g.model(sayDone)+`","approve":"all"}`)
		for f := (frame{}); f.Type != "run.ended"; f = s.take(1)[0] {
		}
		tag := g.did(200, nil, "GET", g.path(""), "").Get("ETag")
		s.resp.Body.Close()
		g.did(200, nil, "POST", g.path("/rewinds"), `{"to":"~1"}`, "If-Match: "+tag)
	}
}

// The row of another tool's task names the model of its histories, which its settings lack. They are changed as seen.
func TestSettingsOfAnotherToolsTaskAreChangedAsSeen(t *testing.T) {
	g := newWorkingBench(t)
	id := "0199aaaa-0000-7000-8000-00000000f002"
	dir := filepath.Join(g.dir, "foreign", "tasks", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ui_messages.json":              `[{"ts":1700000000000,"type":"say","say":"text","text":"paint it"}]`,
		"api_conversation_history.json": `[{"role":"user","content":[{"type":"text","text":"<task>\npaint it\n</task>"},{"type":"text","text":"<environment_details>\n# Current Mode\n<slug>code</slug>\n<name>Code</name>\n<model>claude-sonnet-4-5</model>\n</environment_details>"}],"ts":1700000000000}]`,
		"history_item.json":             fmt.Sprintf(`{"id":%q,"number":1,"ts":1700000000000,"task":"paint it","workspace":%q,"mode":"code"}`, id, filepath.Join(g.dir, "ws")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: g.store.Root(), State: g.store.Root() + ".state", Cache: filepath.Join(g.dir, "cache2"), Program: "test", Sources: []string{filepath.Join(g.dir, "foreign")}}))
	w := newWorkingBenchOn(t, s, g)
	var sum api.Summary
	tag := w.did(200, &sum, "GET", "/v1/tasks/"+id, "").Get("ETag")
	if sum.Model != "claude-sonnet-4-5" {
		t.Fatalf("the row names the model %q", sum.Model)
	}
	patch := `{"title":"ours","effort":"low","provider":"script","model":"` + g.model(sayDone) + `"}`
	w.did(200, nil, "PATCH", "/v1/tasks/"+id, patch, "If-Match: "+tag)
	w.denied(412, "etag_mismatch", "PATCH", "/v1/tasks/"+id, `{"effort":"high"}`, "If-Match: "+tag)
}

func rowOfTask(s *store.Store, ref store.Ref) (api.Summary, error) {
	list, err := s.List(context.Background(), store.Filter{TaskFilter: api.TaskFilter{Words: ref.ID}})
	for _, t := range list.Items {
		if t.ID == ref.ID {
			return t, err
		}
	}
	return api.Summary{}, err
}

// A request whose own work moved the task is not told that somebody else moved it: under
// its key it is answered with what it did.
func TestIfMatchOfARequestThatComesAgain(t *testing.T) {
	g := newWorkingBench(t)
	tag := "If-Match: " + g.did(200, nil, "GET", g.path(""), "").Get("ETag")
	key := keyHeader + ": again"
	cut := true
	for i := range g.srv.routes {
		if rt := &g.srv.routes[i]; rt.method == "POST" && strings.HasSuffix(rt.path, "/rewinds") {
			do := rt.act
			rt.act = func(s *Server, a *asked) (*reply, error) {
				out, err := do(s, a)
				if cut && err == nil {
					return nil, errors.New("cut off behind the deed") // its key is left as a kill leaves it
				}
				return out, err
			}
		}
	}
	g.denied(500, "internal", "POST", g.path("/rewinds"), `{"to":"#3"}`, tag, key)
	cut = false
	g.did(200, nil, "POST", g.path("/rewinds"), `{"to":"#3"}`, tag, key)
	moves := 0
	for _, f := range g.events() {
		if f.Type == "history.rewound" {
			moves++
		}
	}
	if moves != 1 {
		t.Errorf("it was done %d times", moves)
	}
	g.denied(412, "etag_mismatch", "POST", g.path("/rewinds"), `{"to":"#3"}`, tag, keyHeader+": another")
}
