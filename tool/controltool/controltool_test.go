package controltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

func TestQuestion(t *testing.T) {
	tests := []struct {
		name, input, ask string
		choices          []tool.Choice
	}{
		{"objects", `{"question":"Which?","follow_up":[{"text":"a","mode":"code"},{"text":"b","mode":null},{"text":"c"}]}`,
			`{"question":"Which?","suggest":[{"answer":"a","mode":"code"},{"answer":"b","mode":null},{"answer":"c"}]}`, []tool.Choice{{Answer: "a", Mode: "code"}, {Answer: "b"}, {Answer: "c"}}},
		{"strings", `{"question":"Q","follow_up":["a","b"]}`, `{"question":"Q","suggest":[{"answer":"a"},{"answer":"b"}]}`, []tool.Choice{{Answer: "a"}, {Answer: "b"}}},
		{"older name", `{"question":"Q","follow_up":[{"answer":"a"}]}`, `{"question":"Q","suggest":[{"answer":"a"}]}`, []tool.Choice{{Answer: "a"}}},
		{"elements", `{"question":"Q","follow_up":"<suggest>a &lt; b</suggest>\n<suggest mode=\"code\"> c </suggest>"}`, `{"question":"Q","suggest":[{"answer":"a < b"},{"answer":"c","mode":"code"}]}`, []tool.Choice{{Answer: "a < b"}, {Answer: "c", Mode: "code"}}},
		{"array in a string", `{"question":"Q","follow_up":"[{\"text\":\"a\"}]"}`, `{"question":"Q","suggest":[{"answer":"a"}]}`, []tool.Choice{{Answer: "a"}}},
		{"bare string", `{"question":"Q","follow_up":"just this"}`, `{"question":"Q","suggest":[{"answer":"just this"}]}`, []tool.Choice{{Answer: "just this"}}},
		{"none", `{"question":"Q"}`, `{"question":"Q","suggest":[]}`, nil},
		{"null", `{"question":"Q","follow_up":null}`, `{"question":"Q","suggest":[]}`, nil},
		{"empty string", `{"question":"Q","follow_up":" "}`, `{"question":"Q","suggest":[]}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := NewQuestion().Plan(t.Context(), tool.Env{}, json.RawMessage(tt.input))
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Ask(); got.Kind != "followup" || got.Text != tt.ask {
				t.Errorf("ask %q: %s", got.Kind, got.Text)
			}
			if diff := cmp.Diff(tt.choices, res.Choices); diff != "" || res.Question == "" || res.Completed {
				t.Errorf("got %+v\n%s, want diff = \"\" and res.Question != \"\" and not res.Completed", res, diff)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	p, err := NewCompletion().Plan(t.Context(), tool.Env{}, json.RawMessage(`{"result":"Done.\n"}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Run(t.Context(), nil)
	if err != nil || !res.Completed || res.Text != "Done.\n" || res.Question != "" {
		t.Errorf("got %+v, %v", res, err)
	}
	if got := p.Ask(); got.Kind != "completion_result" || got.Text != "" {
		t.Errorf("ask: %+v", got)
	}
}

func TestMistakesOfTheModel(t *testing.T) {
	for _, tt := range []struct {
		tool  tool.Tool
		input string
	}{
		{NewQuestion(), ``}, {NewQuestion(), `[]`}, {NewQuestion(), `{}`}, {NewQuestion(), `{"question":" "}`}, {NewQuestion(), `{"question":3}`}, {NewQuestion(), `{"question":"Q","follow_up":3}`},
		{NewQuestion(), `{"question":"Q","follow_up":[3]}`}, {NewQuestion(), `{"question":"Q","follow_up":[{}]}`}, {NewQuestion(), `{"question":"Q","follow_up":[{"text":"a","mode":3}]}`},
		{NewCompletion(), `{`}, {NewCompletion(), `"x"`}, {NewCompletion(), `{}`}, {NewCompletion(), `{"result":""}`}, {NewCompletion(), `{"result":[]}`},
	} {
		_, err := tt.tool.Plan(t.Context(), tool.Env{}, json.RawMessage(tt.input))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || wrong.Reason == "" || wrong.Tool != tt.tool.Spec().Name {
			t.Errorf("%s: got %v, want errors.As(err, &wrong) and wrong.Reason != \"\" and wrong.Tool = tt.tool.Spec().Name",
				tt.input, err)
		}
	}
}

func TestSpecs(t *testing.T) {
	for _, tl := range []tool.Tool{NewQuestion(), NewCompletion()} {
		if s := tl.Spec(); !esjson.Valid(s.Schema) || s.Class != tool.Control || s.Description == "" {
			t.Errorf("got %+v, want esjson.Valid(s.Schema) and s.Class = tool.Control and s.Description != \"\"", s)
		}
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add(`{"question":"Q","follow_up":"<suggest mode='x'>a</suggest>"}`)
	f.Fuzz(func(t *testing.T, in string) {
		p, err := NewQuestion().Plan(t.Context(), tool.Env{}, json.RawMessage(in))
		if err == nil && !esjson.Valid([]byte(p.Ask().Text)) {
			t.Fatalf("ask is not JSON: %s", p.Ask().Text)
		}
	})
}

func ExampleNewQuestion() {
	p, err := NewQuestion().Plan(context.Background(), tool.Env{}, json.RawMessage(`{"question":"Go on?","follow_up":[{"text":"Yes","mode":null}]}`))
	fmt.Println(p.Ask().Text, err)
	// Output: {"question":"Go on?","suggest":[{"answer":"Yes","mode":null}]} <nil>
}
