package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/api"
)

// A rewind goes to a checkpoint by its name, with the files or without; one that is not
// there changes nothing.
func TestRewindToACheckpoint(t *testing.T) {
	g := newWorkingBench(t)
	run := g.started(`
- tools: [{name: write_to_file, input: {path: b.txt, content: "one\n"}}]
- tools: [{name: write_to_file, input: {path: b.txt, content: "two\n"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	g.state(run.ID, "completed")
	g.id = run.Task
	file := filepath.Join(g.dir, "ws", "b.txt")
	var list api.Checkpoints
	g.did(200, &list, "GET", g.path("/checkpoints"), "")
	if len(list.Checkpoints) < 2 {
		t.Fatalf("got %+v, want len(list.Checkpoints) >= 2", list)
	}
	second := list.Checkpoints[1]
	for _, bad := range []string{"c77", "cx"} {
		if resp := g.send("POST", g.path("/rewinds"), `{"to":"`+bad+`"}`); resp.StatusCode != 404 && resp.StatusCode != 422 {
			t.Errorf("%s: got %s, want resp.StatusCode = 404 or resp.StatusCode = 422", bad, resp.Status)
		}
	}
	var dry, done api.Rewound
	g.did(200, &dry, "POST", g.path("/rewinds"), `{"to":"`+second.Name()+`","files":true,"dry_run":true}`)
	g.did(200, &done, "POST", g.path("/rewinds"), `{"to":"`+second.Name()+`","files":true}`)
	if done.Gone.UI == 0 || done.Gone != dry.Gone {
		t.Errorf("%+v, the dry run %+v", done.RewindResult, dry.RewindResult)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "one\n" {
		t.Errorf("got %q %v, want no error and string(text) = \"one\\n\"", text, err)
	}
	g.did(200, nil, "POST", g.path("/undo"), `{}`)
	if text, err := os.ReadFile(file); err != nil || string(text) != "two\n" {
		t.Errorf("taken back: %q %v", text, err)
	}
}
