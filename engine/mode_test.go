package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/store"
)

func modeText(slug, name, groups string) string {
	return "  - {slug: " + slug + ", name: " + name + ", roleDefinition: You are " + name + "., groups: " + groups + "}\n"
}

// Modes come from the workspace, then from the user's files in their order.
func TestWhereModesComeFrom(t *testing.T) {
	ws, home := t.TempDir(), t.TempDir()
	fixture.WriteFile(t, filepath.Join(ws, ".roomodes"), "customModes:\n"+modeText("a", "theirs", "[read]")+modeText("odd", "", "[]"))
	first := fixture.WriteFile(t, filepath.Join(home, "one", "custom_modes.yaml"), "customModes:\n"+modeText("a", "mine", "[]")+modeText("b", "mine", "[]"))
	second := fixture.WriteFile(t, filepath.Join(home, "two", "custom_modes.yaml"), "customModes:\n"+modeText("b", "other", "[]")+modeText("c", "other", "[]"))
	broken := fixture.WriteFile(t, filepath.Join(home, "three", "custom_modes.yaml"), "customModes: [")
	set, notes := setup.Config{ModeFiles: []string{first, filepath.Join(home, "none"), second, broken}}.Modes(ws)
	for slug, want := range map[string]string{"a": "theirs project", "b": "mine global", "c": "other global", "code": "💻 Code builtin"} {
		if m, _ := set.Find(slug); m.Name+" "+m.Source != want || (m.Path == "") != (m.Source == mode.BuiltIn) {
			t.Errorf("%s is %+v, want %s", slug, m, want)
		}
	}
	if len(notes) != 2 || !strings.Contains(notes[0], `mode "odd" is left out`) || !strings.HasPrefix(notes[1], broken+": ") {
		t.Errorf("got %q, want len(notes) = 2 and strings.Contains(notes[0], `mode \"odd\" is left out`) and strings.HasPrefix(notes[1], broken+\": \")",
			notes)
	}
	if _, notes := (setup.Config{}).Modes(filepath.Join(ws, "gone")); len(notes) != 1 {
		t.Errorf("a workspace that is gone: %q", notes)
	}
}

const refusedThenWritten = `
- expect: ["You are Writer.", "# Rules from .roo/rules-docs/a.md:\nBe brief.", "# Rules from ~/.roo/rules/b.md:\nBe kind."]
  tools: [{name: write_to_file, input: {path: a.go, content: x}}, {name: write_to_file, input: {path: a.md, content: x}}]
- expect: ["can only edit files matching pattern"]
  tools: [{name: attempt_completion, input: {result: done}}]
`

// A run works in its mode: tools, files and rules are those of the mode, whatever the
// policy allows. The task keeps it.
func TestARunInAMode(t *testing.T) {
	b := newBench(t)
	home := t.TempDir()
	fixture.WriteFile(t, filepath.Join(b.workspace, ".roomodes"), "customModes:\n"+modeText("docs", "Writer", `[[edit, {fileRegex: '\.md$'}]]`)+modeText("ask", "Other", "[]"))
	fixture.WriteFile(t, filepath.Join(b.workspace, ".roo", "rules-docs", "a.md"), "Be brief.\n")
	fixture.WriteFile(t, filepath.Join(home, ".roo", "rules", "b.md"), "Be kind.\n")
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}, Home: home}})
	script := b.script(refusedThenWritten)
	run, out, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Mode: "docs", Provider: "script", Model: script, Approve: "all"}})
	if out.State != "completed" {
		t.Fatalf("got %+v, want out.State = \"completed\"", out)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "a.go")); err == nil {
		t.Error("a file was written that the mode closes")
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "a.md")); err != nil {
		t.Error(err)
	}
	if s := b.state(run.TaskID); s.Settings.Mode != "docs" {
		t.Errorf("mode %q", s.Settings.Mode)
	}

	// A mode that a workspace redefines is told, and one that is gone.
	_, _, events := b.run(engine.Request{Task: run.TaskID, Text: "more", Choice: setup.Choice{Mode: "ask"}})
	if !mentions(events, "the mode ask is not the built-in one") {
		t.Errorf("got %s, want mentions(events, \"the mode ask is not the built-in one\")", texts(events))
	}
	if _, _, events = b.run(engine.Request{Task: run.TaskID, Text: "more", Choice: setup.Choice{Mode: "docs"}}); mentions(events, "built-in") {
		t.Errorf("got %s, want not mentions(events, \"built-in\")", texts(events))
	}
	if err := os.Remove(filepath.Join(b.workspace, ".roomodes")); err != nil {
		t.Fatal(err)
	}
	_, _, events = b.run(engine.Request{Task: run.TaskID, Text: "more"})
	if s := b.state(run.TaskID); !mentions(events, "the task's mode docs does not exist any more: it continues in mode architect") || s.Settings.Mode != "architect" {
		t.Errorf("mode %q, %s", s.Settings.Mode, texts(events))
	}
}

func mentions(events []events.Event, words string) bool {
	return strings.Contains(texts(events), words)
}

func texts(events []events.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == "notice" {
			b.Write(e.Data)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// An unknown mode is the mistake of the caller that named it: nothing is begun.
func TestUnknownMode(t *testing.T) {
	b := newBench(t)
	script := b.script(refusedThenWritten)
	_, err := b.engine.Start(t.Context(), engine.Request{Text: "go", Choice: setup.Choice{Mode: "cod", Workspace: b.workspace, Provider: "script", Model: script}})
	var unknown *mode.UnknownError
	if !errors.As(err, &unknown) || len(unknown.Closest) == 0 || unknown.Closest[0] != "code" {
		t.Errorf("got %v, want errors.As(err, &unknown) and len(unknown.Closest) != 0 and unknown.Closest[0] = \"code\"",
			err)
	}
	if found, err := b.store.List(t.Context(), store.Filter{}); err != nil || len(found.Items) > 0 {
		t.Errorf("got %v, %v, want no error and len(found.Items) <= 0", found.Items, err)
	}
}
