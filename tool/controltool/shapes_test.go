package controltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// ask plans a question and gives it as it is shown and as it is answered.
func ask(t *testing.T, input string) (tool.Ask, tool.Result) {
	t.Helper()
	p, err := NewQuestion().Plan(t.Context(), tool.Env{}, json.RawMessage(input))
	if err != nil {
		t.Fatalf("%s: got %v, want no error", input, err)
	}
	res, err := p.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.Ask(), res
}

// Whatever shape the answers come in, the same answers give the same question.
func TestAllShapesSayTheSame(t *testing.T) {
	text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"yes", "a & b", "x < y", `"q"`, "it's", "é 😀", "two\nlines", "\\"}), 1, 3), func(p []string) string { return strings.Join(p, " ") })
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
	quote := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	rapid.Check(t, func(r *rapid.T) {
		question := text.Draw(r, "question")
		answers := rapid.SliceOfN(text, 1, 4).Draw(r, "answers")
		var objects, older, elements []string
		for _, a := range answers {
			objects = append(objects, fmt.Sprintf(`{"text":%s}`, quote(a)))
			older = append(older, fmt.Sprintf(`{"answer":%s}`, quote(a)))
			elements = append(elements, "<suggest>"+escape.Replace(a)+"</suggest>")
		}
		array := "[" + strings.Join(objects, ",") + "]"
		var first tool.Result
		for i, follow := range []string{array, quote(answers), "[" + strings.Join(older, ",") + "]", quote(array), quote(strings.Join(elements, "\n"))} {
			a, res := ask(t, fmt.Sprintf(`{"question":%s,"follow_up":%s}`, quote(question), follow))
			if i == 0 {
				first = res
			}
			if d := cmp.Diff(first, res); d != "" {
				r.Fatalf("%s: got %s, want d = \"\"", follow, d)
			}
			got, _ := esjson.GetString([]byte(a.Text), "question")
			if got != question || len(res.Choices) != len(answers) {
				r.Fatalf("asks %s", a.Text)
			}
		}
		for i, c := range first.Choices {
			if c.Answer != answers[i] {
				r.Fatalf("answer %q became %q", answers[i], c.Answer)
			}
		}
	})
}

func TestModesOfAnswers(t *testing.T) {
	for _, tt := range []struct{ follow, mode, shown string }{
		{`[{"text":"a","mode":"code"}]`, "code", `[{"answer":"a","mode":"code"}]`},
		{`[{"text":"a","mode":null}]`, "", `[{"answer":"a","mode":null}]`},
		{`[{"text":"a"}]`, "", `[{"answer":"a"}]`},
		{`[{"text":"a","mode":""}]`, "", `[{"answer":"a","mode":""}]`},
		{`"<suggest mode=\"ask\">a</suggest>"`, "ask", `[{"answer":"a","mode":"ask"}]`},
		{`"<suggest mode='ask' >a</suggest>"`, "ask", `[{"answer":"a","mode":"ask"}]`},
		{`"<suggest mode = \"a&amp;b\">a</suggest>"`, "a&b", `[{"answer":"a","mode":"a&b"}]`},
		{`"<suggest other=\"x\">a</suggest>"`, "", `[{"answer":"a"}]`},
		{`"<suggestion>a</suggestion>"`, "", `[{"answer":"<suggestion>a</suggestion>"}]`},
	} {
		a, res := ask(t, `{"question":"Q","follow_up":`+tt.follow+`}`)
		if len(res.Choices) != 1 || res.Choices[0].Mode != tt.mode {
			t.Errorf("%s: got %+v, want len(res.Choices) = 1 and res.Choices[0].Mode = tt.mode", tt.follow, res.Choices)
		}
		if got, _ := esjson.Get([]byte(a.Text), "suggest"); string(got) != tt.shown {
			t.Errorf("%s is shown as %s, want %s", tt.follow, got, tt.shown)
		}
	}
}

func TestTitleIsOneLine(t *testing.T) {
	for question, want := range map[string]string{
		"Go on?":                    "ask_followup_question Go on?",
		"  Go on?\nOr not?":         "ask_followup_question Go on?",
		"\n\nLate":                  "ask_followup_question Late",
		"red \x1b[31mtext":          "ask_followup_question red \ufffd[31mtext",
		"turn\u202eed\rround\u0085": "ask_followup_question turn\ufffded\ufffdround",
	} {
		in, _ := json.Marshal(map[string]string{"question": question})
		a, res := ask(t, string(in))
		if a.Title != want || res.Question != question {
			t.Errorf("%q: title %q, question %q", question, a.Title, res.Question)
		}
	}
}

func TestNothingIsDoneForACallerWhoLeft(t *testing.T) {
	why := errors.New("stopped by hand")
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, tt := range []struct {
		tool  tool.Tool
		input string
	}{
		{NewQuestion(), `{"question":"Q"}`},
		{NewCompletion(), `{"result":"R"}`},
	} {
		p, err := tt.tool.Plan(ctx, tool.Env{}, json.RawMessage(tt.input))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(ctx, nil); err != nil {
			t.Errorf("%s: got %v, want no error", tt.input, err)
		}
		cancelled, stop := context.WithCancelCause(ctx)
		stop(why)
		if _, err := p.Run(cancelled, nil); !errors.Is(err, why) {
			t.Errorf("%s: got %v, want errors.Is(err, why)", tt.input, err)
		}
	}
	cancel(nil)
}

// The result is the model's text to the byte: it is what the task ends with.
func TestCompletionKeepsItsText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := "x" + rapid.String().Draw(r, "result")
		in, err := json.Marshal(map[string]any{"result": want, "command": "open index.html"})
		if err != nil {
			r.Fatal(err)
		}
		p, err := NewCompletion().Plan(context.Background(), tool.Env{}, in)
		if err != nil {
			r.Fatal(err)
		}
		res, err := p.Run(context.Background(), nil)
		if err != nil || res.Text != want || !res.Completed || res.IsError {
			r.Fatalf("%q became %+v, %v", want, res, err)
		}
	})
}

func ExampleNewCompletion() {
	p, err := NewCompletion().Plan(context.Background(), tool.Env{}, json.RawMessage(`{"result":"All tests pass."}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := p.Run(context.Background(), nil)
	fmt.Println(res.Completed, res.Text, err)
	// Output: true All tests pass. <nil>
}
