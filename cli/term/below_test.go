package term

import (
	"context"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/view"
)

// A subtask's lines are marked as such, whatever they come from, and its messages are
// not taken for those of the task above it that have the same numbers.
func TestASubtasksLines(t *testing.T) {
	var out strings.Builder
	d := New(&out, Options{Live: true, Width: 60})
	show := func(d *Display, typ, data string) { d.Show(typ, stamped(1, data)) }
	text := `{"history":"ui","message":5,"content":{"ts":1,"type":"say","say":"text","text":"","partial":true}}`
	show(d, "message.added", text)
	show(d, "message.delta", `{"message":5,"offset":0,"text":"above"}`)
	show(d, "subtask.started", `{"child":"kid","mode":"ask","title":"look at\u001b[2K it"}`)
	below := d.Below()
	show(below, "message.added", text)
	show(below, "message.delta", `{"message":5,"offset":0,"text":"one\ntw"}`)
	show(below, "message.delta", `{"message":5,"offset":6,"text":"o\n\nthree"}`)
	below.Flush()
	below.Below().Line(view.Dim, strings.Repeat("x", 80))
	show(below, "notice", `{"text":"mind the step"}`)
	below.Flush()
	d.Line(view.Plain, "done")
	want := "above\n· subtask kid in ask mode: look at it\n│ one\n│ two\n│ \n│ three\n│ │ " +
		Cut(strings.Repeat("x", 80), 56) + "\n│ ! mind the step\ndone\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A question of a subtask is asked among its lines; what the person types is read by
// one reader, whoever asks.
func TestASubtasksQuestion(t *testing.T) {
	var out strings.Builder
	d := New(&out, Options{})
	p := NewPrompter(d, strings.NewReader("first\nsecond\nthird\n"))
	for _, c := range []struct {
		p    *Prompter
		want string
	}{{p.On(d.Below()), "first"}, {p, "second"}, {p.On(d.Below().Below()), "third"}} {
		if r, err := c.p.Ask(context.Background(), api.QuestionOpened{Kind: "followup", Text: "which?"}); err != nil || r.Text != c.want {
			t.Errorf("%+v, %v, want %s", r, err, c.want)
		}
	}
	if got := strings.Count(out.String(), "│ ? which?"); got != 2 || !strings.HasPrefix(out.String(), "│ ? which?") || !strings.Contains(out.String(), "│ │ ? which?") {
		t.Errorf(`got %q, want got = 2 and strings.HasPrefix(out.String(), "│ ? which?") and strings.Contains(out.String(), "│ │ ? which?")`,
			out.String())
	}
}
