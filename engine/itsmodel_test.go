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

// Another tool's task goes on with the model that its histories name, where the provider
// has it. Where it has not, the change is told before the first request.
func TestAnotherToolsTaskKeepsItsModel(t *testing.T) {
	for _, c := range []struct{ name, named, given, asked, told string }{
		{"the provider has it", "claude-sonnet-4-5", "", "claude-sonnet-4-5", ""},
		{"it has it not, and one is named", "gpt-5", "claude-sonnet-5-5", "claude-sonnet-5-5", "model: gpt-5 -> claude-sonnet-5-5"},
		{"another is named", "claude-sonnet-4-5", "claude-opus-5-5", "claude-opus-5-5", "model: claude-sonnet-4-5 -> claude-opus-5-5"},
		{"none is known", "", "", "claude-sonnet-5-5", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := t.TempDir()
			dir := filepath.Join(source, "tasks", "a1")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			words := "<environment_details>\\n# Current Mode\\n<slug>code</slug>\\n<model>" + c.named + "</model>\\n</environment_details>"
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
		})
	}
}
