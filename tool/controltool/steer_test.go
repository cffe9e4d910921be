package controltool

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/roost-dev/roost/tool"
)

// planned plans a call and runs it; reason is why the model got it wrong.
func planned(t *testing.T, of tool.Tool, input string) (ask tool.Ask, res tool.Result, reason string) {
	t.Helper()
	p, err := of.Plan(t.Context(), tool.Env{}, json.RawMessage(input))
	var wrong *tool.InputError
	if errors.As(err, &wrong) {
		if wrong.Tool != of.Spec().Name {
			t.Errorf("the mistake is said of %s", wrong.Tool)
		}
		return ask, res, wrong.Reason
	}
	if err != nil {
		t.Fatal(err)
	}
	if res, err = p.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return p.Ask(), res, ""
}

func TestSwitchMode(t *testing.T) {
	for input, want := range map[string]struct{ mode, reason, title, text string }{
		`{"mode_slug":"code","reason":"to write"}`: {"code", "to write", "switch_mode code: to write", `{"tool":"switchMode","mode":"code","reason":"to write"}`},
		`{"mode_slug":" code ","reason":null}`:     {"code", "", "switch_mode code", `{"tool":"switchMode","mode":"code","reason":""}`},
		`{"mode_slug":"a\u001b[2K\u202eb\nc"}`:     {"a\x1b[2K\u202eb\nc", "", "switch_mode a\ufffd[2K\ufffdb", ""},
	} {
		ask, res, wrong := planned(t, NewSwitchMode(), input)
		if res.Mode != want.mode || res.Text != want.reason || ask.Title != want.title || want.text != "" && ask.Text != want.text || ask.Kind != "tool" || wrong != "" {
			t.Errorf(`%s: got %+v %+v %q, want res.Mode = want.mode and res.Text = want.reason and ask.Title = want.title and (want.text = "" or ask.Text = want.text) and ask.Kind = "tool" and wrong = ""`,
				input, ask, res, wrong)
		}
	}
	for _, input := range []string{``, `7`, `{}`, `{"mode_slug":7}`, `{"mode_slug":" "}`, `{"mode_slug":null,"reason":"x"}`} {
		if _, _, wrong := planned(t, NewSwitchMode(), input); !strings.Contains(wrong, "mode_slug") {
			t.Errorf("%s: got %q, want strings.Contains(wrong, \"mode_slug\")", input, wrong)
		}
	}
}

// Models give the list as text, as they should, or as the items that it becomes.
func TestTodoList(t *testing.T) {
	for input, want := range map[string]string{
		`{"todos":"[ ] a\n[x] b"}`:         "[ ] a\n[x] b",
		`{"todos":""}`:                     "",
		`{"todos":["[ ] a","- [x] b"]}`:    "[ ] a\n- [x] b",
		`{"todos":[]}`:                     "",
		`{"todos":[{"content":" a\nb "}]}`: "[ ] a b",
		`{"todos":[{"id":"1","content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}`: "[x] a\n[-] b\n[ ] c",
	} {
		ask, res, wrong := planned(t, NewTodoList(), input)
		if res.Todos == nil || *res.Todos != want || ask.Kind != "tool" || ask.Title != TodoListName || wrong != "" {
			t.Errorf(`%s: got %+v %+v %q, want res.Todos != nil and *res.Todos = %v and ask.Kind = "tool" and ask.Title = TodoListName and wrong = ""`,
				input, ask, res, wrong, want)
		}
	}
	for _, input := range []string{``, `[]`, `{}`, `{"todos":null}`, `{"todos":7}`, `{"todos":[7]}`, `{"todos":[{"content":""}]}`, `{"todos":[{"content":"a","status":"lost"}]}`} {
		if _, res, wrong := planned(t, NewTodoList(), input); !strings.Contains(wrong, "todos") || res.Todos != nil {
			t.Errorf("%s: got %q, want strings.Contains(wrong, \"todos\") and res.Todos = nil", input, wrong)
		}
	}
}
