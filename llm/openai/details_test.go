package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm/openai"
)

func detailed(details string) string {
	return chunk(`{"content":"","reasoning_details":` + details + `}`)
}

func TestReasoningDetailsArePutTogether(t *testing.T) {
	for name, c := range map[string]struct {
		pieces        []string
		want, thought string
	}{
		"words grow, a signature comes last": {
			[]string{`[{"type":"reasoning.text","text":"I ","signature":null,"format":"f","index":0}]`, `[{"type":"reasoning.text","text":"see","index":0}]`,
				`[{"type":"reasoning.text","signature":"s","index":0}]`},
			`[{"type":"reasoning.text","text":"I see","signature":"s","format":"f","index":0}]`, "I see",
		},
		"elements by index and type": {
			[]string{`[{"type":"reasoning.summary","summary":"a","index":0},{"type":"reasoning.encrypted","data":"xx","index":0,"id":"r"}]`,
				`[{"type":"reasoning.summary","summary":"b","index":1}]`, `[{"type":"reasoning.summary","summary":"c","index":0}]`},
			`[{"type":"reasoning.summary","summary":"ac","index":0},{"type":"reasoning.encrypted","data":"xx","index":0,"id":"r"},{"type":"reasoning.summary","summary":"b","index":1}]`, "abc",
		},
		"no index": {
			[]string{`[{"type":"reasoning.text","text":"a"}]`, `[{"type":"reasoning.text","text":"b"}]`, `[{"type":"reasoning.encrypted","data":"1"}]`, `[{"type":"reasoning.encrypted","data":"2"}]`},
			`[{"type":"reasoning.text","text":"ab"},{"type":"reasoning.encrypted","data":"1"},{"type":"reasoning.encrypted","data":"2"}]`, "ab",
		},
		"what nobody knows stays": {
			[]string{`[{"type":"reasoning.dream","n":1.50,"deep":{"z":[1]},"index":3}]`},
			`[{"type":"reasoning.dream","n":1.50,"deep":{"z":[1]},"index":3}]`, "",
		},
		"a null takes nothing back": {
			[]string{`[{"type":"reasoning.text","id":"x","text":"a","index":0}]`, `[{"type":"reasoning.text","id":null,"text":null,"index":0}]`},
			`[{"type":"reasoning.text","id":"x","text":"a","index":0}]`, "a",
		},
		"halves of a character": {
			[]string{`[{"type":"reasoning.text","text":"\ud83d","index":0}]`, `[{"type":"reasoning.text","text":"\ude00","index":0}]`},
			`[{"type":"reasoning.text","text":"😀","index":0}]`, "😀",
		},
		"what is no list": {[]string{`{"type":"reasoning.text"}`, `"x"`, `null`, `[7,null]`, `[]`}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var data []string
			for _, p := range c.pieces {
				data = append(data, detailed(p))
			}
			url, _ := serve(t, 200, nil, events(append(data, chunk(`{"content":"hi"}`), finished)...))
			got := collect(t.Context(), provider(t, url, dialects["chat"]), ask("hi"))
			if got.err != nil {
				t.Fatal(got.err)
			}
			if d := cmp.Diff(c.want, string(got.done.ReasoningDetails)); d != "" {
				t.Error(d)
			}
			if name != "halves of a character" && got.thought != c.thought {
				t.Errorf("the person reads %q", got.thought)
			}
			if b := got.blocks(); len(b) != 1 || b[0] != `{"type":"text","text":"hi"}` {
				t.Errorf("blocks %v: what is in the details stands in no block", b)
			}
		})
	}
}

// Thoughts that a server sends in both forms are shown once.
func TestThoughtsThatComeTwice(t *testing.T) {
	url, _ := serve(t, 200, nil, events(
		chunk(`{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","index":0}]}`), chunk(`{"content":"hi"}`), finished))
	got := collect(t.Context(), provider(t, url, dialects["chat"]), ask("hi"))
	if got.thought != "hm" || string(got.done.ReasoningDetails) != `[{"type":"reasoning.text","text":"hm","index":0}]` {
		t.Errorf("got %q %s, want got.thought = \"hm\" and string(got.done.ReasoningDetails) = `[{\"type\":\"reasoning.text\",\"text\":\"hm\",\"index\":0}]`",
			got.thought, got.done.ReasoningDetails)
	}
}

// However a server cuts its thoughts, the same is kept.
func TestDetailsDoNotDependOnTheirPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zé"\\ ]{0,12}`), 1, 3).Draw(rt, "words")
		var pieces []string
		var want []string
		for i, w := range words {
			want = append(want, fmt.Sprintf(`{"type":"reasoning.text","text":%s,"index":%d}`, mustJSON(w), i))
			runes := []rune(w)
			for {
				n := rapid.IntRange(0, len(runes)).Draw(rt, "cut")
				pieces = append(pieces, detailed(fmt.Sprintf(`[{"type":"reasoning.text","text":%s,"index":%d}]`, mustJSON(string(runes[:n])), i)))
				if runes = runes[n:]; len(runes) == 0 {
					break
				}
			}
		}
		url, _ := serve(t, 200, nil, events(append(pieces, chunk(`{"content":"hi"}`), finished)...))
		got := collect(t.Context(), provider(t, url, dialects["chat"]), ask("hi"))
		if got.err != nil || string(got.done.ReasoningDetails) != "["+strings.Join(want, ",")+"]" || got.thought != strings.Join(words, "") {
			rt.Fatalf("%v\n got %s\nwant %v", got.err, got.done.ReasoningDetails, want)
		}
	})
}

// What came with a message goes back with it, byte for byte, and only to a server of
// chat completions.
func TestDetailsGoBack(t *testing.T) {
	const details = `[{"type":"reasoning.encrypted","data":"x","n":1.50}]`
	each(t, func(t *testing.T, s *llmtest.Server, p *openai.Provider) {
		s.Add(llmtest.Text("one"), llmtest.Text("two"))
		req := ask("hi", "there", "and?")
		req.Messages[1].ReasoningDetails = json.RawMessage(details)
		if got := collect(t.Context(), p, req); got.err != nil {
			t.Fatal(got.err)
		}
		has := strings.Contains(string(s.Requests()[0].Body), `"content":"there","reasoning_details":`+details+`}`)
		if has != (p.Name() == "openai-compatible") {
			t.Errorf("%s: got %s, want has = (p.Name() == \"openai-compatible\")", p.Name(), s.Requests()[0].Body)
		}
		// The same memory without them is another message.
		req.Messages[1].ReasoningDetails = nil
		if got := collect(t.Context(), p, req); got.err != nil || strings.Contains(string(s.Requests()[1].Body), "reasoning_details") {
			t.Errorf("got %v %s, want got.err = nil and not strings.Contains(string(s.Requests()[1].Body), \"reasoning_details\")",
				got.err, s.Requests()[1].Body)
		}
	})
}

// A whole turn against a server that keeps the rules: what it sent comes back to it.
func TestDetailsOverTurns(t *testing.T) {
	s := llmtest.New(t)
	first := llmtest.Call("c1", "look", `{"at":"x"}`)
	first.Details = []json.RawMessage{
		json.RawMessage(`{"type":"reasoning.text","text":"Let ","index":0}`), json.RawMessage(`{"type":"reasoning.text","text":"me see","signature":"sig","index":0}`),
	}
	s.Add(first, llmtest.Text("done"))
	p := provider(t, s.URL, dialects["chat"])
	req := ask("hi")
	got := collect(t.Context(), p, req)
	if got.err != nil || got.thought != "Let me see" {
		t.Fatalf("got %v %q, want got.err = nil and got.thought = \"Let me see\"", got.err, got.thought)
	}
	req = ask("hi", "["+strings.Join(got.blocks(), ",")+"]", `[{"type":"tool_result","tool_use_id":"c1","content":"seen"}]`)
	req.Messages[1].ReasoningDetails = got.done.ReasoningDetails
	if got := collect(t.Context(), p, req); got.err != nil || got.text != "done" {
		t.Fatalf("got %v %q, want got.err = nil and got.text = \"done\"", got.err, got.text)
	}
	const want = `"reasoning_details":[{"index":0,"text":"Let me see","type":"reasoning.text","signature":"sig"}]`
	if sent := string(s.Requests()[1].Body); !strings.Contains(sent, want) && !strings.Contains(sent, `"reasoning_details":[{"type":"reasoning.text","text":"Let me see","index":0,"signature":"sig"}]`) {
		t.Error(sent)
	}
}

func TestEffortReachesTheModel(t *testing.T) {
	for name, want := range map[string]string{"responses": `"reasoning":{"effort":"high","summary":"auto"}`, "chat": `"reasoning_effort":"high"`} {
		s := llmtest.New(t)
		s.Add(llmtest.Text("hi"))
		o := dialects[name]
		o.Effort = "high"
		if got := collect(t.Context(), provider(t, s.URL, o), ask("hi")); got.err != nil || !strings.Contains(string(s.Requests()[0].Body), want) {
			t.Errorf("%s: got %v %s, want got.err = nil and strings.Contains(string(s.Requests()[0].Body), want)",
				name, got.err, s.Requests()[0].Body)
		}
	}
}
