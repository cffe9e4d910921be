package google_test

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm/google"
)

// An effort is a level from the third generation on and a budget before it; what has
// neither is left alone.
func TestEffort(t *testing.T) {
	const thoughts = `"thinkingConfig":{"includeThoughts":true`
	for _, c := range []struct{ model, effort, want string }{
		{"gemini-3-pro", "high", thoughts + `,"thinkingLevel":"HIGH"}`},
		{"gemini-3.8-flash", "max", thoughts + `,"thinkingLevel":"HIGH"}`},
		{"gemini-3-pro", "none", thoughts + `,"thinkingLevel":"LOW"}`},
		{"gemini-3-pro", "", thoughts + `}`},
		{"gemini-2.5-flash", "medium", thoughts + `,"thinkingBudget":8192}`},
		{"gemini-2.5-flash", "none", thoughts + `,"thinkingBudget":0}`},
		{"gemini-2.5-pro", "none", thoughts + `,"thinkingBudget":128}`},
		{"gemini-2.0-flash", "high", ""},
	} {
		s := llmtest.New(t)
		s.Add(llmtest.Text("hi"))
		p := google.New(google.Options{Model: c.model, BaseURL: s.URL, APIKey: key, Effort: c.effort})
		t.Cleanup(p.CloseIdle)
		got := collect(t.Context(), p, ask("hi"))
		sent := string(s.Requests()[0].Body)
		if got.err != nil || !strings.Contains(sent, c.want) || c.want == "" && strings.Contains(sent, "thinkingConfig") {
			t.Errorf(`got %s %q: %v %s, want got.err = nil and strings.Contains(sent, c.want) and (c.want != "" or not strings.Contains(sent, "thinkingConfig"))`,
				c.model, c.effort, got.err, sent)
		}
	}
}
