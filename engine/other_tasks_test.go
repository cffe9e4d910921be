package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/task"
)

// fileEvents are the changes by others in a run's events.
func fileEvents(t *testing.T, events []events.Event) (out []task.FileChanged) {
	t.Helper()
	for _, e := range events {
		if e.Type != "file.changed" {
			continue
		}
		event, err := task.Decode(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		if f := event.(task.FileChanged); f.Source == "user_edited" {
			out = append(out, f)
		}
	}
	return out
}

// When another task changed a file, the record, the model and the person are told which;
// when somebody changed it after that task, nobody is named.
func TestWhichTaskChangedAFile(t *testing.T) {
	reads := "- tools: [{name: read_file, input: {path: f}}]\n" + strings.Repeat("- tools: [{name: attempt_completion, input: {result: done}}]\n", 3)
	folders := func(t *testing.T) *bench { return newBench(t) }
	finish := "- tools: [{name: attempt_completion, input: {result: done}}]\n"
	for _, tt := range []struct {
		name  string
		bench func(t *testing.T) *bench
		calls string
		after func(path string) error
		named bool
	}{
		{"edited in a database", newSharedBench, `[{name: write_to_file, input: {path: f, content: "theirs\n"}}]`, nil, true},
		{"edited", folders, `[{name: write_to_file, input: {path: f, content: "theirs\n"}}]`, nil, true},
		{"by a command", folders, `[{name: read_file, input: {path: f}}, {name: execute_command, input: {command: "echo theirs >f"}}]`, nil, true},
		{"edited, and again by a person", folders, `[{name: write_to_file, input: {path: f, content: "theirs\n"}}]`,
			func(path string) error { return os.WriteFile(path, []byte("mine\n"), 0o644) }, false},
		{"not at all", folders, `[{name: read_file, input: {path: f}}]`,
			func(path string) error { return os.WriteFile(path, []byte("mine\n"), 0o644) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.bench(t)
			path := filepath.Join(b.workspace, "f")
			if err := os.WriteFile(path, []byte("first\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			one, out, _ := b.run(engine.Request{Text: "read f", Choice: setup.Choice{Provider: "script", Model: b.script(reads), Approve: "all"}})
			if out.State != "completed" {
				t.Fatal(out)
			}
			other, out, _ := b.run(engine.Request{Text: "change f", Choice: setup.Choice{Provider: "script", Model: b.script("- tools: " + tt.calls + "\n" + finish), Approve: "all"}})
			if out.State != "completed" {
				t.Fatal(out)
			}
			if tt.after != nil {
				if err := tt.after(path); err != nil {
					t.Fatal(err)
				}
			}
			_, out, events := b.run(engine.Request{Task: one.TaskID, Text: "go on"})
			if out.State != "completed" {
				t.Fatal(out)
			}
			want := ""
			if tt.named {
				want = other.TaskID
			}
			told := fileEvents(t, events)
			if len(told) != 1 || told[0].By != "other" || told[0].Task != want {
				t.Errorf("recorded %+v, want it to name %q", told, want)
			}
			notices := ""
			for _, e := range events {
				if e.Type == "notice" {
					notices += string(e.Data)
				}
			}
			words := fmt.Sprintf("by another task, %s", other.TaskID)
			api := b.state(one.TaskID).API()
			model := ""
			for _, m := range api {
				model += string(m.Raw())
			}
			if strings.Contains(notices, words) != tt.named || strings.Contains(model, words) != tt.named {
				t.Errorf("the person is told %s", notices)
			}
		})
	}
}

// A task keeps how its model is given changed files; another word is refused.
func TestChangedFilesAreReadAgain(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.workspace, "f")
	if err := os.WriteFile(path, []byte("first\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := b.script("- tools: [{name: read_file, input: {path: f}}]\n- tools: [{name: attempt_completion, input: {result: done}}]\n- tools: [{name: attempt_completion, input: {result: done}}]\n")
	run, _, _ := b.run(engine.Request{Text: "read f", Choice: setup.Choice{Provider: "script", Model: script, Approve: "all", Stale: api.StaleRead}})
	if err := os.WriteFile(path, []byte("second\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.run(engine.Request{Task: run.TaskID, Text: "go on"})
	found := false
	for _, m := range b.state(run.TaskID).API() {
		found = found || strings.Contains(string(m.Raw()), `Read again. File: f\n1 | second`)
	}
	if !found {
		t.Error("its content was not given")
	}
	if _, err := b.engine.Start(context.Background(), engine.Request{Task: run.TaskID, Text: "x", Choice: setup.Choice{Stale: "shout"}}); err == nil {
		t.Error("a word that means nothing was taken")
	}
}
