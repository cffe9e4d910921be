package server

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/store"
)

// between lets another process's change of the task happen after If-Match was compared, and
// before a route does what it does.
func (g *ground) between(change func()) {
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
	g := newWork(t)
	other := must[*store.Store](t)(store.Open(store.Options{Root: g.store.Root(), Cache: filepath.Join(g.dir, "cache-other"), Program: "other"}))
	ref := must[store.Ref](t)(other.Find(t.Context(), g.id))
	on := false
	g.between(func() {
		if on {
			pinned := !must[store.Summary](t)(rowOfTask(other, ref)).Pinned
			if _, err := other.Label(t.Context(), ref, store.Labels{Pinned: &pinned}); err != nil {
				t.Error(err)
			}
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
	}
	for _, f := range g.events() {
		switch f.Type {
		case "history.rewound", "history.condensed", "run.queued", "input.queued":
			t.Errorf("%s %s", f.Type, f.Data)
		}
	}
	if sum := must[store.Summary](t)(rowOfTask(g.store, ref)); sum.Title == "never" || sum.Mode == "ask" {
		t.Errorf("%+v", sum)
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
	// Until it has let the task go it writes the task's files, and the document tells their size.
	if free, err := g.srv.opt.Engine.Leaving(t.Context(), g.id); err != nil || !free {
		t.Fatal(free, err)
	}
	g.did(200, nil, "DELETE", g.path(""), "", tag())
}

func rowOfTask(s *store.Store, ref store.Ref) (store.Summary, error) {
	list, err := s.List(context.Background(), store.Filter{Query: ref.ID})
	for _, t := range list.Items {
		if t.ID == ref.ID {
			return t, err
		}
	}
	return store.Summary{}, err
}

// A request whose own work moved the task is not told that somebody else moved it: under
// its key it is answered with what it did.
func TestIfMatchOfARequestThatComesAgain(t *testing.T) {
	g := newWork(t)
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
