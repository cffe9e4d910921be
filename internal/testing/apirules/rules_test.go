package apirules

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/llm"
)

func conversation(contents ...string) (out []llm.Message) {
	for i, c := range contents {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		out = append(out, llm.Message{Role: role, Content: []byte(c)})
	}
	return out
}

func TestValidate(t *testing.T) {
	const use = `[{"type":"tool_use","id":"a","name":"n","input":{}}]`
	const res = `[{"type":"tool_result","tool_use_id":"a","content":"r"}]`
	for _, tc := range []struct {
		name, part string // part of the error, "" = valid
		in         []llm.Message
	}{
		{"string", "", conversation(`"hi"`)},
		{"tools", "", conversation(`"hi"`, use, res)},
		{"emoji", "", conversation(`"\ud83d\ude00 \\ud800"`)},
		{"none", "at least one", nil},
		{"starts with the model", "must be \"user\"", []llm.Message{{Role: "assistant", Content: []byte(`"a"`)}}},
		{"same role twice", "alternate", []llm.Message{{Role: "user", Content: []byte(`"a"`)}, {Role: "user", Content: []byte(`"a"`)}}},
		{"ends with the model", "last message", conversation(`"hi"`, `"a"`)},
		{"blank", "empty", conversation(`" "`)},
		{"blank block", "non-whitespace", conversation(`[{"type":"text","text":"\n"}]`)},
		{"no blocks", "at least one block", conversation(`[]`)},
		{"unanswered", "no tool_result", conversation(`"hi"`, use, `"x"`)},
		{"orphan", "unexpected", conversation(res)},
		{"twice", "unexpected", conversation(`"hi"`, use, `[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"}]`)},
		{"not in front", "come first", conversation(`"hi"`, use, `[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]`)},
		{"id again", "unique", conversation(`"hi"`, use, res, use, res)},
		{"bad id", "pattern", conversation(`"hi"`, `[{"type":"tool_use","id":"a.b","name":"n","input":{}}]`, `"x"`)},
		{"input", "object", conversation(`"hi"`, `[{"type":"tool_use","id":"a","name":"n","input":"{}"}]`, res)},
		{"extra", "not permitted", conversation(`[{"type":"text","text":"a","ts":1}]`)},
		{"lone surrogate", "surrogate", conversation(`"\ud83d x"`)},
		{"unsigned thinking", "signature", conversation(`"hi"`, `[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}]`, `"x"`)},
		{"final thinking", "final block", conversation(`"hi"`, `[{"type":"thinking","thinking":"a","signature":"s"}]`, `"x"`)},
		{"reasoning", "not allowed", conversation(`"hi"`, `[{"type":"reasoning","text":"a"}]`, `"x"`)},
		{"image of the model", "not allowed", conversation(`"hi"`, `[{"type":"image"}]`, `"x"`)},
		{"media", "not supported", conversation(`[{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AAAA"}}]`)},
		{"empty error", "is_error", conversation(`"hi"`, use, `[{"type":"tool_result","tool_use_id":"a","content":"","is_error":true}]`)},
		{"not JSON", "JSON", conversation(`{`)},
	} {
		err := Validate(tc.in)
		if tc.part == "" {
			if err != nil {
				t.Errorf("%s: got %v, want no error", tc.name, err)
			}
			continue
		}
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tc.part) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.part)
		}
	}
}

// Calls and results belong to neighbours: an answer that comes a turn late, or early,
// is none.
func TestAnswersComeAtOnce(t *testing.T) {
	const use = `[{"type":"tool_use","id":"a","name":"n","input":{}}]`
	const res = `[{"type":"tool_result","tool_use_id":"a","content":"r"}]`
	for name, in := range map[string][]llm.Message{
		"late":         conversation(`"hi"`, use, `"wait"`, `"so"`, res),
		"early":        conversation(res, use, `"x"`),
		"never":        conversation(`"hi"`, use, `"x"`, `"y"`, `"z"`),
		"to another":   conversation(`"hi"`, use, `[{"type":"tool_result","tool_use_id":"b","content":"r"}]`),
		"to the first": conversation(`"hi"`, use, res, `[{"type":"tool_use","id":"b","name":"n","input":{}}]`, res),
		"two of one":   conversation(`"hi"`, `[{"type":"tool_use","id":"a","name":"n","input":{}},{"type":"tool_use","id":"a","name":"n","input":{}}]`, res),
	} {
		if err := Validate(in); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want errors.Is(err, ErrInvalid)", name, err)
		}
	}
}

func ExampleValidate() {
	err := Validate([]llm.Message{
		{Role: "user", Content: []byte(`"list the files"`)},
		{Role: "assistant", Content: []byte(`[{"type":"tool_use","id":"t1","name":"list_files","input":{}}]`)},
		{Role: "user", Content: []byte(`"well?"`)},
	})
	fmt.Println(err)
	// Output: invalid request: messages.2: tool_use "t1" has no tool_result in the next message
}
