package openai_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/llm"
)

func chunk(delta string) string { return `{"id":"x","choices":[{"index":0,"delta":` + delta + `}]}` }

const (
	finished  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	called    = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	endOfChat = "[DONE]"
)

// Servers that imitate chat completions each do it in their own way.
func TestImitations(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		blocks []string
		stop   string
	}{
		"no [DONE]": {
			events(chunk(`{"content":"hi"}`), finished),
			[]string{`{"type":"text","text":"hi"}`}, "end_turn",
		},
		"no finish_reason": {
			events(chunk(`{"content":"hi"}`), endOfChat),
			[]string{`{"type":"text","text":"hi"}`}, "end_turn",
		},
		"comments between events": {
			": PROCESSING\n\n" + events(chunk(`{"content":"h"}`)) + ": PROCESSING\n\n" + events(chunk(`{"content":"i"}`), finished, endOfChat),
			[]string{`{"type":"text","text":"hi"}`}, "end_turn",
		},
		"empty events": {
			"data:\n\n" + events(chunk(`{"content":"h"}`)) + "data\n\ndata:  \n\n" + events(chunk(`{"content":"i"}`), finished, endOfChat),
			[]string{`{"type":"text","text":"hi"}`}, "end_turn",
		},
		"stop after calls": {
			events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), finished, endOfChat),
			[]string{`{"type":"tool_use","id":"a","name":"f","input":{}}`}, "tool_use",
		},
		"every call has the index 0": {
			events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}]}`),
				chunk(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"n\":2}"}}]}`), called, endOfChat),
			[]string{`{"type":"tool_use","id":"a","name":"f","input":{"n":1}}`, `{"type":"tool_use","id":"b","name":"f","input":{"n":2}}`}, "tool_use",
		},
		"every call has the index 0 and no id": {
			events(chunk(`{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"{\"n\":1}"}}]}`),
				chunk(`{"tool_calls":[{"index":0,"id":"","function":{"name":"g","arguments":"{"}}]}`),
				chunk(`{"tool_calls":[{"index":0,"id":"","function":{"name":"g","arguments":"}"}}]}`),
				chunk(`{"tool_calls":[{"index":0,"id":"","function":{"name":"g","arguments":"{\"n\":2}"}}]}`), called, endOfChat),
			[]string{
				`{"type":"tool_use","id":"call_0","name":"f","input":{"n":1}}`, `{"type":"tool_use","id":"call_1","name":"g","input":{}}`,
				`{"type":"tool_use","id":"call_2","name":"g","input":{"n":2}}`,
			}, "tool_use",
		},
		"no index": {
			events(chunk(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}`),
				chunk(`{"tool_calls":[{"function":{"arguments":"}"}}]}`),
				chunk(`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}`), called),
			[]string{`{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"type":"tool_use","id":"b","name":"g","input":{}}`}, "tool_use",
		},
		"neither indexes nor ids": {
			events(chunk(`{"tool_calls":[{"function":{"name":"f","arguments":"{\"n\":"}},{"function":{"name":"f","arguments":"1}"}},{"function":{"name":"f","arguments":""}}]}`),
				chunk(`{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{\"n\":2}"}}]}`), called),
			[]string{`{"type":"tool_use","id":"call_0","name":"f","input":{"n":1}}`, `{"type":"tool_use","id":"call_1","name":"f","input":{"n":2}}`}, "tool_use",
		},
		"no ids, and the same id twice": {
			events(chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"id":"x","function":{"name":"f","arguments":"{}"}},{"index":2,"id":"x","function":{"name":"f","arguments":"{}"}}]}`), called),
			[]string{
				`{"type":"tool_use","id":"call_0","name":"f","input":{}}`, `{"type":"tool_use","id":"x","name":"f","input":{}}`,
				`{"type":"tool_use","id":"x_2","name":"f","input":{}}`,
			}, "tool_use",
		},
		"arguments that are no string": {
			events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"n":1}}}]}`), called),
			[]string{`{"type":"tool_use","id":"a","name":"f","input":{"n":1}}`}, "tool_use",
		},
		"no arguments": {
			events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}`), called),
			[]string{`{"type":"tool_use","id":"a","name":"f","input":{}}`}, "tool_use",
		},
		"thinking under two names": {
			events(chunk(`{"reasoning":"hm","reasoning_content":"hm"}`), chunk(`{"reasoning":"m"}`), chunk(`{"content":"hi","reasoning":null}`), finished),
			[]string{`{"type":"reasoning","text":"hmm","summary":[]}`, `{"type":"text","text":"hi"}`}, "end_turn",
		},
		"halves of a character": {
			events(chunk(`{"content":"a\ud83d"}`), chunk(`{"content":"\ude00b"}`), finished),
			[]string{`{"type":"text","text":"a😀b"}`}, "end_turn",
		},
		"halves of a character in a call": {
			events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":\"\ud83d"}}]}`),
				chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\ude00, and half: \ud83d\"}"}}]}`), called),
			[]string{`{"type":"tool_use","id":"a","name":"f","input":{"n":"😀, and half: �"}}`}, "tool_use",
		},
		"a full window": {
			events(chunk(`{"content":"hi"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"model_length"}]}`, endOfChat),
			[]string{`{"type":"text","text":"hi"}`}, "max_tokens",
		},
		"a refusal": {
			events(chunk(`{"refusal":"I cannot."}`), finished),
			[]string{`{"type":"text","text":"I cannot."}`}, "refusal",
		},
		"chunks without choices": {
			events(`{"choices":[],"usage":null}`, `{"object":"ping"}`, chunk(`{"content":"hi"}`), finished),
			[]string{`{"type":"text","text":"hi"}`}, "end_turn",
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := serve(t, 200, nil, c.stream)
			got := collect(t.Context(), provider(t, url, dialects["chat"]), ask("hi"))
			if got.err != nil {
				t.Fatal(got.err)
			}
			if d := cmp.Diff(c.blocks, got.blocks()); d != "" {
				t.Error(d)
			}
			if got.done.StopReason != c.stop {
				t.Errorf("stopped with %q", got.done.StopReason)
			}
		})
	}
}

// A server that breaks a reply off names that as the reason for its end.
func TestRepliesBrokenOff(t *testing.T) {
	for _, reason := range []string{"error", "insufficient_system_resource"} {
		url, asked := serve(t, 200, nil, events(chunk(`{"content":"half a "}`),
			`{"choices":[{"index":0,"delta":{"content":"rep"},"finish_reason":"`+reason+`"}]}`, endOfChat))
		got := collect(t.Context(), provider(t, url, dialects["chat"]), ask("hi"))
		if got.kind() != llm.Server || got.text != "half a rep" || *asked != 1 {
			t.Errorf("%s: got %v after %q and %d requests, want kind %s after %q and 1", reason, got.err, got.text, *asked, llm.Server, "half a rep")
		}
	}
}

// Input that is no object is reported as malformed and never runs as something else.
func TestMalformedInput(t *testing.T) {
	for _, sent := range []string{`{"a":`, `[1]`, `"x"`, `{"a":1}{`, `nonsense`} {
		raw := string(mustJSON(sent))
		streams := map[string]string{
			"chat": events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":`+raw+`}}]}`), called),
			"responses": events(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`,
				`{"type":"response.function_call_arguments.delta","output_index":1,"delta":`+raw+`}`, `{"type":"response.completed","response":{}}`),
		}
		for name, stream := range streams {
			url, _ := serve(t, 200, nil, stream)
			got := collect(t.Context(), provider(t, url, dialects[name]), ask("hi"))
			if got.err != nil || got.done.Malformed["a"] != sent || got.blocks()[0] != `{"type":"tool_use","id":"a","name":"f","input":{}}` {
				t.Errorf("got %s %s: %v %v %v, want got.err = nil and got.done.Malformed[\"a\"] = sent and got.blocks()[0] = `{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}`",
					name, sent, got.err, got.blocks(), got.done)
			}
		}
	}
}

// A limit of length may cut a call before its input begins. Only the last call can be cut.
func TestInputCutBeforeItBegins(t *testing.T) {
	call := `{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","call_id":%q,"name":"f","arguments":""}}`
	for name, stream := range map[string]string{
		"chat": events(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`),
			chunk(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":""}}]}`),
			`{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, endOfChat),
		"responses": events(fmt.Sprintf(call, 0, "a"), fmt.Sprintf(call, 1, "b"),
			`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`),
	} {
		url, _ := serve(t, 200, nil, stream)
		got := collect(t.Context(), provider(t, url, dialects[name]), ask("hi"))
		if got.err != nil {
			t.Fatal(name, got.err)
		}
		if want := map[string]string{"b": ""}; !cmp.Equal(got.done.Malformed, want) {
			t.Errorf("%s: got the malformed calls %q, want %q", name, got.done.Malformed, want)
		}
	}
}

// Where deltas of the Responses API were missed, the complete item is the truth.
func TestItemsWithoutDeltas(t *testing.T) {
	url, _ := serve(t, 200, nil, events(
		`{"type":"response.created","response":{"id":"r","model":"m"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","encrypted_content":"e","summary":[{"type":"summary_text","text":"s"}]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"n\": 1}"}}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"b","name":"g","arguments":"{}"}}`,
		`{"type":"response.web_search_call.searching","output_index":3}`,
		`{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":5,"output_tokens":1,"input_tokens_details":{"cached_tokens":2}}}}`,
	))
	got := collect(t.Context(), provider(t, url, dialects["responses"]), ask("hi"))
	want := []string{
		`{"type":"reasoning","summary":[],"encrypted_content":"e","id":"rs"}`,
		`{"type":"tool_use","id":"a","name":"f","input":{"n":1}}`, `{"type":"tool_use","id":"b","name":"g","input":{}}`,
	}
	if d := cmp.Diff(want, got.blocks()); got.err != nil || d != "" {
		t.Error(got.err, d)
	}
	if got.done.Usage != (llm.Usage{Input: 3, CacheRead: 2, Output: 1}) || got.done.ID != "r" {
		t.Errorf("got %+v, want got.done.Usage = (llm.Usage{Input: 3, CacheRead: 2, Output: 1}) and got.done.ID = \"r\"",
			got.done)
	}
}
