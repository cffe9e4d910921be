package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
)

// The plan of continuing a task asks what a run would be refused for, takes decisions as a run does, and changes nothing.
func TestResumePlan(t *testing.T) {
	g := newWorkingBench(t)
	var plan api.ResumePlan
	g.did(200, &plan, "GET", g.path("/resume"), "")
	if plan.Place != "own" || plan.First || plan.Run != nil || len(plan.Asks)+len(plan.Notes) != 0 || plan.Workspace != filepath.Join(g.dir, "ws") {
		t.Errorf("got %+v, want a task of our own that goes on as it was", plan)
	}
	git := filepath.Join(g.dir, "ws", ".git")
	if err := os.MkdirAll(git, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(git, "HEAD"), []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.did(200, &plan, "GET", g.path("/resume"), "")
	if len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], "none -> 0123456789abcdef") {
		t.Errorf("got the notes %q, want the HEAD that has changed", plan.Notes)
	}
	moved := filepath.Join(g.dir, "moved")
	if err := os.Rename(filepath.Join(g.dir, "ws"), moved); err != nil {
		t.Fatal(err)
	}
	before := g.etag(g.path(""))
	g.did(200, &plan, "GET", g.path("/resume"), "")
	refused := g.denied(422, "workspace_missing", "POST", g.path("/runs"), `{"yes":true}`)
	if len(plan.Asks) != 1 || plan.Asks[0].Code != refused.Code || plan.Asks[0].Detail != refused.Detail {
		t.Errorf("got %+v, want what a run is refused for: %+v", plan.Asks, refused)
	}
	g.did(200, &plan, "GET", g.path("/resume?workspace=%s", moved), "")
	if len(plan.Asks) != 0 || plan.Workspace != moved || len(plan.Notes) != 1 || !strings.HasPrefix(plan.Notes[0], "workspace: ") {
		t.Errorf("got %+v, want it to go on in the folder that was named", plan)
	}
	if after := g.etag(g.path("")); after != before {
		t.Errorf("the task has the ETag %s, want %s: plans change nothing", after, before)
	}
}

func (g *bench) etag(path string) string {
	g.Helper()
	return g.did(200, nil, "GET", path, "").Get("ETag")
}
