package term

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
)

func ask(t *testing.T, q api.QuestionOpened, input string) (Reply, string, error) {
	t.Helper()
	var out strings.Builder
	p := NewPrompter(New(&out, Options{Width: 30}), strings.NewReader(input))
	r, err := p.Ask(context.Background(), q)
	return r, out.String(), err
}

func TestApproval(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	tests := []struct {
		name, input string
		want        Reply
	}{
		{"once", "y\n", Reply{Approve: &yes}},
		{"always", "a\n", Reply{Approve: &yes, Always: true}},
		{"no with a reason", "n use b\n", Reply{Approve: &no, Text: "use b"}},
		{"no, reason asked", "n\nuse b\n", Reply{Approve: &no, Text: "use b"}},
		{"no without a reason", "n\n\n", Reply{Approve: &no}},
		{"Enter is never yes", "\n\ny\n", Reply{Approve: &yes}},
		{"words are not an answer", "go ahead\nq\n", Reply{Stop: true}},
		{"stop", "q\n", Reply{Stop: true}},
		{"with feedback", "y but be quick\n", Reply{Approve: &yes, Text: "but be quick"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := ask(t, api.QuestionOpened{Kind: "approval", Text: "write a", Always: "all writes"}, tt.input)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("err %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// "always" is no answer to a question that offers none.
func TestAlwaysIsOfferedWithItsPattern(t *testing.T) {
	t.Parallel()
	q := api.QuestionOpened{Kind: "approval", Text: "execute_command git log", Command: "git log", Always: "commands that begin with: git log"}
	r, out, err := ask(t, q, "a\n")
	if err != nil || !r.Always || !strings.Contains(out, "  a: always allow commands that begin with: git log\n") || !strings.Contains(out, "a always") {
		t.Errorf("got %+v, %v\n%s, want no error and r.Always and strings.Contains(out, \" a: always allow commands that begin with: git log\\n\") and strings.Contains(out, \"a always\")",
			r, err, out)
	}
	q.Always = ""
	r, out, err = ask(t, q, "a\nalways\ny\n")
	if err != nil || r.Always || r.Approve == nil || !*r.Approve || strings.Contains(out, "a always") {
		t.Errorf("got %+v, %v\n%s, want no error and not r.Always and r.Approve != nil and *r.Approve and not strings.Contains(out, \"a always\")",
			r, err, out)
	}
}

// A command that does not fit on a screen is cut there, its last words are one key away, and
// what Roost says of it is not cut with it.
func TestApprovalOfALongCommand(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"lines": strings.Repeat("true\n", 40) + "rm last",
		"wide":  strings.Repeat("true; ", 400) + "rm last",
	} {
		text := "execute_command «in /elsewhere»\n    " + strings.ReplaceAll(command, "\n", "\n    ") + "\nit may change a"
		_, out, _ := ask(t, api.QuestionOpened{Kind: "approval", Text: text, Command: command, Dir: "/elsewhere"}, "d\nq\n")
		short, whole, _ := strings.Cut(out, " > ")
		if strings.Contains(short, "rm last") || !strings.Contains(short, "more lines, d shows all") ||
			!strings.Contains(short, "«in /elsewhere»") || !strings.Contains(short, "it may change a") {
			t.Errorf("%s: the first showing:\n%s", name, short)
		}
		rows := 0
		for line := range strings.Lines(short) {
			rows += 1 + Columns(line)/30
		}
		if rows > screenLines+15 {
			t.Errorf("%s: the first showing takes %d rows", name, rows)
		}
		if !strings.Contains(whole, "rm last") {
			t.Errorf("%s: d does not show all:\n%s", name, whole)
		}
	}
}

func TestApprovalEndOfInputIsNotYes(t *testing.T) {
	t.Parallel()
	if _, _, err := ask(t, api.QuestionOpened{Kind: "approval", Text: "x"}, "\n"); !errors.Is(err, ErrNoInput) {
		t.Errorf("err %v, want ErrNoInput", err)
	}
}

func TestApprovalShowsAll(t *testing.T) {
	t.Parallel()
	_, out, _ := ask(t, api.QuestionOpened{Kind: "approval", Text: "echo harmless and quite a long line\nrm -r \u202ex"}, "q\n")
	for _, want := range []string{"? echo harmless and quite a long line\n", "  rm -r x\n", `\u202e`} {
		if !strings.Contains(out, want) {
			t.Errorf("prompt lacks %q:\n%s", want, out)
		}
	}
}

func TestApprovalDiff(t *testing.T) {
	t.Parallel()
	diff := strings.Repeat("+line\n", 30) + "+last\n"
	_, out, _ := ask(t, api.QuestionOpened{Kind: "approval", Text: "x", Diff: diff}, "d\nq\n")
	short, whole, _ := strings.Cut(out, " > ")
	if strings.Contains(short, "+last") || !strings.Contains(short, "11 more lines") {
		t.Errorf("the first showing is not cut:\n%s", short)
	}
	if !strings.Contains(whole, "+last") {
		t.Errorf("d does not show all:\n%s", whole)
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	q := api.QuestionOpened{Kind: "followup", Text: "which?", Choices: []string{"this", "that"}}
	for input, want := range map[string]Reply{
		"2\n":       {Text: "that"},
		"3\n":       {Text: "3"},
		"neither\n": {Text: "neither"},
		"\n1\n":     {Text: "this"},
		"q\n":       {Stop: true},
	} {
		got, _, err := ask(t, q, input)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: err %v (-want +got):\n%s", input, err, diff)
		}
	}
}

// What a choice leads to is seen before it is chosen, and no name can pass for more lines.
func TestAChoiceThatLeadsToAMode(t *testing.T) {
	t.Parallel()
	q := api.QuestionOpened{Kind: "followup", Text: "which?", Choices: []string{"stay", "build", "more"}, Modes: []string{"", "co\x1b[2Jde\n3. x"}}
	got, shown, err := ask(t, q, "2\n")
	if err != nil || got.Text != "build" {
		t.Errorf("got %+v %v, want no error and got.Text = \"build\"", got, err)
	}
	if !strings.Contains(shown, "  1. stay\n") || !strings.Contains(shown, "  2. build (code 3. x)\n") || !strings.Contains(shown, "  3. more\n") {
		t.Errorf(`got %q, want strings.Contains(shown, " 1. stay\n") and strings.Contains(shown, " 2. build (code 3. x)\n") and strings.Contains(shown, " 3. more\n")`,
			shown)
	}
}

func TestPromptEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := NewPrompter(New(io.Discard, Options{}), r)
	if _, err := p.Ask(ctx, api.QuestionOpened{Kind: "followup", Text: "?"}); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
}
