package llmtest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// One conversation in each dialect: words, a reply with two calls, their results and
// more words, and a reply of words only.
var tellings = map[string]string{
	"anthropic": `{"system":"s","tools":[{"name":"read","input_schema":{}},{"name":"write"}],"messages":[
		{"role":"user","content":"do it"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"I read"},
			{"type":"tool_use","id":"a","name":"read","input":{"p":1}},{"type":"tool_use","id":"b","name":"write","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"one"},
			{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"two"},{"type":"image","source":{}},{"type":"text","text":"three"}]},
			{"type":"text","text":"and"}]},
		{"role":"user","content":[{"type":"text","text":"more"}]},
		{"role":"assistant","content":"fine"}]}`,
	"chat": `{"tools":[{"type":"function","function":{"name":"read"}},{"type":"function","function":{"name":"write"}}],"messages":[
		{"role":"system","content":"s"},
		{"role":"user","content":[{"type":"text","text":"do it"}]},
		{"role":"assistant","content":"I read","tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"p\":1}"}},
			{"id":"b","type":"function","function":{"name":"write","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"one"},
		{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"two"},{"type":"text","text":"three"}]},
		{"role":"user","content":"and"},
		{"role":"user","content":[{"type":"text","text":"more"}]},
		{"role":"assistant","content":"fine"}]}`,
	"responses": `{"tools":[{"type":"function","name":"read"},{"type":"function","name":"write"}],"input":[
		{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]},
		{"type":"reasoning","encrypted_content":"x","summary":[]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I read"}]},
		{"type":"function_call","call_id":"a","name":"read","arguments":"{\"p\":1}"},
		{"type":"function_call","call_id":"b","name":"write","arguments":"{}"},
		{"type":"function_call_output","call_id":"a","output":"one"},
		{"type":"function_call_output","call_id":"b","output":"two\nthree"},
		{"type":"message","role":"user","content":"and\nmore"},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"fine"}]}]}`,
	"google": `{"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"read"},{"name":"write"}]}],"contents":[
		{"role":"user","parts":[{"text":"do it"}]},
		{"role":"model","parts":[{"text":"I read"},{"functionCall":{"id":"a","name":"read","args":{"p":1}},"thoughtSignature":"x"},{"functionCall":{"id":"b","name":"write","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"a","name":"read","response":{"result":"one"}}},
			{"functionResponse":{"id":"b","name":"write","response":{"result":"two\nthree"}}},{"inlineData":{"mimeType":"image/png","data":"aaaa"}},{"text":"and"},{"text":"more"}]},
		{"role":"model","parts":[{"text":"fine"}]}]}`,
}

// A model that decides by the history does the same in every dialect.
func TestHistoryIsTheSameInEveryDialect(t *testing.T) {
	none := map[string]string{}
	want := []llmtest.Turn{
		{Text: "do it", Results: none},
		{Model: true, Text: "I read", Results: none, Calls: []llmtest.ToolCall{
			{ID: "a", Name: "read", Input: []byte(`{"p":1}`)}, {ID: "b", Name: "write", Input: []byte(`{}`)},
		}},
		{Text: "and\nmore", Results: map[string]string{"a": "one", "b": "two\nthree"}},
		{Model: true, Text: "fine", Results: none},
	}
	for name, body := range tellings {
		r := llmtest.Request{Body: []byte(body)}
		if d := cmp.Diff(want, r.History()); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
		if d := cmp.Diff([]string{"read", "write"}, r.Offered()); d != "" {
			t.Errorf("%s: tools: -want +got\n%s", name, d)
		}
	}
}

func TestHistoryOfWhatIsNone(t *testing.T) {
	for _, body := range []string{"", "{", "[]", `{"messages":7}`, `{"messages":[7,null,"x",{}]}`, `{"input":[null]}`, `{"contents":[{"parts":[{}]}]}`, `{"tools":[{}]}`} {
		r := llmtest.Request{Body: []byte(body)}
		for _, turn := range r.History() {
			if turn.Text != "" || len(turn.Calls) > 0 {
				t.Errorf("%q tells %+v", body, turn)
			}
		}
		if names := r.Offered(); len(names) > 0 {
			t.Errorf("%q offers %v", body, names)
		}
	}
}
