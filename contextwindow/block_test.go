package contextwindow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/apirules"
	"github.com/roost-dev/roost/llm"
)

const png = `{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}`

// sent is what is sent of a user message and of the assistant message behind it, for
// a conversation that gives both a place.
func sent(t *testing.T, user, assistant string, o Options) (gotUser, gotAssistant, notes string) {
	t.Helper()
	h := lines(
		`{"role":"user","content":"begin"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
		`{"role":"user","content":`+user+`}`,
	)
	if assistant != "" {
		h = append(h, []byte(`{"role":"assistant","content":`+assistant+`}`))
	}
	messages, all, err := Build(h, o)
	if err != nil {
		t.Fatal(err)
	}
	// With those in them they are for a provider with other rules.
	if err := apirules.Validate(messages); err != nil && !o.KeepReasoning && !o.KeepSignatures {
		t.Errorf("got %s %s: %v, want no error or o.KeepReasoning or o.KeepSignatures", user, assistant, err)
	}
	for _, n := range all {
		if n.Index >= 2 {
			notes += n.Text + "; "
		}
	}
	if len(messages) > 4 {
		gotAssistant = string(messages[3].Content)
	}
	return string(messages[2].Content), gotAssistant, notes
}

// Every kind of block a user message may hold, and what becomes of it. The result of
// the open call stands in front.
func TestUserBlocks(t *testing.T) {
	const result = `{"type":"tool_result","tool_use_id":"t1","content":"r"}`
	for _, tt := range []struct {
		name, block string
		want        string // behind the result, "=" for the block itself
		note        string
		o           Options
	}{
		{"text", `{"type":"text","text":"a"}`, "=", "", Options{}},
		{"text in another order", `{ "text":"a", "type":"text" }`, "=", "", Options{}},
		{"text of blanks", `{"type":"text","text":" \n\u3000\ufeff"}`, "", "", Options{}},
		{"empty text", `{"type":"text","text":""}`, "", "", Options{}},
		{"text that is none", `{"type":"text","text":7}`, "", "", Options{}},
		{"text with a cache mark of its own", `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`, `{"type":"text","text":"a"}`, "", Options{}},
		{"text of half a character", `{"type":"text","text":"a\udc00b"}`, `{"type":"text","text":"a\ufffdb"}`, "not valid Unicode", Options{}},
		{"text of bytes", "{\"type\":\"text\",\"text\":\"a\xffb\"}", "{\"type\":\"text\",\"text\":\"a\uFFFDb\"}", "not valid Unicode", Options{}},
		{"image", `{"type":"image","source":` + png + `}`, "=", "", Options{}},
		{"image for a model without eyes", `{"type":"image","source":` + png + `}`, `{"type":"text","text":"` + noImage + `"}`, "", Options{NoImages: true}},
		{"image with more than the API knows", `{"type":"image","source":` + png + `,"name":"x.png"}`, `{"type":"image","source":` + png + `}`, "", Options{}},
		{"image by address", `{"type":"image","source":{"type":"url","url":"https://x"}}`, `{"type":"text","text":"` + badImage + `"}`, "image", Options{}},
		{"image of a kind that is refused", `{"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":"AAAA"}}`, `{"type":"text","text":"` + badImage + `"}`, "image", Options{}},
		{"image that is no base64", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"data:image/png;base64,AAAA"}}`, `{"type":"text","text":"` + badImage + `"}`, "image", Options{}},
		{"image cut short", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBOR"}}`, `{"type":"text","text":"` + badImage + `"}`, "image", Options{}},
		{"image without source", `{"type":"image"}`, `{"type":"text","text":"` + badImage + `"}`, "image", Options{}},
		{"a call by the user", `{"type":"tool_use","id":"x","name":"n","input":{}}`, "", "tool_use", Options{}},
		{"thinking by the user", `{"type":"thinking","thinking":"x","signature":"s"}`, "", "thinking", Options{}},
		{"a document", `{"type":"document","source":{}}`, "", "document", Options{}},
		{"no object", `"text"`, "", "no object", Options{}},
		{"null", `null`, "", "no object", Options{}},
		{"no type", `{"text":"a"}`, "", "was left out", Options{}},
		{"a second result", result, "", "second result", Options{}},
		{"an orphan", `{"type":"tool_result","tool_use_id":"t9","content":[{"type":"text","text":"x"},{"type":"image","source":` + png + `}]}`,
			`{"type":"text","text":"Tool result:"},{"type":"text","text":"x"},{"type":"image","source":` + png + `}`, "without its call", Options{}},
	} {
		want := tt.want
		if want == "=" {
			want = tt.block
		}
		if want != "" {
			want = "," + want
		}
		got, _, notes := sent(t, "["+result+","+tt.block+"]", "", tt.o)
		if got != "["+result+want+"]" {
			t.Errorf("%s: sent as %s", tt.name, got)
		}
		if (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
			t.Errorf("%s: notes %q, want %q", tt.name, notes, tt.note)
		}
	}
}

// Every form a result has been stored in, and what is sent.
func TestToolResults(t *testing.T) {
	const open, text = `{"type":"tool_result","tool_use_id":"t1"`, `{"type":"text","text":"x"}`
	for _, tt := range []struct{ name, block, want string }{
		{"a string", open + `,"content":"r"}`, "="},
		{"an error", open + `,"content":"r","is_error":true}`, "="},
		{"blocks", open + `,"content":[` + text + `,{"type":"image","source":` + png + `}]}`, "="},
		{"an error with an image", open + `,"content":[` + text + `,{"type":"image","source":` + png + `}],"is_error":true}`,
			open + `,"content":[` + text + `,{"type":"image","source":` + png + `}]}`},
		{"an error of blocks", open + `,"content":[` + text + `],"is_error":true}`, "="},
		{"a mark that is no truth value", open + `,"content":"r","is_error":"yes"}`, open + `,"content":"r"}`},
		{"more than the API knows", open + `,"content":"r","ts":5}`, open + `,"content":"r"}`},
		{"nothing", open + `}`, open + `,"content":"` + noResult + `"}`},
		{"null", open + `,"content":null}`, open + `,"content":"` + noResult + `"}`},
		{"blanks", open + `,"content":" \n"}`, open + `,"content":"` + noResult + `"}`},
		{"an empty error", open + `,"content":"","is_error":true}`, open + `,"content":"` + noResult + `","is_error":true}`},
		{"no blocks", open + `,"content":[]}`, open + `,"content":"` + noResult + `"}`},
		{"an empty block among others", open + `,"content":[{"type":"text","text":""},` + text + `]}`, open + `,"content":[` + text + `]}`},
		{"only empty blocks", open + `,"content":[{"type":"text","text":" "}]}`, open + `,"content":"` + noResult + `"}`},
		{"a number", open + `,"content":5}`, open + `,"content":"5"}`},
		{"an object", open + `,"content":{"a":"b"}}`, open + `,"content":"{\"a\":\"b\"}"}`},
		{"a result in a result", open + `,"content":[` + open + `,"content":"inner"},` + text + `]}`,
			open + `,"content":[{"type":"text","text":"{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"inner\"}"},` + text + `]}`},
		{"a reasoning block", open + `,"content":[{"type":"reasoning","text":"x"},` + text + `]}`, open + `,"content":[` + text + `]}`},
		{"half a character deep inside", open + `,"content":[{"type":"text","text":"\ud83d x"}]}`, open + `,"content":[{"type":"text","text":"\ufffd x"}]}`},
	} {
		want := tt.want
		if want == "=" {
			want = tt.block
		}
		if got, _, _ := sent(t, "["+tt.block+"]", "", Options{}); got != "["+want+"]" {
			t.Errorf("%s: sent as %s, want [%s]", tt.name, got, want)
		}
	}
}

// What the model said, as stored by any provider, and what it is shown of it.
func TestAssistantBlocks(t *testing.T) {
	const text = `{"type":"text","text":"ok"}`
	for _, tt := range []struct {
		name, block string
		want        string // before a text, "=" for the block itself
		o           Options
	}{
		{"text", `{"type":"text","text":"a"}`, "=", Options{}},
		{"a call", `{"type":"tool_use","id":"t2","name":"n","input":{"a":1}}`, "=", Options{}},
		{"a call with members of its own", `{"type":"tool_use","id":"t2","name":"n","input":{},"partial":false}`, `{"type":"tool_use","id":"t2","name":"n","input":{}}`, Options{}},
		{"input as text", `{"type":"tool_use","id":"t2","name":"n","input":"{\"a\":1}"}`, `{"type":"tool_use","id":"t2","name":"n","input":{"a":1}}`, Options{}},
		{"input cut off", `{"type":"tool_use","id":"t2","name":"n","input":"{\"a\":"}`, `{"type":"tool_use","id":"t2","name":"n","input":{}}`, Options{}},
		{"input with half a character inside text", `{"type":"tool_use","id":"t2","name":"n","input":"{\"a\":\"\\ud800\"}"}`, `{"type":"tool_use","id":"t2","name":"n","input":{"a":"\ufffd"}}`, Options{}},
		{"no input", `{"type":"tool_use","id":"t2","name":"n"}`, `{"type":"tool_use","id":"t2","name":"n","input":{}}`, Options{}},
		{"an id that is refused", `{"type":"tool_use","id":"call.2|x","name":"n","input":{}}`, `{"type":"tool_use","id":"call_2_x","name":"n","input":{}}`, Options{}},
		{"a name stays", `{"type":"tool_use","id":"t","name":"read_file","input":{}}`, `{"type":"tool_use","id":"t","name":"read_file","input":{}}`, Options{NameLetter: true}},
		{"a name of a digit", `{"type":"tool_use","id":"t","name":"9lives","input":{}}`, `{"type":"tool_use","id":"t","name":"_9lives","input":{}}`, Options{NameLetter: true}},
		{"a name of a dash", `{"type":"tool_use","id":"t","name":"-x","input":{}}`, `{"type":"tool_use","id":"t","name":"_-x","input":{}}`, Options{NameLetter: true}},
		{"a digit where any may be", `{"type":"tool_use","id":"t","name":"9lives","input":{}}`, `{"type":"tool_use","id":"t","name":"9lives","input":{}}`, Options{}},
		{"a name too long, with a letter", `{"type":"tool_use","id":"t","name":"9lives","input":{}}`, `{"type":"tool_use","id":"t","name":"_9li","input":{}}`, Options{NameLetter: true, NameLength: 4}},
		{"no id, no name", `{"type":"tool_use","input":{}}`, `{"type":"tool_use","id":"call","name":"unknown_tool","input":{}}`, Options{}},
		{"a name that is refused", `{"type":"tool_use","id":"t2","name":"mcp/a b","input":{}}`, `{"type":"tool_use","id":"t2","name":"mcp_a_b","input":{}}`, Options{}},
		{"a name too long", `{"type":"tool_use","id":"t2","name":"` + strings.Repeat("n", 200) + `","input":{}}`, `{"type":"tool_use","id":"t2","name":"` + strings.Repeat("n", 128) + `","input":{}}`, Options{}},
		{"signed thinking", `{"type":"thinking","thinking":"hm","signature":"s"}`, "=", Options{}},
		{"signed thinking of another model", `{"type":"thinking","thinking":"hm","signature":"s"}`, "", Options{DropThinking: true}},
		{"signed, with more", `{"type":"thinking","thinking":"hm","signature":"s","ts":1}`, `{"type":"thinking","thinking":"hm","signature":"s"}`, Options{}},
		{"thinking without signature", `{"type":"thinking","thinking":"hm"}`, "", Options{}},
		{"hidden thinking", `{"type":"redacted_thinking","data":"x"}`, "=", Options{}},
		{"hidden thinking, with more", `{"type":"redacted_thinking","data":"x","id":"y"}`, `{"type":"redacted_thinking","data":"x"}`, Options{}},
		{"hidden thinking of another model", `{"type":"redacted_thinking","data":"x"}`, "", Options{DropThinking: true}},
		{"hidden thinking without data", `{"type":"redacted_thinking","data":""}`, "", Options{}},
		{"reasoning of other providers", `{"type":"reasoning","text":"hm"}`, "", Options{}},
		{"sealed reasoning for its own model", `{"type":"reasoning","summary":[],"encrypted_content":"x","id":"rs"}`, "=", Options{KeepReasoning: true}},
		{"sealed reasoning for another model", `{"type":"reasoning","summary":[],"encrypted_content":"x"}`, "", Options{}},
		{"plain reasoning for such a model", `{"type":"reasoning","text":"hm","summary":[]}`, "", Options{KeepReasoning: true}},
		{"a thought's signature for its own model", `{"type":"thoughtSignature","thoughtSignature":"x"}`, "=", Options{KeepSignatures: true}},
		{"an empty signature", `{"type":"thoughtSignature","thoughtSignature":""}`, "", Options{KeepSignatures: true}},
		{"a signature alone", `{"type":"thoughtSignature","thoughtSignature":"x"}`, "", Options{}},
		{"a result by the model", `{"type":"tool_result","tool_use_id":"t1","content":"x"}`, "", Options{}},
		{"an image by the model", `{"type":"image","source":` + png + `}`, "", Options{}},
	} {
		want := tt.want
		if want == "=" {
			want = tt.block
		}
		if want != "" {
			want += ","
		}
		if _, got, _ := sent(t, `"x"`, "["+tt.block+","+text+"]", tt.o); got != "["+want+text+"]" {
			// The last assistant message is the fourth only when something follows it.
			t.Errorf("%s: sent as %s, want [%s%s]", tt.name, got, want, text)
		}
	}
}

// A message must not end with thinking, and one of nothing else is none.
func TestThinkingIsNeverLast(t *testing.T) {
	const thinking = `{"type":"thinking","thinking":"hm","signature":"s"}`
	for content, want := range map[string]string{
		`[{"type":"text","text":"a"},` + thinking + `]`:                      `[{"type":"text","text":"a"}]`,
		`[{"type":"text","text":"a"},` + thinking + `,` + thinking + `]`:     `[{"type":"text","text":"a"}]`,
		`[` + thinking + `,{"type":"text","text":"a"}]`:                      `[` + thinking + `,{"type":"text","text":"a"}]`,
		`[{"type":"text","text":"a"},` + thinking + `,{"type":"reasoning"}]`: `[{"type":"text","text":"a"}]`,
	} {
		if _, got, _ := sent(t, `"x"`, content, Options{}); got != want {
			t.Errorf("%s: sent as %s", content, got)
		}
	}
	messages, _, err := Build(lines(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[`+thinking+`]}`, `{"role":"user","content":"b"}`), Options{})
	want := []llm.Message{{Role: "user", Content: []byte(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`)}}
	if diff := cmp.Diff(show(want), show(messages)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// Ids are unique in a request. The later call is renamed, its result with it, and the
// earlier one keeps the bytes that were sent before.
func TestCallIDsThatComeAgain(t *testing.T) {
	call := func(ids ...string) string {
		var blocks []string
		for _, id := range ids {
			blocks = append(blocks, `{"type":"tool_use","id":"`+id+`","name":"n","input":{}}`)
		}
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	result := func(ids ...string) string {
		var blocks []string
		for i, id := range ids {
			blocks = append(blocks, `{"type":"tool_result","tool_use_id":"`+id+`","content":"`+string(rune('a'+i))+`"}`)
		}
		return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
	}
	for _, tt := range []struct {
		name string
		in   []string
		want []string // ids of calls and of results, in order
	}{
		{"in two messages", []string{call("a"), result("a"), call("a"), result("a")}, []string{"a", "a", "a_2", "a_2"}},
		{"in one message", []string{call("a", "a"), result("a", "a")}, []string{"a a_2", "a a_2"}},
		{"three times", []string{call("a", "a", "a"), result("a", "a", "a")}, []string{"a a_2 a_3", "a a_2 a_3"}},
		{"the new name is taken", []string{call("a_2", "a", "a"), result("a_2", "a", "a")}, []string{"a_2 a a_3", "a_2 a a_3"}},
		{"two that become the same", []string{call("x.y", "x/y"), result("x/y", "x.y")}, []string{"x_y x_y_2", "x_y x_y_2"}},
		{"none at all", []string{call("", ""), result("", "")}, []string{"call call_2", "call call_2"}},
		{"results in another order", []string{call("a", "b"), result("b", "a")}, []string{"a b", "a b"}},
		{"one result is missing", []string{call("a", "b"), result("b")}, []string{"a b", "a b"}},
	} {
		messages, _, err := Build(append(lines(`{"role":"user","content":"begin"}`), lines(tt.in...)...), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := apirules.Validate(messages); err != nil {
			t.Errorf("%s: got %v, want no error", tt.name, err)
		}
		var got []string
		for _, m := range messages[1:] {
			var ids []string
			for _, b := range blocks(m.Content) {
				ids = append(ids, esjson.TextOf(b, "id")+esjson.TextOf(b, "tool_use_id"))
			}
			got = append(got, strings.Join(ids, " "))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", tt.name, diff)
		}
	}
}
