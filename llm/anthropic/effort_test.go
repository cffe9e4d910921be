package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
)

// An effort is sent in the form of each model: effort and adaptive thinking where
// they are documented, else a budget, which every thinking model takes.
func TestEffort(t *testing.T) {
	for _, c := range []struct{ model, effort, want string }{
		{"claude-opus-5-5", "high", `,"output_config":{"effort":"high"},"thinking":{"type":"adaptive"}`},
		{"claude-fable-5-2", "max", `,"output_config":{"effort":"max"},"thinking":{"type":"adaptive"}`},
		{"claude-haiku-5-5", "minimal", `,"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}`},
		{"claude-sonnet-4-6", "xhigh", `,"output_config":{"effort":"xhigh"},"thinking":{"type":"adaptive"}`},
		{"claude-sonnet-5", "low", `,"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}`},
		{"claude-opus-4-5", "medium", `,"output_config":{"effort":"medium"}`},
		{"claude-opus-4-5-20251101", "medium", `,"output_config":{"effort":"medium"}`},
		{"claude-sonnet-4-5", "high", `,"thinking":{"type":"enabled","budget_tokens":8000}`},
		{"claude-sonnet-4-5-20250929", "low", `,"thinking":{"type":"enabled","budget_tokens":2000}`},
		{"claude-opus-4-20250514", "medium", `,"thinking":{"type":"enabled","budget_tokens":5000}`},
		{"claude-sonnet-4-5", "minimal", `,"thinking":{"type":"enabled","budget_tokens":1024}`}, // the least there is
		{"some-imitation", "high", `,"thinking":{"type":"enabled","budget_tokens":8000}`},
		{"claude-opus-5-5", "none", ""},
		{"claude-sonnet-4-5", "none", ""},
		{"claude-opus-5-5", "", ""},
	} {
		req := llm.Request{Model: c.model, MaxTokens: 10_000, Messages: []llm.Message{{Role: "user", Content: json.RawMessage(`"hi"`)}}}
		got := body(t, anthropic.Options{Effort: c.effort}, req)
		_, got, _ = strings.Cut(got, `"stream":true`)
		got, _, _ = strings.Cut(got, `,"messages"`)
		if got != c.want {
			t.Errorf("got %s %q: %s, want got = %v", c.model, c.effort, got, c.want)
		}
	}
}

// A model that decides by itself may think within a tool loop that began without thinking;
// one that is given a budget may not.
func TestEffortWithinAToolLoop(t *testing.T) {
	req := llm.Request{Model: "claude-opus-5-5", Messages: []llm.Message{
		{Role: "user", Content: json.RawMessage(`"hi"`)},
		{Role: "assistant", Content: json.RawMessage(`[{"type":"tool_use","id":"t","name":"n","input":{}}]`)},
		{Role: "user", Content: json.RawMessage(`[{"type":"tool_result","tool_use_id":"t","content":"r"}]`)},
	}}
	got := body(t, anthropic.Options{Effort: "high"}, req)
	if !strings.Contains(got, `"output_config":{"effort":"high"},"thinking":{"type":"adaptive"}`) {
		t.Error(got)
	}
	req.Model = "claude-sonnet-4-5"
	if got := body(t, anthropic.Options{Effort: "high"}, req); strings.Contains(got, `"thinking"`) {
		t.Error(got)
	}
}

// A request never asks for more than the model can write: the API refuses that.
func TestMaxTokensIsWithinTheModel(t *testing.T) {
	for _, c := range []struct {
		model string
		asked int
		want  string
	}{
		{"claude-sonnet-4-5", 1_000_000, `"max_tokens":64000`}, {"claude-sonnet-4-5", 500, `"max_tokens":500`},
		{"claude-of-tomorrow", 1_000_000, `"max_tokens":1000000`}, {"claude-opus-5-5", 0, `"max_tokens":128000`},
	} {
		got := body(t, anthropic.Options{}, llm.Request{Model: c.model, MaxTokens: c.asked, Messages: []llm.Message{{Role: "user", Content: json.RawMessage(`"hi"`)}}})
		if !strings.Contains(got, c.want+",") {
			t.Errorf("got %s %d: %s, want strings.Contains(got, c.want+\",\")", c.model, c.asked, got)
		}
	}
}
