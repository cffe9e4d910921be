package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// A run looks up what the person mentions, and the tools that look back find the
// commands, outputs and tasks that are there.
func TestARunThatLooksBack(t *testing.T) {
	b := newBench(t)
	home := t.TempDir()
	if err := b.engine.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}, Home: home, Linter: "echo LINTED"}})
	fixture.WriteFile(t, filepath.Join(b.workspace, "main.go"), "package main\n")
	fixture.WriteFile(t, filepath.Join(b.workspace, ".roo", "commands", "ship.md"), "Ship it.")
	fixture.WriteFile(t, filepath.Join(home, ".roo", "commands", "mine.md"), "My own way.")
	other, o, _ := b.run(engine.Request{Text: "an other task", Choice: setup.Choice{Provider: "script", Model: b.script("- {text: x}"), Workspace: t.TempDir(), Approve: "all"}})
	wantOutcome(t, o, "completed", "")

	run, o, events := b.run(engine.Request{
		Text: "explain @/main.go to /ship it, @problems",
		Choice: setup.Choice{Provider: "script", Approve: "all", Model: b.script(`
- expect: ["explain 'main.go' to Command 'ship' (see below for command content) it", "File: main.go\n1 | package main", "<command name=\"ship\">\nShip it.\n</command>", "<workspace_diagnostics>\nLINTED\n"]
  tools: [{name: run_slash_command, input: {command: mine, args: "now"}}, {name: list_tasks, input: {}}, {name: list_tasks, input: {all_workspaces: true, query: other}}, {name: execute_command, input: {command: "seq 1 20000"}}]
- expect: ["Provided arguments: now", "My own way.", "this task", "an other task"]
  tools: [{name: read_command_output, input: {artifact_id: "cmd-1.txt"}}]
- expect: ["Artifact not found"]
  tools: [{name: attempt_completion, input: {result: done}}]
`)},
	})
	wantOutcome(t, o, "completed", "")
	s := b.state(run.TaskID)
	checkHistory(t, s, true)
	if len(s.Files) != 1 || s.Files[0].Path != "main.go" || s.Files[0].Source != "file_mentioned" || len(ofType(events, "file.changed")) != 1 {
		t.Errorf("files %+v", s.Files)
	}
	results := map[string]string{}
	for _, c := range s.Calls() {
		raw, err := c.Result()
		if err != nil {
			t.Fatal(err)
		}
		results[c.Name+string(c.Input())] += string(raw)
	}
	if got := results[`list_tasks{}`]; !strings.Contains(got, run.TaskID) || strings.Contains(got, other.TaskID) {
		t.Errorf("tasks of the workspace: %s", got)
	}

	// The whole output is read after the run that kept it.
	artifact := ""
	for _, c := range s.Calls() {
		if c.Finished != nil && c.Finished.Artifact != "" {
			artifact = c.Finished.Artifact
		}
	}
	_, o, _ = b.run(engine.Request{
		Task: run.TaskID,
		Text: "and @/none",
		Choice: setup.Choice{Provider: "script", Model: b.script(`
- {}
- {}
- {}
- expect: ["[read_file for 'none']\nError: there is no such file"]
  tools: [{name: read_command_output, input: {artifact_id: ` + artifact + `, search: "^1999[0-9]$"}}]
- expect: ["Total matches: 10 | Showing first 10\n\n19990 | 19990"]
  tools: [{name: attempt_completion, input: {result: done}}]
`)},
	})
	wantOutcome(t, o, "completed", "")
}
