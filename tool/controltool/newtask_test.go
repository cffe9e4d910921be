package controltool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/tool"
)

// Models leave out what may be null, and give a list where text is wanted.
func TestNewTask(t *testing.T) {
	for input, want := range map[string]tool.Subtask{
		`{"mode":" code ","message":"do it","todos":null}`:                                    {Mode: "code", Message: "do it"},
		`{"mode":"code","message":" do\nit "}`:                                                {Mode: "code", Message: " do\nit "},
		`{"mode":"ask","message":"x","todos":"[ ] a"}`:                                        {Mode: "ask", Message: "x", Todos: "[ ] a"},
		`{"mode":"ask","message":"x","todos":[{"content":"a","status":"completed"},"[ ] b"]}`: {Mode: "ask", Message: "x", Todos: "[x] a\n[ ] b"},
		`{"mode":"ask","message":"x","todos":"","more":{"unknown":true}}`:                     {Mode: "ask", Message: "x"},
	} {
		ask, res, wrong := planned(t, NewNewTask(), input)
		if wrong != "" || res.Subtask == nil {
			t.Errorf("%s: got %q, want wrong = \"\" and res.Subtask != nil", input, wrong)
			continue
		}
		if d := cmp.Diff(want, *res.Subtask); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", input, d)
		}
		if ask.Tool != "new_task" || ask.Kind != "tool" || strings.ContainsAny(ask.Title, "\n\x1b") {
			t.Errorf(`%s: got %+v, want ask.Tool = "new_task" and ask.Kind = "tool" and not strings.ContainsAny(ask.Title, "\n\x1b")`,
				input, ask)
		}
	}
	for input, says := range map[string]string{
		``: "JSON object", `[]`: "JSON object", `{}`: "mode", `{"mode":7,"message":"x"}`: "mode", `{"mode":"code"}`: "message",
		`{"mode":"code","message":"  "}`: "message", `{"mode":"code","message":["x"]}`: "message",
		`{"mode":"code","message":"x","todos":5}`: "todos", `{"mode":"code","message":"x","todos":{"a":1}}`: "todos",
		`{"mode":"code","message":"x","todos":[7]}`: "todos",
	} {
		if _, _, wrong := planned(t, NewNewTask(), input); !strings.Contains(wrong, says) {
			t.Errorf("%s: got %q, want strings.Contains(wrong, says)", input, wrong)
		}
	}
	ask, _, _ := planned(t, NewNewTask(), `{"mode":"code","message":"a\u001b[2K\u202eb\nsecond line"}`)
	if ask.Title != "new_task code: a\ufffd[2K\ufffdb" {
		t.Errorf("got %q, want ask.Title = \"new_task code: a\\ufffd[2K\\ufffdb\"", ask.Title)
	}
}
