package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// kinds are the events of a kind on a task's stream, which has the same of them as the
// stream of all tasks and the log.
func (g *bench) kinds(task, kind string) (out []map[string]any) {
	g.Helper()
	want := journalOf(g, g.store, task)
	got := g.follow("/v1/tasks/" + task + "/events?after=0").take(len(want))
	if diff := firstDifference(want, got); diff != "" {
		g.Error(diff)
	}
	all := byTask(g, feedOf(g, g.store))[task]
	for _, f := range got {
		if f.Type != kind {
			continue
		}
		if !slices.Contains(all, f.Type+" "+f.Data) {
			g.Errorf("the stream of all tasks has no %s", f.Data)
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			g.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// What a tool is about to write over is kept first, and that is told with the name that
// restores it.
func TestACheckpointIsAnEvent(t *testing.T) {
	g := newWorkingBench(t)
	r := g.started(`
- tools: [{name: write_to_file, input: {path: a.txt, content: "other words\n"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	g.state(r.ID, "completed")
	var list api.Checkpoints
	g.did(200, &list, "GET", "/v1/tasks/"+r.Task+"/checkpoints", "")
	var told, named []string
	for _, e := range g.kinds(r.Task, "checkpoint.saved") {
		told = append(told, fmt.Sprint(e["run_id"], " ", e["title"], " c", e["checkpoint"]))
	}
	for _, c := range list.Checkpoints {
		named = append(named, r.ID+" a.txt "+c.Name())
	}
	if len(told) == 0 || !slices.Equal(told, named) {
		t.Errorf("told of %q, there are %q", told, named)
	}
}

// What another program wrote into a task's files is taken in with the next run, and told
// before that run's own words.
func TestAForeignChangeIsAnEvent(t *testing.T) {
	g := newWorkingBench(t)
	first := g.started(sayDone)
	g.state(first.ID, "completed")
	file := filepath.Join(g.store.Root(), "tasks", first.Task, "ui_messages.json")
	if free, err := g.opt.Engine.WaitForRelease(t.Context(), first.Task); err != nil || !free { // its files are written
		t.Fatal(free, err)
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(fixture.Must[[]byte](t)(os.ReadFile(file)), &rows); err != nil {
		t.Fatal(err)
	}
	rows = append(rows, json.RawMessage(`{"ts":1900000000000,"type":"say","say":"text","text":"from an editor"}`))
	if err := os.WriteFile(file, fixture.Must[[]byte](t)(json.Marshal(rows)), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	var next api.Run
	g.did(202, &next, "POST", "/v1/tasks/"+first.Task+"/runs", `{"message":{"text":"go on"}}`)
	g.state(next.ID, "completed")
	imported, started := g.kinds(first.Task, "foreign.imported"), g.kinds(first.Task, "run.started")
	if len(imported) != 1 || imported[0]["history"] != "ui" || len(started) != 2 || imported[0]["seq"].(float64) > started[1]["seq"].(float64) {
		t.Errorf("%v behind %v", imported, started)
	}
	if page := g.get("/v1/tasks/" + first.Task + "/messages"); strings.Count(string(page), "from an editor") != 1 {
		t.Errorf("it is not in the history: %s", page)
	}
}
