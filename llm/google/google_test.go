package google_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/google"
	"github.com/roost-dev/roost/llm/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "AIzaTest-1234567890abcdefghij"

func provider(t *testing.T, url string) *google.Provider {
	t.Helper()
	o := google.Options{Model: "gemini-3-pro", BaseURL: url, APIKey: key, HTTPClient: &http.Client{Transport: wire.NewTransport()}}
	o.Backoff.Sleep = func(context.Context, time.Duration) error { return nil }
	p := google.New(o)
	t.Cleanup(p.CloseIdle)
	return p
}

// outcome is everything that a stream yielded.
type outcome struct {
	text, thought string
	calls         []string
	retries       []llm.Retrying
	done          *llm.Done
	err           error
}

func (o outcome) blocks() (out []string) {
	if o.done != nil {
		for _, b := range o.done.Blocks {
			out = append(out, string(b))
		}
	}
	return out
}

func collect(ctx context.Context, p llm.Provider, req llm.Request) (o outcome) {
	for chunk, err := range p.Stream(ctx, req) {
		if err != nil {
			o.err = err
			break
		}
		switch c := chunk.(type) {
		case llm.TextDelta:
			o.text += c.Text
		case llm.ReasoningDelta:
			o.thought += c.Text
		case llm.ToolDelta:
			o.calls = append(o.calls, c.ID+" "+c.Name+" "+c.Input)
		case llm.Retrying:
			o.retries = append(o.retries, c)
		case llm.Done:
			o.done = &c
		}
	}
	return o
}

func ask(contents ...string) llm.Request {
	req := llm.Request{System: "Be kind.", Tools: []llm.ToolSpec{
		{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)}, {Name: "wait"},
	}}
	for i, c := range contents {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		if !strings.HasPrefix(c, "[") {
			b, _ := json.Marshal(c)
			c = string(b)
		}
		req.Messages = append(req.Messages, llm.Message{Role: role, Content: json.RawMessage(c)})
	}
	return req
}

// A whole reply, as it streams and as it is stored.
func TestReply(t *testing.T) {
	r := llmtest.Reply{Input: 90, CacheRead: 10, Output: 7, ID: "r1", Model: "m-2026"}.
		AndThinking("I wonder.", "").AndText("Because 😀.").AndCall("c1", "look", `{ "at": "x", "n": 1.0 }`).AndCall("", "wait", `{}`).AndCall("", "wait", `{}`)
	for _, slow := range []bool{false, true} {
		if slow {
			r = r.Trickle(3, 0)
		}
		got := collect(t.Context(), provider(t, llmtest.New(t, r).URL), ask("hi"))
		if got.err != nil {
			t.Fatal(got.err)
		}
		want := []string{
			`{"type":"reasoning","text":"I wonder.","summary":[]}`, `{"type":"text","text":"Because 😀."}`,
			`{"type":"tool_use","id":"c1","name":"look","input":{"at":"x","n":1.0}}`,
			`{"type":"tool_use","id":"call_1","name":"wait","input":{}}`, `{"type":"tool_use","id":"call_2","name":"wait","input":{}}`,
			`{"type":"thoughtSignature","thoughtSignature":"signed:c1"}`,
		}
		if d := cmp.Diff(want, got.blocks()); d != "" {
			t.Error(d)
		}
		if got.text != "Because 😀." || got.thought != "I wonder." || len(got.calls) != 3 {
			t.Errorf(`got %+v, want got.text = "Because 😀." and got.thought = "I wonder." and len(got.calls) = 3`,
				got)
		}
		if d := got.done; d.ID != "r1" || d.Model != "m-2026" || d.StopReason != "tool_use" || d.Usage != (llm.Usage{Input: 90, CacheRead: 10, Output: 7}) {
			t.Errorf(`got %+v, want d.ID = "r1" and d.Model = "m-2026" and d.StopReason = "tool_use" and d.Usage = (llm.Usage{Input: 90, CacheRead: 10, Output: 7})`,
				d)
		}
	}
}

const pixel = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`

// The wire form of each stored block, and of the message around them.
func TestRequest(t *testing.T) {
	history := []string{
		`[{"type":"text","text":"Look \u00e9 at"},` + pixel + `]`,
		`[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"look","input":{"at":"x","n":1.0}},{"type":"tool_use","id":"c2","name":"wait","input":{}},{"type":"thoughtSignature","thoughtSignature":"S"}]`,
		`[{"type":"tool_result","tool_use_id":"c1","content":"no","is_error":true},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"a"},` + pixel + `]},{"type":"text","text":"go on"}]`,
		`[{"type":"text","text":"One."},{"type":"text","text":"Two."},{"type":"thoughtSignature","thoughtSignature":"T"}]`,
		"more",
		`[{"type":"tool_use","id":"c3","name":"wait","input":{}}]`,
		`[{"type":"tool_result","tool_use_id":"c3","content":"ok"}]`,
	}
	s := llmtest.New(t, llmtest.Text("ok"), llmtest.Text("ok"))
	for _, url := range []string{s.URL, s.URL + "/v1beta/"} {
		if got := collect(t.Context(), provider(t, url), ask(history...)); got.err != nil {
			t.Fatal(got.err)
		}
	}
	image := `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}`
	want := `{"systemInstruction":{"parts":[{"text":"Be kind."}]},` +
		`"tools":[{"functionDeclarations":[{"name":"look","description":"Looks.","parametersJsonSchema":{"type":"object","properties":{"at":{"type":"string"}}}},{"name":"wait","description":""}]}],` +
		`"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"contents":[` + strings.Join([]string{
		`{"role":"user","parts":[{"text":"Look \u00e9 at"},` + image + `]}`,
		`{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"c1","name":"look","args":{"at":"x","n":1.0}},"thoughtSignature":"S"},{"functionCall":{"id":"c2","name":"wait","args":{}}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"look","response":{"error":"no"}}},{"functionResponse":{"id":"c2","name":"wait","response":{"output":"a"}}},` + image + `,{"text":"go on"}]}`,
		`{"role":"model","parts":[{"text":"One."},{"text":"Two.","thoughtSignature":"T"}]}`,
		`{"role":"user","parts":[{"text":"more"}]}`,
		`{"role":"model","parts":[{"functionCall":{"id":"c3","name":"wait","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"c3","name":"wait","response":{"output":"ok"}}}]}`,
	}, ",") + `]}`
	for _, r := range s.Requests() {
		if d := cmp.Diff(want, string(r.Body)); d != "" {
			t.Error(d)
		}
		if r.Model() != "gemini-3-pro" || r.Replies() != 3 || r.Header.Get("X-Goog-Api-Key") != key {
			t.Errorf(`got %s %d, want r.Model() = "gemini-3-pro" and r.Replies() = 3 and r.Header.Get("X-Goog-Api-Key") = key`,
				r.Path, r.Replies())
		}
	}
}

// Older models know neither thoughts nor signatures, and refuse to be asked.
func TestOlderModels(t *testing.T) {
	for model, want := range map[string][2]bool{ // asks for thoughts, signs
		"gemini-1.5-pro": {false, false}, "gemini-2.0-flash": {false, false}, "gemini-2.5-pro": {true, false},
		"gemini-3-pro-preview": {true, true}, "gemini-3.8-flash": {true, true}, "models/gemini-4-argon": {true, true},
		"gemini-pro": {false, false}, "gemma-3-27b": {false, false},
	} {
		var body []byte
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body) // what came is compared
			body = b.Bytes()
			_, _ = w.Write([]byte("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ok\"}]},\"finishReason\":\"STOP\"}]}\n\n"))
		}))
		req := ask("hi", `[{"type":"tool_use","id":"c","name":"wait","input":{}}]`, `[{"type":"tool_result","tool_use_id":"c","content":"ok"}]`)
		req.Model, req.MaxTokens = model, 50
		got := collect(t.Context(), provider(t, s.URL), req)
		has := [2]bool{bytes.Contains(body, []byte("includeThoughts")), bytes.Contains(body, []byte("thoughtSignature"))}
		if got.err != nil || has != want || !bytes.Contains(body, []byte(`"generationConfig":{"maxOutputTokens":50`)) || !json.Valid(body) {
			t.Errorf("%s: got %v %v %s, want got.err = nil and has = %v and bytes.Contains(body, []byte(`\"generationConfig\":{\"maxOutputTokens\":50`)) and json.Valid(body)",
				model, got.err, has, body, want)
		}
		s.Close()
	}
}

func TestStopReasons(t *testing.T) {
	s := llmtest.New(t)
	p := provider(t, s.URL)
	for _, reason := range []string{"end_turn", "max_tokens", "refusal", "MALFORMED_FUNCTION_CALL"} {
		r := llmtest.Text("so")
		if reason != "end_turn" {
			r.StopReason = reason
		}
		s.Add(r)
		if got := collect(t.Context(), p, ask("hi")); got.err != nil || got.done.StopReason != reason {
			t.Errorf("%s: got %v %+v, want got.err = nil and got.done.StopReason = reason", reason, got.err, got.done)
		}
	}
}

// A stream that ends without a finish reason is a cut reply.
func TestCutStreams(t *testing.T) {
	r := llmtest.Text("one two three").AndCall("c1", "look", `{"at":"here"}`)
	r.DeltaRunes = 4
	for n := 1; n < 20; n++ {
		got := collect(t.Context(), provider(t, llmtest.New(t, r.CutEvent(n)).URL), ask("hi"))
		if got.err == nil {
			if n < 5 || len(got.done.Blocks) != 3 {
				t.Errorf("cut after %d events: %v", n, got.blocks())
			}
			return
		}
		var e *llm.Error
		if !errors.As(got.err, &e) || e.Kind != llm.Cut {
			t.Errorf("cut after %d events: %v", n, got.err)
		}
	}
	t.Error("the stream never ended")
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		reply llmtest.Reply
		kind  llm.Kind
		tries int
	}{
		"wrong key": {llmtest.Fail(400, "API key not valid. Please pass a valid API key. "+key), llm.Auth, 1},
		"wrong":     {llmtest.Fail(400, "Invalid value at 'contents'"), llm.Invalid, 1},
		"too long":  {llmtest.Fail(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), llm.ContextOverflow, 1},
		"busy":      {llmtest.Fail(503, "The model is overloaded"), llm.Overloaded, 5},
		"rate":      {llmtest.Fail(429, "Quota exceeded").After("retry-after", "2"), llm.RateLimited, 5},
	} {
		s := llmtest.New(t)
		s.Answer(func(llmtest.Request) llmtest.Reply { return c.reply })
		got := collect(t.Context(), provider(t, s.URL), ask("hi"))
		var e *llm.Error
		if !errors.As(got.err, &e) || e.Kind != c.kind || len(s.Requests()) != c.tries || strings.Contains(e.Error(), "1234567890") {
			t.Errorf("%s: %v after %d tries", name, got.err, len(s.Requests()))
		}
	}
}

// Answers as they really come, and as they should not.
func TestOddAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		kind   llm.Kind
		stop   string
		blocks []string
		wait   int64
	}{
		"an image is blocked":    {200, `data: {"promptFeedback":{"blockReason":"IMAGE_SAFETY"}}` + "\n\n", "", "refusal", nil, 0},
		"the prompt is blocked":  {200, `data: {"promptFeedback":{"blockReason":"SAFETY"}}` + "\n\n", "", "refusal", nil, 0},
		"no content at the end":  {200, `data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}` + "\n\n" + `data: {"candidates":[{"finishReason":"STOP"}]}` + "\n\n", "", "end_turn", []string{`{"type":"text","text":"a"}`}, 0},
		"a signature by itself":  {200, `data: {"candidates":[{"content":{"parts":[{"text":"a"},{"text":"","thoughtSignature":"S"}]},"finishReason":"STOP"}]}` + "\n\n", "", "end_turn", []string{`{"type":"text","text":"a"}`, `{"type":"thoughtSignature","thoughtSignature":"S"}`}, 0},
		"arguments of no object": {200, `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":[1]}}]},"finishReason":"STOP"}]}` + "\n\n", "", "tool_use", []string{`{"type":"tool_use","id":"call_0","name":"f","input":{}}`}, 0},
		"an error in the stream": {200, `data: {"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}` + "\n\n", llm.Overloaded, "", nil, 0},
		"not JSON":               {200, "data: hello\n\n", llm.Server, "", nil, 0},
		"a wait in the page":     {429, `{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"RetryInfo","retryDelay":"1.5s"}]}}`, llm.RateLimited, "", nil, 1500},
		"a proxy's page":         {502, "<html>Bad Gateway</html>", llm.Server, "", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body)) // the client may be gone
			}))
			defer s.Close()
			p := google.New(google.Options{APIKey: key, BaseURL: s.URL, Model: "gemini-3-pro", Backoff: wire.Backoff{Retries: -1}})
			defer p.CloseIdle()
			got := collect(t.Context(), p, ask("hi"))
			if c.kind != "" {
				var e *llm.Error
				if !errors.As(got.err, &e) || e.Kind != c.kind || e.RetryAfterMS != c.wait {
					t.Errorf("got %v, want errors.As(got.err, &e) and e.Kind = c.kind and e.RetryAfterMS = c.wait", got.err)
				}
				return
			}
			if d := cmp.Diff(c.blocks, got.blocks()); got.err != nil || d != "" || got.done.StopReason != c.stop {
				t.Error(got.err, d, got.done)
			}
		})
	}
}

func TestWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		o    google.Options
		req  llm.Request
		says string
	}{
		"no key":     {google.Options{Model: "m"}, ask("hi"), "GEMINI_API_KEY"},
		"no model":   {google.Options{APIKey: key}, ask("hi"), "--model"},
		"no message": {google.Options{APIKey: key, Model: "m"}, ask(), "no message"},
	} {
		if got := collect(t.Context(), google.New(c.o), c.req); got.err == nil || !strings.Contains(got.err.Error(), c.says) {
			t.Errorf("%s: got %v, want got.err != nil and strings.Contains(got.err.Error(), c.says)", name, got.err)
		}
	}
}

// Any history that can be sent is accepted, and a longer one begins with the bytes
// of the shorter, also after a restart.
func TestRequestsAreValidAndGrow(t *testing.T) {
	s := llmtest.New(t)
	s.Answer(func(llmtest.Request) llmtest.Reply { return llmtest.Text("ok") })
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[a-z"\\ é😀]{1,12}`)
		contents := []string{text.Draw(rt, "first")}
		id := 0
		for range rapid.IntRange(0, 5).Draw(rt, "turns") {
			reply := []any{map[string]any{"type": "text", "text": text.Draw(rt, "reply")}}
			results := []any{}
			for range rapid.IntRange(0, 3).Draw(rt, "calls") {
				id++
				name := "c" + strings.Repeat("x", id)
				reply = append(reply, map[string]any{"type": "tool_use", "id": name, "name": rapid.SampledFrom([]string{"look", "wait"}).Draw(rt, "name"), "input": map[string]any{"at": text.Draw(rt, "in")}})
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": name, "content": text.Draw(rt, "out"), "is_error": rapid.Bool().Draw(rt, "bad")})
			}
			if rapid.Bool().Draw(rt, "signed") {
				reply = append(reply, map[string]any{"type": "thoughtSignature", "thoughtSignature": text.Draw(rt, "signature")})
			}
			if len(results) == 0 {
				results = append(results, map[string]any{"type": "text", "text": text.Draw(rt, "words")})
			}
			for _, v := range []any{reply, results} {
				b, _ := json.Marshal(v)
				contents = append(contents, string(b))
			}
		}
		task := provider(t, s.URL)
		messages := ask(contents...).Messages
		var before []byte
		for n := 1; n <= len(messages); n += 2 {
			for _, p := range []*google.Provider{task, provider(t, s.URL)} {
				req := ask()
				req.Messages = messages[:n]
				if got := collect(t.Context(), p, req); got.err != nil {
					rt.Fatal(got.err)
				}
			}
			all := s.Requests()
			body, fresh := all[len(all)-2].Body, all[len(all)-1].Body
			if !bytes.Equal(body, fresh) || !bytes.HasPrefix(body, before) {
				rt.Fatalf("%s\nafter a restart %s\nbefore %s", body, fresh, before)
			}
			before = bytes.TrimSuffix(body, []byte("]}"))
		}
	})
}
