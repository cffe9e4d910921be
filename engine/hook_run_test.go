//go:build unix

package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// hooked runs a script under hooks and gives the outcome, the events' texts and what the model was sent.
func hooked(t *testing.T, script string, choice setup.Choice, hooks ...setup.Hook) (*bench, engine.Outcome, string, string) {
	t.Helper()
	b := newBench(t)
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}, Hooks: hooks}})
	choice.Provider, choice.Model = "script", b.script(script)
	run, out, events := b.run(engine.Request{Text: "go", Choice: choice})
	var said, shown strings.Builder
	for _, m := range b.state(run.TaskID).API() {
		said.Write(m.Raw())
	}
	for _, e := range events {
		shown.Write(e.Data)
	}
	return b, out, shown.String(), said.String()
}

const writeTwice = `
- tools: [{name: write_to_file, input: {path: a.txt, content: "a\n"}}, {name: execute_command, input: {command: "echo b > b.txt"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`

// A hook denies a call that the policy allows, its reason goes to the model, and the other calls run. A hook after a
// call adds to its result. What a hook wrote is a fact of the journal, and a failing hook is a warning.
func TestHooksInARun(t *testing.T) {
	b, out, shown, said := hooked(t, writeTwice, setup.Choice{Approve: "all"},
		setup.Hook{Name: "guard", On: "before_tool", Tool: "command", Command: "echo no commands on Fridays >&2; exit 2"},
		setup.Hook{Name: "lint", On: "after_tool", Tool: "write", Command: "echo a.txt: no heading >&2; exit 2"},
		setup.Hook{Name: "odd", On: "before_tool", Tool: "write_to_file", Command: "exit 9"},
		setup.Hook{Name: "first", On: "run_start", Command: "cat > start.json"},
		setup.Hook{Name: "last", On: "run_end", Command: "cat > end.json"},
	)
	if out.State != "completed" {
		t.Fatalf("got %+v, want a completed run", out)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "b.txt")); err == nil {
		t.Error("the denied command ran")
	}
	for _, part := range []string{"the user's hook guard: no commands on Fridays", "[The user's hook lint: a.txt: no heading]"} {
		if !strings.Contains(said, part) {
			t.Errorf("the model got %s, want %q in it", said, part)
		}
	}
	for _, part := range []string{"the hook guard denied execute_command: no commands on Fridays", "the hook odd failed: exit code 9",
		`"by":"policy","kind":"hook","rule":"guard"`} {
		if !strings.Contains(shown, part) {
			t.Errorf("got the events %s, want %q in them", shown, part)
		}
	}
	for name, part := range map[string]string{"start.json": `"event":"run_start"`, "end.json": `"outcome":"completed"`} {
		data, err := os.ReadFile(filepath.Join(b.workspace, name))
		if err != nil || !strings.Contains(string(data), part) {
			t.Errorf("%s: got %s %v, want %s in it", name, data, err, part)
		}
	}
}

// A hook cannot permit: what asks still asks. One that asks makes a call that is allowed wait for the user.
func TestHooksAreOnlyStricter(t *testing.T) {
	allow := setup.Hook{Name: "yes", On: "before_tool", Command: `echo '{"decision":"allow"}'`}
	b, out, _, _ := hooked(t, writeTwice, setup.Choice{Approve: "ask"}, allow)
	if _, err := os.Stat(filepath.Join(b.workspace, "a.txt")); err == nil || out.State != "waiting" {
		t.Errorf("got %+v, want a run that waits for the user", out)
	}
	ask := setup.Hook{Name: "sure", On: "before_tool", Tool: "write", Command: `echo '{"decision":"ask","reason":"is it sure?"}'`}
	b, out, shown, _ := hooked(t, writeTwice, setup.Choice{Approve: "all"}, ask)
	if _, err := os.Stat(filepath.Join(b.workspace, "a.txt")); err == nil || out.State != "waiting" ||
		!strings.Contains(shown, "the user's hook sure: is it sure?") || strings.Contains(shown, `"always":"`) {
		t.Errorf("got %+v and %s, want a question with the reason and without always", out, shown)
	}
	// The answer counts although the hook words its reason anew when the next run asks it again.
	ask.Command = `echo '{"decision":"ask","reason":"at '$(date +%s%N)'"}'`
	b = newBench(t)
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}, Hooks: []setup.Hook{ask}}})
	run, _, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(writeTwice), Approve: "all"}})
	if _, out, _ = b.run(engine.Request{Task: run.TaskID, Text: "yes"}); out.State != "completed" {
		t.Errorf("got %+v, want a run that goes on after the yes", out)
	}
	_, out, _, _ = hooked(t, writeTwice, setup.Choice{Approve: "all"}, setup.Hook{Name: "gate", On: "run_start", Command: "echo closed >&2; exit 2"})
	if out.State != "denied" || out.Reason != "the hook gate: closed" {
		t.Errorf("got %+v, want a denied run", out)
	}
}

// A workspace cannot bring hooks, in whichever form another tool has them.
func TestAWorkspaceBringsNoHooks(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{".roost/config.toml", "roost.toml", ".roo/hooks.toml", ".config/roost/config.toml"} {
		fixture.WriteFile(t, filepath.Join(b.workspace, name), "[hooks.evil]\non = \"run_start\"\ncommand = \"touch evil\"\n")
	}
	fixture.WriteFile(t, filepath.Join(b.workspace, ".claude/settings.json"),
		`{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch evil"}]}]}}`)
	_, out, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(writeTwice), Approve: "all"}})
	if _, err := os.Stat(filepath.Join(b.workspace, "evil")); err == nil || out.State != "completed" {
		t.Errorf("got %+v, want a completed run and no hook of the workspace", out)
	}
}
