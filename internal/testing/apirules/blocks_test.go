package apirules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/llm"
)

// judged is the verdict on a block at the place where its role speaks: part of the
// error, "" for none.
func judged(t *testing.T, role, block string) error {
	t.Helper()
	c := conversation(`"begin"`, `[{"type":"tool_use","id":"open","name":"n","input":{}}]`, `[{"type":"tool_result","tool_use_id":"open","content":"r"}]`)
	if role == "user" {
		c[2].Content = []byte(`[{"type":"tool_result","tool_use_id":"open","content":"r"},` + block + `]`)
	} else {
		c[1].Content = []byte(`[` + block + `,{"type":"tool_use","id":"open","name":"n","input":{}}]`)
	}
	return Validate(c)
}

func TestBlocks(t *testing.T) {
	const image = `{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}`
	for _, tt := range []struct{ role, block, part string }{
		{"user", `{"type":"text","text":"a"}`, ""},
		{"user", `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`, ""},
		{"user", `{"type":"text"}`, "non-whitespace"},
		{"user", `{"type":"text","text":null}`, "non-whitespace"},
		{"user", `{"type":"text","text":"\u2003\n"}`, "non-whitespace"},
		{"user", `{"type":"text","text":"a","partial":false}`, `extra member "partial"`},
		{"user", `{"type":"image","source":` + image + `}`, ""},
		{"user", `{"type":"image","source":` + image + `,"cache_control":null}`, ""},
		{"user", `{"type":"image"}`, "source must be an object"},
		{"user", `{"type":"image","source":null}`, "not supported"},
		{"user", `{"type":"image","source":{"type":"url","url":"https://x"}}`, "not supported"},
		{"user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}`, "not base64"},
		{"user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"a b="}}`, "not base64"},
		{"user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA","x":1}}`, `extra member "x"`},
		{"user", `{"type":"image","source":` + image + `,"alt":"x"}`, `extra member "alt"`},
		{"user", `{"type":"thinking","thinking":"a","signature":"s"}`, "not allowed"},
		{"user", `{"type":"tool_use","id":"a","name":"n","input":{}}`, "not allowed"},
		{"user", `{"type":"document","source":{}}`, "not allowed"},
		{"user", `{"text":"a"}`, "not allowed"},
		{"user", `{"type":"user"}`, "not allowed"},
		{"user", `{"type":7}`, "not allowed"},
		{"user", `"text"`, "must be an object"},
		{"user", `null`, "must be an object"},
		{"user", `["text"]`, "must be an object"},
		{"assistant", `{"type":"text","text":"a"}`, ""},
		{"assistant", `{"type":"thinking","thinking":"","signature":"s"}`, ""},
		{"assistant", `{"type":"thinking","thinking":"a","signature":""}`, "signature"},
		{"assistant", `{"type":"thinking","signature":"s"}`, "signature"},
		{"assistant", `{"type":"thinking","thinking":"a","signature":"s","cache_control":null}`, "extra member"},
		{"assistant", `{"type":"redacted_thinking","data":"x"}`, ""},
		{"assistant", `{"type":"redacted_thinking"}`, "needs data"},
		{"assistant", `{"type":"redacted_thinking","data":"x","thinking":""}`, "extra member"},
		{"assistant", `{"type":"image","source":` + image + `}`, "not allowed"},
		{"assistant", `{"type":"tool_result","tool_use_id":"open","content":"r"}`, "not allowed"},
	} {
		check(t, tt.role+" "+tt.block, judged(t, tt.role, tt.block), tt.part)
	}
}

func check(t *testing.T, what string, err error, part string) {
	t.Helper()
	if part == "" && err != nil || part != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), part)) {
		t.Errorf("%s: %v, want %q", what, err, part)
	}
}

func TestCallsAndTheirResults(t *testing.T) {
	const use, result = `"type":"tool_use","id":"a","name":"n"`, `"type":"tool_result","tool_use_id":"a"`
	for _, tt := range []struct{ use, result, part string }{
		{use + `,"input":{"path":"x"}`, result + `,"content":"r"`, ""},
		{use + `,"input":{}`, result, ""},
		{use + `,"input":{}`, result + `,"content":""`, ""},
		{use + `,"input":{}`, result + `,"content":[]`, ""},
		{use + `,"input":{}`, result + `,"content":[{"type":"text","text":"x"}],"is_error":true`, ""},
		{use + `,"input":{}`, result + `,"content":"x","is_error":false`, ""},
		{use + `,"input":{}`, result + `,"content":"","is_error":false`, ""},
		{use, result, "input must be an object"},
		{use + `,"input":null`, result, "input must be an object"},
		{use + `,"input":[]`, result, "input must be an object"},
		{use + `,"input":{},"partial":true`, result, `extra member "partial"`},
		{`"type":"tool_use","id":"a","name":"","input":{}`, result, "pattern"},
		{`"type":"tool_use","id":"a","name":"a b","input":{}`, result, "pattern"},
		{`"type":"tool_use","id":"a","name":"` + strings.Repeat("n", 129) + `","input":{}`, result, "pattern"},
		{`"type":"tool_use","id":"","name":"n","input":{}`, result, "pattern"},
		{`"type":"tool_use","name":"n","input":{}`, result, "pattern"},
		{use + `,"input":{}`, `"type":"tool_result","content":"r"`, "pattern"},
		{use + `,"input":{}`, `"type":"tool_result","tool_use_id":"b","content":"r"`, "unexpected tool_result"},
		{use + `,"input":{}`, result + `,"content":null`, "string or a list"},
		{use + `,"input":{}`, result + `,"content":7`, "string or a list"},
		{use + `,"input":{}`, result + `,"content":{"type":"text"}`, "string or a list"},
		{use + `,"input":{}`, result + `,"content":[{"type":"text","text":""}]`, "non-whitespace"},
		{use + `,"input":{}`, result + `,"content":[{` + result + `}]`, "must not hold another"},
		{use + `,"input":{}`, result + `,"content":[{"type":"tool_use","id":"q","name":"n","input":{}}]`, "not allowed"},
		{use + `,"input":{}`, result + `,"content":["x"]`, "must be an object"},
		{use + `,"input":{}`, result + `,"content":"x","is_error":null`, "true or false"},
		{use + `,"input":{}`, result + `,"content":"x","is_error":1`, "true or false"},
		{use + `,"input":{}`, result + `,"content":[],"is_error":true`, "cannot be empty"},
		{use + `,"input":{}`, result + `,"is_error":true`, ""},
		{use + `,"input":{}`, result + `,"content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}],"is_error":true`, "must be text"},
		{use + `,"input":{}`, result + `,"content":"x","ts":1`, `extra member "ts"`},
	} {
		check(t, tt.use+" "+tt.result, Validate(conversation(`"begin"`, "[{"+tt.use+"}]", "[{"+tt.result+"}]")), tt.part)
	}
}

// Text that other parsers would stumble over, wherever it stands.
func TestText(t *testing.T) {
	for text, part := range map[string]string{
		`"a"`: "", `"\ud83d\ude00"`: "", `"\uD83D\uDE00\\ud800\\\\"`: "", `"\u0000"`: "", "\"a\u2028\"": "",
		`"\ud800"`: "surrogate", `"\udc00\ud800"`: "surrogate", `"\ud800\ud800\udc00"`: "surrogate", `"\ud800\\udc00"`: "surrogate", `"\ud800\n"`: "surrogate", `"\uDFFF"`: "surrogate",
		"\"\xff\"": "UTF-8", "\"\xed\xa0\x80\"": "UTF-8", `"a`: "not JSON", "\"a\nb\"": "not JSON", ``: "not JSON", `"a" "b"`: "not JSON", `"\x"`: "not JSON",
		`7`: "string or a list", `{}`: "string or a list", `null`: "string or a list", `true`: "string or a list",
	} {
		check(t, text, Validate(conversation(text)), part)
		check(t, "a result of "+text, Validate(conversation(`"x"`, `[{"type":"tool_use","id":"a","name":"n","input":{}}]`, `[{"type":"tool_result","tool_use_id":"a","content":`+text+`}]`)), part)
	}
}

// The place is named, so that a failing test says where to look.
func TestErrorsNameThePlace(t *testing.T) {
	err := Validate(conversation(`"a"`, `[{"type":"text","text":"b"},{"type":"text","text":" "}]`, `"c"`))
	if err == nil || !strings.Contains(err.Error(), "messages.1.content.1:") {
		t.Error(err)
	}
	err = Validate(conversation(`"a"`, `[{"type":"tool_use","id":"a","name":"n","input":{}}]`, `[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},7]}]`))
	if err == nil || !strings.Contains(err.Error(), "messages.2.content.0.content.1:") {
		t.Error(err)
	}
}

// good draws a conversation that the API takes.
func good(t *rapid.T) []llm.Message {
	out := conversation(`"begin"`)
	id := 0
	for range rapid.IntRange(1, 5).Draw(t, "turns") {
		calls, results := []string{`{"type":"text","text":"so"}`}, []string{}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			id++
			calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":"n","input":{}}`, id))
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c%d","content":"r"}`, id))
		}
		results = append(rapid.Permutation(results).Draw(t, "order"), `{"type":"text","text":"go on"}`)
		out = append(out, llm.Message{Role: "assistant", Content: []byte("[" + strings.Join(calls, ",") + "]")},
			llm.Message{Role: "user", Content: []byte("[" + strings.Join(results, ",") + "]")})
	}
	return out
}

// Results may come in any order; but take any message away, double or swap one, give
// it to the other role, or leave out a result, and it is refused.
func TestOneMistakeIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := good(t)
		if err := Validate(c); err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(c)-1).Draw(t, "at")
		bad := slices.Clone(c)
		what := rapid.SampledFrom([]string{"removed", "doubled", "given to the other", "without its results", "cut off"}).Draw(t, "mistake")
		switch what {
		case "removed":
			bad = slices.Delete(bad, at, at+1)
		case "doubled":
			bad = slices.Insert(bad, at, bad[at])
		case "given to the other":
			bad[at].Role = map[string]string{"user": "assistant", "assistant": "user"}[bad[at].Role]
		case "without its results":
			if bad[at].Role != "user" || !strings.Contains(string(bad[at].Content), "tool_result") {
				return
			}
			bad[at].Content = []byte(`[{"type":"text","text":"go on"}]`)
		case "cut off":
			bad[at].Content = bad[at].Content[:len(bad[at].Content)-1]
		}
		if err := Validate(bad); !errors.Is(err, ErrInvalid) {
			t.Fatalf("message %d %s, and it is %v: %s", at, what, err, bad[at%max(len(bad), 1)].Content)
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add(`[{"type":"tool_use","id":"a","name":"n","input":{}}]`, `[{"type":"tool_result","tool_use_id":"a","content":"\ud800"}]`)
	f.Add(`"\u`, "\xff")
	f.Fuzz(func(_ *testing.T, one, two string) {
		_ = Validate(conversation(`"begin"`, one, two)) // nothing may panic
	})
}
