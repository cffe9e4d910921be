package openai_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/openai"
)

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

const pixel = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`

// sent is a request's list of messages or items, one JSON text each.
func sent(t *testing.T, body []byte) []string {
	t.Helper()
	var r struct{ Messages, Input []json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var out []string
	for _, m := range append(r.Messages, r.Input...) {
		out = append(out, string(m))
	}
	return out
}

// What each stored block becomes.
func TestMessages(t *testing.T) {
	history := []string{
		`[{"type":"text","text":"Look \u00e9 at"},` + pixel + `]`,
		`[{"type":"reasoning","summary":[{"x":1}],"encrypted_content":"E","id":"rs_1"},{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"look","input":{"at":"\"x\"","n":1.0}},{"type":"tool_use","id":"c2","name":"wait","input":{}}]`,
		`[{"type":"tool_result","tool_use_id":"c1","content":"found","is_error":true},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"a"},` + pixel + `,{"type":"text","text":"b"}]},{"type":"text","text":"go on"}]`,
		`[{"type":"reasoning","text":"hm","summary":[]},{"type":"text","text":"Done."},{"type":"text","text":" Really."}]`,
		"thanks",
	}
	image := `"data:image/png;base64,iVBORw0KGgo="`
	want := map[string][]string{
		"chat": {
			`{"role":"system","content":"Be kind."}`,
			`{"role":"user","content":[{"type":"text","text":"Look \u00e9 at"},{"type":"image_url","image_url":{"url":` + image + `}}]}`,
			`{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"\\\"x\\\"\",\"n\":1.0}"}},{"id":"c2","type":"function","function":{"name":"wait","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c1","content":"found"}`,
			`{"role":"tool","tool_call_id":"c2","content":"a\n\nb"}`,
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":` + image + `}},{"type":"text","text":"go on"}]}`,
			`{"role":"assistant","content":"Done. Really."}`,
			`{"role":"user","content":"thanks"}`,
		},
		"responses": {
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Look \u00e9 at"},{"type":"input_image","detail":"auto","image_url":` + image + `}]}`,
			`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}`,
			`{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\":\"\\\"x\\\"\",\"n\":1.0}"}`,
			`{"type":"function_call","call_id":"c2","name":"wait","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c1","output":"found"}`,
			`{"type":"function_call_output","call_id":"c2","output":"a\n\nb"}`,
			`{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto","image_url":` + image + `},{"type":"input_text","text":"go on"}]}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done. Really."}]}`,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"thanks"}]}`,
		},
	}
	for name, o := range dialects {
		s := llmtest.New(t, llmtest.Text("ok"))
		if got := collect(t.Context(), provider(t, s.URL, o), ask(history...)); got.err != nil {
			t.Fatal(name, got.err)
		}
		if d := cmp.Diff(want[name], sent(t, s.Requests()[0].Body)); d != "" {
			t.Error(name, d)
		}
	}
}

// The parts of a request around the messages.
func TestRequest(t *testing.T) {
	for name, c := range map[string]struct {
		o    openai.Options
		req  llm.Request
		path string
		head string
	}{
		"chat": {
			openai.Options{Compatible: true, Model: "qwen"}, llm.Request{MaxTokens: 99}, "/v1/chat/completions",
			`{"model":"qwen","stream":true,"stream_options":{"include_usage":true},"max_tokens":99,"messages":[`,
		},
		"chat with effort": {
			openai.Options{Compatible: true, Model: "qwen", Effort: "low"}, llm.Request{Model: "other"}, "/v1/chat/completions",
			`{"model":"other","stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"low","messages":[`,
		},
		"responses": {
			openai.Options{Model: "gpt-5.5", Effort: "high"}, llm.Request{System: "S", MaxTokens: 99}, "/v1/responses",
			`{"model":"gpt-5.5","stream":true,"store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"auto"},"max_output_tokens":99,"instructions":"S","input":[`,
		},
		"a model that does not think": {
			openai.Options{Model: "gpt-4.1"}, llm.Request{}, "/v1/responses",
			`{"model":"gpt-4.1","stream":true,"store":false,"input":[`,
		},
		"tools": {
			openai.Options{Model: "gpt-4.1"}, llm.Request{Tools: ask().Tools}, "/v1/responses",
			`{"model":"gpt-4.1","stream":true,"store":false,"tools":[{"type":"function","strict":false,"name":"look","description":"Looks \"around\".","parameters":{"type":"object","properties":{"at":{"type":"string"}}}},{"type":"function","strict":false,"name":"wait","parameters":{"type":"object","properties":{}}}],"input":[`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Messages = ask("hi").Messages
			s := llmtest.New(t, llmtest.Text("ok"), llmtest.Text("ok"))
			// With or without the version, with or without a slash.
			for _, url := range []string{s.URL, s.URL + "/v1/"} {
				if got := collect(t.Context(), provider(t, url, c.o), c.req); got.err != nil {
					t.Fatal(got.err)
				}
			}
			for _, r := range s.Requests() {
				if !bytes.HasPrefix(r.Body, []byte(c.head)) {
					t.Errorf("got %s, want bytes.HasPrefix(r.Body, []byte(c.head))", r.Body)
				}
				if got := r.Header.Get("Authorization"); got != "Bearer sk-test-1234567890abcdef" {
					t.Error(got)
				}
			}
		})
	}
}

// A server on this machine needs no key, and gets no header for one.
func TestNoKey(t *testing.T) {
	var header http.Header
	url, _ := serve(t, 200, nil, events(chunk(`{"content":"hi"}`), finished))
	p := openai.New(openai.Options{Compatible: true, BaseURL: url, Model: "m", HTTPClient: &http.Client{Transport: spy(&header)}})
	if got := collect(t.Context(), p, ask("hi")); got.err != nil || header.Get("Authorization") != "" || got.text != "hi" {
		t.Errorf(`got %v %v, want got.err = nil and header.Get("Authorization") = "" and got.text = "hi"`,
			got.err, header)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func spy(header *http.Header) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		*header = r.Header.Clone()
		return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	}
}

// genMessages draws a history as contextwindow makes it: roles alternate, every call
// is answered at the start of the next message.
func genMessages(t *rapid.T) []llm.Message {
	text := rapid.StringMatching(`[a-z"\\ é😀]{1,12}`)
	var out []llm.Message
	add := func(role string, blocks []any) {
		out = append(out, llm.Message{Role: role, Content: mustJSON(blocks)})
	}
	words := func() map[string]any { return map[string]any{"type": "text", "text": text.Draw(t, "text")} }
	add("user", []any{words()})
	n := rapid.IntRange(0, 6).Draw(t, "turns")
	id := 0
	for range n {
		var reply, results []any
		if rapid.Bool().Draw(t, "thinks") {
			reply = append(reply, map[string]any{"type": "reasoning", "summary": []any{}, "encrypted_content": text.Draw(t, "sealed")})
		}
		reply = append(reply, words())
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			id++
			name := "c" + strings.Repeat("x", id)
			reply = append(reply, map[string]any{"type": "tool_use", "id": name, "name": "look", "input": map[string]any{"at": text.Draw(t, "input")}})
			var content any = text.Draw(t, "result")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				content = []any{json.RawMessage(pixel)}
			case 1:
				content = []any{words(), words()}
			case 2:
				content = []any{}
			}
			results = append(results, map[string]any{"type": "tool_result", "tool_use_id": name, "content": content})
		}
		add("assistant", reply)
		if len(results) == 0 || rapid.Bool().Draw(t, "says") {
			results = append(results, words())
		}
		add("user", results)
	}
	return out
}

// Any history that can be sent is accepted, the same one is the same bytes, and a
// longer one begins with the bytes of the shorter: that is what prompt caches need.
func TestRequestsAreValidAndGrow(t *testing.T) {
	for name, o := range dialects {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t)
			s.Answer(func(llmtest.Request) llmtest.Reply { return llmtest.Text("ok") })
			rapid.Check(t, func(rt *rapid.T) {
				// One provider for all requests of a task, as in a run.
				task := provider(t, s.URL, o)
				messages := genMessages(rt)
				var before []byte
				for n := 1; n <= len(messages); n += 2 {
					for _, p := range []*openai.Provider{task, provider(t, s.URL, o)} {
						req := ask()
						req.Messages = messages[:n]
						if got := collect(t.Context(), p, req); got.err != nil {
							rt.Fatal(got.err)
						}
					}
					all := s.Requests()
					body, fresh := all[len(all)-2].Body, all[len(all)-1].Body
					if !bytes.Equal(body, fresh) {
						rt.Fatalf("%s\nafter a restart %s", body, fresh)
					}
					if !bytes.HasPrefix(body, before) {
						rt.Fatalf("%s\ndoes not begin with %s", body, before)
					}
					before = bytes.TrimSuffix(body, []byte("]}"))
				}
			})
		})
	}
}
