package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
)

const mark = `,"cache_control":{"type":"ephemeral"}`

func body(t testing.TB, o anthropic.Options, req llm.Request) string {
	t.Helper()
	o.APIKey = key
	b, err := anthropic.New(o).Body(req)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Fatalf("not JSON: %s", b)
	}
	return string(b)
}

func TestBodyBytes(t *testing.T) {
	raw := func(role, s string) llm.Message { return llm.Message{Role: role, Content: json.RawMessage(s)} }
	got := body(t, anthropic.Options{}, llm.Request{
		Model: "claude-sonnet-4-5", System: "be <brief> & \"kind\"\n", MaxTokens: 100,
		Tools: []llm.ToolSpec{{Name: "b", Description: "d\t", Schema: json.RawMessage(`{"type":"object","z":1.0}`)}, {Name: "a"}},
		Messages: []llm.Message{
			raw("user", `"first \u00e9"`),
			raw("assistant", `[{"type":"tool_use","id":"t","name":"b","input":{"n":1.0,"e":1e2}}]`),
			raw("user", ` [ {"type":"tool_result","tool_use_id":"t","content":"x]}\\\""} , {"z":1,"type":"text","text":"y"} ] `),
			raw("assistant", `"ok"`),
			raw("user", `"go on"`),
		},
	})
	want := `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true` +
		`,"system":[{"type":"text","text":"be <brief> & \"kind\"\n"` + mark + `}]` +
		`,"tools":[{"name":"b","description":"d\t","input_schema":{"type":"object","z":1.0}},{"name":"a","input_schema":{"type":"object"}` + mark + `}]` +
		`,"messages":[{"role":"user","content":"first \u00e9"}` +
		`,{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"b","input":{"n":1.0,"e":1e2}}]}` +
		`,{"role":"user","content":[ {"type":"tool_result","tool_use_id":"t","content":"x]}\\\""} , {"z":1,"type":"text","text":"y"` + mark + `} ]}` +
		`,{"role":"assistant","content":"ok"}` +
		`,{"role":"user","content":[{"type":"text","text":"go on"` + mark + `}]}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMarkGoesWhereItMay(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"empty text is passed over", `[{"type":"text","text":"a"},{"type":"text","text":""}]`, `[{"type":"text","text":"a"` + mark + `},{"type":"text","text":""}]`},
		{"marked already", `[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`, `[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`},
		{"the words alone", `[{"type":"text","text":"\"cache_control\": no"}]`, `[{"type":"text","text":"\"cache_control\": no"` + mark + `}]`},
		{"image", `[{"type":"image","source":{"type":"base64","data":"=="}}]`, `[{"type":"image","source":{"type":"base64","data":"=="}` + mark + `}]`},
		{"empty string", `""`, `""`},
		{"empty array", `[]`, `[]`},
		{"empty object", `[{}]`, `[{}]`},
		{"one char", `"a"`, `[{"type":"text","text":"a"` + mark + `}]`},
	} {
		got := body(t, anthropic.Options{Model: "m"}, llm.Request{MaxTokens: 1, Messages: []llm.Message{{Role: "user", Content: json.RawMessage(c.content)}}})
		if want := `{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":` + c.want + `}]}`; got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
}

func TestThinking(t *testing.T) {
	raw := func(role, s string) llm.Message { return llm.Message{Role: role, Content: json.RawMessage(s)} }
	plain, medium := []llm.Message{user("a")}, anthropic.Options{Effort: "medium"}
	const thought = `{"type":"thinking","thinking":"x","signature":"s"},`
	loop := func(first string) []llm.Message {
		return []llm.Message{user("a"), raw("assistant", `[`+first+`{"type":"tool_use","id":"t","name":"b","input":{}}]`), raw("user", `[{"type":"tool_result","tool_use_id":"t","content":"x"}]`)}
	}
	for _, c := range []struct {
		name  string
		o     anthropic.Options
		model string
		ms    []llm.Message
		max   int
		want  string
	}{
		{"none", anthropic.Options{}, "m", plain, 9000, ""},
		{"budget", medium, "m", plain, 8000, `{"type":"enabled","budget_tokens":4000}`},
		{"small budget", anthropic.Options{Effort: "minimal"}, "m", plain, 9000, `{"type":"enabled","budget_tokens":1024}`},
		{"no room", anthropic.Options{Effort: "max"}, "m", plain, 1000, ""},
		{"just no room", anthropic.Options{Effort: "max"}, "m", plain, 1024, ""},
		{"adaptive", medium, "claude-opus-5-5", plain, 10, `{"type":"adaptive"}`},
		{"loop without", medium, "m", loop(``), 8000, ""},
		{"loop without, adaptive", medium, "claude-opus-5-5", loop(``), 8000, `{"type":"adaptive"}`},
		{"loop that skipped it", medium, "m", append(loop(thought), loop(``)[1:]...), 8000, `{"type":"enabled","budget_tokens":4000}`},
		{"loop that came to it late", medium, "m", append(loop(``), loop(thought)[1:]...), 8000, ""},
		{"words after a loop", medium, "m", append(loop(``), raw("assistant", `"b"`), user("c")), 8000, `{"type":"enabled","budget_tokens":4000}`},
		{"loop with", medium, "m", loop(thought), 8000, `{"type":"enabled","budget_tokens":4000}`},
		{"loop redacted", medium, "m", loop(`{"type":"redacted_thinking","data":"x"},`), 8000, `{"type":"enabled","budget_tokens":4000}`},
	} {
		c.o.Model = c.model
		got := body(t, c.o, llm.Request{MaxTokens: c.max, Messages: c.ms})
		if has := strings.Contains(got, `,"thinking":`+c.want); c.want != "" && !has || c.want == "" && strings.Contains(got, `"budget_tokens"`) {
			t.Errorf("%s: got %s, want (c.want = \"\" or has) and (c.want != \"\" or not strings.Contains(got, `\"budget_tokens\"`))",
				c.name, got)
		}
	}
}

func TestBadRequestsAreRefusedHere(t *testing.T) {
	for _, req := range []llm.Request{
		{}, {Model: "m"}, {Messages: []llm.Message{user("a")}},
		{Model: "m", Messages: []llm.Message{{Role: `user","x":"`, Content: json.RawMessage(`"a"`)}}},
		{Model: "m", Messages: []llm.Message{{Role: "user"}}},
	} {
		var e *llm.Error
		if _, err := anthropic.New(anthropic.Options{APIKey: key}).Body(req); !errors.As(err, &e) || e.Kind != llm.Invalid {
			t.Errorf("got %+v: %v, want errors.As(err, &e) and e.Kind = llm.Invalid", req, err)
		}
	}
}

// conversation is a history of n turns with stored blocks of every shape.
func conversation(n, size int) []llm.Message {
	ms := []llm.Message{user("do it")}
	for i := range n {
		out, _ := json.Marshal(strings.Repeat(fmt.Sprintf("line %d \"quoted\" \\ é\n", i), size/20+1))
		ms = append(ms,
			llm.Message{Role: "assistant", Content: json.RawMessage(fmt.Sprintf(`[{"type":"text","text":"step %d"},{"type":"tool_use","id":"t%d","name":"f","input":{"p":1.0}}]`, i, i))},
			llm.Message{Role: "user", Content: json.RawMessage(fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t%d","content":%s},{"type":"text","text":"env"}]`, i, out))})
	}
	return ms
}

// The bytes of a turn are, marks aside, the beginning of the bytes of the next.
func TestPrefixStaysOverTurns(t *testing.T) {
	s := llmtest.New(t)
	s.Answer(func(llmtest.Request) llmtest.Reply { return llmtest.Text("ok") })
	p := provider(t, s)
	tools := []llm.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}
	all := conversation(12, 300)
	for n := 1; n <= len(all); n += 2 {
		if o := collect(t, p, t.Context(), llm.Request{System: "sys", Tools: tools, Messages: all[:n]}); o.err != nil {
			t.Fatal(o.err)
		}
	}
	var before []byte
	for i, r := range s.Requests() {
		if n := bytes.Count(r.Body, []byte(mark)); n > 4 || i > 0 && n != 4 {
			t.Errorf("request %d has %d marks", i, n)
		}
		plain := bytes.ReplaceAll(r.Body, []byte(mark), nil)
		if before != nil && !bytes.HasPrefix(plain, bytes.TrimSuffix(before, []byte("]}"))) {
			t.Fatalf("request %d changed what was sent before", i)
		}
		if i > 0 {
			// What the request before wrote to the cache ends at its last mark, and that
			// place is marked again.
			cut := bytes.LastIndex(s.Requests()[i-1].Body, []byte(mark)) + len(mark)
			first := bytes.LastIndex(r.Body[:bytes.LastIndex(r.Body, []byte(mark))], []byte(mark))
			if a, b := bytes.ReplaceAll(s.Requests()[i-1].Body[:cut], []byte(mark), nil), bytes.ReplaceAll(r.Body[:first], []byte(mark), nil); !bytes.Equal(a, b) {
				t.Fatalf("request %d does not mark the end of the one before", i)
			}
		}
		before = plain
	}
}

func TestBodyIsDeterministicAndSplicesRaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ms []llm.Message
		n := rapid.IntRange(1, 6).Draw(t, "n")
		for i := range n {
			text, _ := json.Marshal(rapid.String().Draw(t, "text"))
			content := string(text)
			if rapid.Bool().Draw(t, "array") {
				content = `[{"type":"text","text":` + content + `},{"text":` + content + `, "type":"text"}]`
			}
			ms = append(ms, llm.Message{Role: []string{"user", "assistant"}[i%2], Content: json.RawMessage(content)})
		}
		p := anthropic.New(anthropic.Options{APIKey: key, Model: "m"})
		a, err := p.Body(llm.Request{Messages: ms})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := anthropic.New(anthropic.Options{APIKey: key, Model: "m"}).Body(llm.Request{Messages: ms})
		if !bytes.Equal(a, b) || !json.Valid(a) {
			t.Fatalf("got %s\n%s, want bytes.Equal(a, b) and json.Valid(a)", a, b)
		}
		plain := bytes.ReplaceAll(a, []byte(mark), nil)
		for _, m := range ms {
			if !bytes.Contains(plain, m.Content) {
				t.Fatalf("%s is not in %s", m.Content, plain)
			}
		}
	})
}
