package contextwindow

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const detail = `{"type":"reasoning.encrypted","data":"x","n":1.50}`

// What a server sent as reasoning_details goes with its message, untouched, and only
// to where such servers are.
func TestDetailsGoWithTheirMessage(t *testing.T) {
	reply := func(content, members string) string {
		return `{"role":"assistant","content":` + content + `,"ts":1` + members + `}`
	}
	const user = `{"role":"user","content":"a"}`
	for _, c := range []struct {
		name, want string
		in         []string
	}{
		{"as they are", `[` + detail + `]`, []string{user, reply(`"b"`, `,"reasoning_details":[`+detail+`]`), user}},
		{"a call's too", `[` + detail + `]`, []string{user, reply(`[{"type":"tool_use","id":"t","name":"n","input":{}}]`, `,"reasoning_details":[`+detail+`]`), user}},
		{"those of joined messages one after the other", `[` + detail + `,{"a":1},{"b":2}]`, []string{
			user, reply(`"b"`, `,"reasoning_details":[`+detail+`]`), reply(`"c"`, `,"reasoning_details":[ {"a":1}, {"b":2} ]`), reply(`"d"`, ``), user,
		}},
		{"an empty list", "", []string{user, reply(`"b"`, `,"reasoning_details":[]`), user}},
		{"what is no list", "", []string{user, reply(`"b"`, `,"reasoning_details":"x"`), user}},
		{"a user has none", "", []string{`{"role":"user","content":"a","reasoning_details":[{}]}`, reply(`"b"`, ``), user}},
		{"half a character is mended", `[{"text":"\ufffd"}]`, []string{user, reply(`"b"`, `,"reasoning_details":[{"text":"\ud83d"}]`), user}},
	} {
		for _, provider := range []string{"openai-compatible", "openai", "anthropic", "google", "script"} {
			want := c.want
			if provider != "openai-compatible" {
				want = ""
			}
			got, _, err := Build(lines(c.in...), For(provider))
			if err != nil || len(got) != 3 {
				t.Fatalf("%s: got %v %d, want no error and len(got) = 3", c.name, err, len(got))
			}
			if d := cmp.Diff([]string{"", want, ""}, []string{string(got[0].ReasoningDetails), string(got[1].ReasoningDetails), string(got[2].ReasoningDetails)}); d != "" {
				t.Errorf("%s for %s: %s", c.name, provider, d)
			}
		}
	}
}

// A message that has nothing but details is no message; what is sent stays paired.
func TestDetailsAloneAreNotSent(t *testing.T) {
	got, _, err := Build(lines(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[],"reasoning_details":[`+detail+`]}`, `{"role":"user","content":"b"}`), For("openai-compatible"))
	if want := `user [{"type":"text","text":"a"},{"type":"text","text":"b"}]`; err != nil || len(got) != 1 || fmt.Sprintf("%s %s", got[0].Role, got[0].Content) != want {
		t.Errorf("got %v %s, want no error and len(got) = 1 and fmt.Sprintf(\"%%s %%s\", got[0].Role, got[0].Content) = %v",
			err, show(got), want)
	}
}

// Plain reasoning goes with each of the model's messages where a server wants that, and
// nowhere else.
func TestReasoningGoesWithItsMessage(t *testing.T) {
	const user, thought, call = `{"role":"user","content":"a"}`, `{"type":"reasoning","text":"a \"b\"","summary":[]}`, `{"type":"tool_use","id":"t","name":"n","input":{}}`
	reply := func(content string) string { return `{"role":"assistant","content":` + content + `}` }
	for _, c := range []struct {
		name, want string
		in         []string
	}{
		{"as it is", `"a \"b\""`, []string{user, reply(`[` + thought + `,` + call + `]`)}},
		{"none is stored", `""`, []string{user, reply(`[` + call + `]`)}},
		{"words alone", `""`, []string{user, reply(`"words"`)}},
		{"that of joined messages", `"a \"b\"\n\na \"b\""`, []string{user, reply(`"words"`), reply(`[` + thought + `,` + call + `]`), reply(`[` + thought + `,{"type":"text","text":"c"}]`)}},
		{"signed thinking is another model's", `""`, []string{user, reply(`[{"type":"thinking","thinking":"x","signature":"s"},` + call + `]`)}},
		{"half a character is mended", `"\ufffd"`, []string{user, reply(`[{"type":"reasoning","text":"\ud83d"},` + call + `]`)}},
	} {
		o := For("openai-compatible")
		for _, keep := range []bool{true, false} {
			o.KeepReasoningContent = keep
			got, _, err := Build(lines(c.in...), o)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if !keep {
				want = ""
			}
			if string(got[1].ReasoningContent) != want || got[0].ReasoningContent != nil {
				t.Errorf("%s: %s, want %s", c.name, got[1].ReasoningContent, want)
			}
		}
	}
}
