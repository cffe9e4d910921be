package script_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/script"
)

const ofTasks = `
- text: everybody's first
- text: everybody's second
- task: part ONE
- error: {status: 529}
- text: one's first
- text: one's second
- task: part
- text: another part's first
- task: nothing yet
`

// Each task is played its own turns, by the text of its first message; the same text
// elsewhere in the task does not count.
func TestTurnsOfATask(t *testing.T) {
	s, err := script.Parse([]byte(ofTasks))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		first    string
		replies  int
		failures int
		want     string
	}{
		{"the words", 0, 0, "everybody's first"},
		{"the words", 1, 0, "everybody's second"},
		{"the words", 2, 0, "attempt_completion"},
		{"do part ONE now", 0, 0, "529"},
		{"do part ONE now", 0, 1, "one's first"},
		{"do part ONE now", 1, 0, "one's second"},
		{"do part ONE now", 2, 0, "attempt_completion"},
		{"a part of it", 0, 0, "another part's first"},
		{"nothing yet", 0, 0, "attempt_completion"},
	} {
		first, _ := json.Marshal(c.first)
		req := llm.Request{Replies: c.replies, Failures: c.failures, Messages: []llm.Message{
			{Role: "user", Content: first}, {Role: "assistant", Content: json.RawMessage(`"do part ONE"`)}, {Role: "user", Content: json.RawMessage(`"part ONE"`)},
		}}
		got := ""
		for chunk, err := range s.Stream(t.Context(), req) {
			switch chunk := chunk.(type) {
			case llm.TextDelta:
				got += chunk.Text
			case llm.ToolDelta:
				got += chunk.Name
			}
			if err != nil {
				got += err.Error()
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q, turn %d: %q, want %q", c.first, c.replies, got, c.want)
		}
	}
	if s.Turns() != 2 {
		t.Errorf("%d turns", s.Turns())
	}
}

func TestAnEntryWithTaskIsNoTurn(t *testing.T) {
	for text, says := range map[string]string{
		"- {task: x, text: y}":            "must hold no turn",
		"- {task: x, tools: [{name: a}]}": "must hold no turn",
		"- {task: \"  \"}":                "task is empty",
		"- {task: [x]}":                   "",
	} {
		if _, err := script.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error and strings.Contains(err.Error(), says)", text, err)
		}
	}
}
