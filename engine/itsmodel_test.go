package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// A run continues another tool's task with the model and the mode that its histories name, if both exist here. Otherwise
// the run shows the change before the first request.
func TestAnotherToolsTaskKeepsItsModelAndMode(t *testing.T) {
	const gone = "the task's mode boomerang-mode does not exist any more: it continues in mode architect"
	for _, c := range []struct{ name, slug, named, given, asked, mode, told string }{
		{"the provider has it", "code", "claude-sonnet-4-5", "", "claude-sonnet-4-5", "code", ""},
		{"it has it not, and one is named", "code", "gpt-5", "claude-sonnet-5-5", "claude-sonnet-5-5", "code", "model: gpt-5 -> claude-sonnet-5-5"},
		{"another is named", "code", "claude-sonnet-4-5", "claude-opus-5-5", "claude-opus-5-5", "code", "model: claude-sonnet-4-5 -> claude-opus-5-5"},
		{"none is known", "code", "", "", "claude-sonnet-5-5", "code", ""},
		{"a mode that changes no file", "ask", "claude-sonnet-4-5", "", "claude-sonnet-4-5", "ask", ""},
		{"a mode that is not here", "boomerang-mode", "claude-sonnet-4-5", "", "claude-sonnet-4-5", "architect", gone},
		{"no mode", "", "", "", "claude-sonnet-5-5", "code", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := t.TempDir()
			dir := filepath.Join(source, "tasks", "a1")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			words := "<environment_details>\\n# Current Mode\\n<slug>" + c.slug + "</slug>\\n<model>" + c.named + "</model>\\n</environment_details>"
			for name, text := range map[string]string{
				"api_conversation_history.json": fmt.Sprintf(`[{"role":"user","content":[{"type":"text","text":"paint"},{"type":"text","text":"%s"}],"ts":1700000000001},{"role":"assistant","content":[{"type":"text","text":"done"}],"ts":1700000000002}]`, words),
				"ui_messages.json":              `[{"ts":1700000000001,"type":"say","say":"text","text":"paint"},{"ts":1700000000002,"type":"say","say":"text","text":"done"}]`,
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b, s := newBench(t, source), llmtest.New(t, done)
			b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{"anthropic": "k"}}})
			t.Cleanup(func() {
				if err := b.engine.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			_, out, events := b.run(engine.Request{Task: "a1", Text: "more", Choice: setup.Choice{Workspace: b.workspace, Provider: "anthropic", Model: c.given, BaseURL: s.URL}})
			var told strings.Builder
			for _, e := range events {
				told.WriteString(string(e.Data) + "\n")
			}
			said := strings.ReplaceAll(told.String(), `\u003e`, ">")
			if out.State != "completed" || len(s.Requests()) != 1 || s.Requests()[0].Model() != c.asked {
				t.Fatalf("%+v, %d requests", out, len(s.Requests()))
			}
			if c.told == "" && strings.Contains(said, "model: ") || !strings.Contains(said, c.told) {
				t.Errorf("told %s", said)
			}
			if got := b.state("a1").Settings.Mode; got != c.mode {
				t.Errorf("got the mode %q, want %q", got, c.mode)
			}
		})
	}
}
