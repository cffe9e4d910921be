package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/llm/catalogue"
)

// A model is offered the tools that its family does best with; of most nothing is known.
func TestToolsOfFamilies(t *testing.T) {
	patch, file, replace := []string{"apply_patch"}, []string{"edit_file"}, []string{"search_replace"}
	for _, c := range []struct {
		provider, models string
		wants            []string
	}{
		{"openai", "gpt-5 gpt-5-codex gpt-5.1-2025-11-13 gpt-4.1 gpt-6.2-sol codex-mini-latest", patch},
		{"openai", "gpt-4o gpt-4o-mini gpt-4 gpt-4-turbo gpt-3.5-turbo o3 o4-mini", nil},
		{"openai-compatible", "openai/gpt-5.1 OpenAI/GPT-6", patch},
		{"openai-compatible", "qwen3-coder gpt-oss:20b openai/gpt-oss-120b anthropic/claude-opus-5-5", nil},
		{"openai-compatible", "x-ai/grok-4.3 grok-code-fast-1", replace},
		{"openai-compatible", "google/gemini-2.5-pro", file},
		{"google", "gemini-2.5-pro gemini-3.1-pro-preview", file},
		{"google", "gemma-3", nil},
		{"anthropic", "claude-opus-5-5 gpt-5", nil},
		{"script", "gpt-5.yaml", nil},
	} {
		for model := range strings.FieldsSeq(c.models) {
			wants, spares := catalogue.Tools(c.provider, model)
			if !slices.Equal(wants, c.wants) || slices.ContainsFunc(wants, func(w string) bool { return slices.Contains(spares, w) }) || (len(spares) > 0) != (len(wants) > 0) {
				t.Errorf("%s %s: wants %q, spares %q", c.provider, model, wants, spares)
			}
		}
	}
}
