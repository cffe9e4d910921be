package store

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

// Roo saves its two files one after the other, and its own saves overlap: a task that it completed may have a UI file that is one save
// behind. Its CLI ends before it asks what the person thinks of the result.
func TestTasksThatRooCompleted(t *testing.T) {
	const (
		ended    = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"attempt_completion","input":{"result":"Done."}}],"ts":9}`
		goesOn   = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"attempt_completion","input":{"result":"Done."}},{"type":"tool_use","id":"toolu_3","name":"read_file","input":{"path":"a"}}],"ts":9}`
		results  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"File: a"}],"ts":9}`
		begun    = `{"ts":8,"type":"say","say":"completion_result","text":"","partial":true}`
		told     = `{"ts":8,"type":"say","say":"completion_result","text":"Done."}`
		feedback = `{"ts":9,"type":"say","say":"user_feedback","text":"no","images":[]}`
	)
	for name, c := range map[string]struct{ last, api, want string }{
		"one save behind":                        {begun, ended, "completed"},
		"told, and the reply is not there":       {told, results, "interrupted"},
		"told, and the reply is there":           {told, ended, "completed"},
		"cut while it was told":                  {begun, results, "interrupted"},
		"another call follows":                   {begun, goesOn, "interrupted"},
		"the person was not content with it":     {told + "," + feedback, results, "interrupted"},
		"a resume row behind it changes nothing": {begun + `,{"ts":10,"type":"ask","ask":"resume_task","text":""}`, ended, "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			storage, dir := rooStorage(t, "one")
			write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), c.last))
			write(t, dir, roofmt.APIName, array(apiRow(2, "user", "do it"), c.api))
			got := listing(t, open(t, filepath.Join(t.TempDir(), "root"), storage), Filter{}).Items
			if len(got) != 1 || got[0].Status != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

// Roo's command line tool has a storage of its own, and ends a task without asking what the person thinks of it.
func TestTasksOfRoosCommandLine(t *testing.T) {
	storage := filepath.Join(t.TempDir(), ".vscode-mock", "global-storage")
	for id, last := range map[string]string{
		"told": `{"ts":8,"type":"say","say":"completion_result","text":"Done."}`, "cut": `{"ts":8,"type":"say","say":"completion_result","text":"Do","partial":true}`,
	} {
		dir := filepath.Join(storage, "tasks", id)
		write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), last))
		write(t, dir, roofmt.APIName, array(apiRow(2, "user", "do it")))
	}
	got := listing(t, open(t, filepath.Join(t.TempDir(), "root"), storage), Filter{}).Items
	if len(got) != 2 {
		t.Fatalf("%d tasks", len(got))
	}
	for _, item := range got {
		want := map[string]string{"told": "completed", "cut": "interrupted"}[item.ID]
		if item.Status != want || item.Origin != roofmt.CLIOrigin || !slices.Contains(item.Inferred, "origin") {
			t.Errorf("%s: %s from %s, inferred %v", item.ID, item.Status, item.Origin, item.Inferred)
		}
	}
}
