package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
)

// answers serves a raw body to every request, as proxies and imitations do.
func answers(t *testing.T, status int, header http.Header, body string) (*llmtest.Server, *int) {
	t.Helper()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}))
	t.Cleanup(s.Close)
	return &llmtest.Server{URL: s.URL}, &asked
}

// stream is a body of server-sent events.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

const (
	begun   = `{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}`
	text    = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	stopped = `{"type":"message_stop"}`
)

func delta(index int, kind, key, value string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, index, kind, key, value)
}

func call(index int, id string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":"f","input":{}}}`, index, id)
}

// Imitations of the API repeat ids or leave them out. Each call is kept, under an id
// of its own, and what was wrong with one is not laid at the door of another.
func TestRepeatedIDsBecomeDistinct(t *testing.T) {
	s, _ := answers(t, 200, nil, stream(begun,
		call(0, "x"), delta(0, "input_json_delta", "partial_json", `"{\"a\":1}"`),
		call(1, "x"), delta(1, "input_json_delta", "partial_json", `"{\"a\":"`),
		call(2, ""), call(3, "x"), stopped))
	o := collect(t, provider(t, s), t.Context(), ask("hi"))
	if o.err != nil {
		t.Fatal(o.err)
	}
	var got []string
	for _, b := range o.done.Blocks {
		got = append(got, string(b))
	}
	want := []string{
		`{"type":"tool_use","id":"x","name":"f","input":{"a":1}}`, `{"type":"tool_use","id":"x_2","name":"f","input":{}}`,
		`{"type":"tool_use","id":"call_2","name":"f","input":{}}`, `{"type":"tool_use","id":"x_3","name":"f","input":{}}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"x_2": `{"a":`}, o.done.Malformed); d != "" {
		t.Error(d)
	}
}

// A character that a stream cuts into halves is whole again in the reply.
func TestHalfCharactersJoin(t *testing.T) {
	s, _ := answers(t, 200, nil, stream(begun, text,
		delta(0, "text_delta", "text", `"a\ud83d"`), delta(0, "text_delta", "text", `"\ude00b"`), stopped))
	o := collect(t, provider(t, s), t.Context(), ask("hi"))
	var block struct{ Text string }
	if o.err != nil || json.Unmarshal(o.done.Blocks[0], &block) != nil || block.Text != "a😀b" {
		t.Errorf("got %v %s, want o.err = nil and json.Unmarshal(o.done.Blocks[0], &block) = nil and block.Text = \"a😀b\"",
			o.err, o.done.Blocks)
	}
}

// The end of a stream names only the counts that changed; the others keep their values.
func TestUsageIsPutTogether(t *testing.T) {
	s, _ := answers(t, 200, nil, stream(begun, text, delta(0, "text_delta", "text", `"a"`),
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":70}}`,
		`{"type":"message_delta","delta":{},"usage":{"output_tokens":80,"cache_creation_input_tokens":5,"input_tokens":-3}}`, stopped))
	o := collect(t, provider(t, s), t.Context(), ask("hi"))
	want := llm.Usage{Input: 9, CacheRead: 4, CacheWrite: 5, Output: 80}
	if o.err != nil || o.done.Usage != want || o.done.StopReason != "end_turn" {
		t.Errorf("got %v %+v, want o.err = nil and o.done.Usage = %v and o.done.StopReason = \"end_turn\"",
			o.err, o.done, want)
	}
	if n := len(o.usage); n != 3 || o.usage[0].Output != 1 || o.usage[n-1] != want {
		t.Errorf("reports %+v", o.usage)
	}
}

// A reply that fills the context window is cut like one that reaches its own limit.
func TestTheWindowIsFull(t *testing.T) {
	s, _ := answers(t, 200, nil, stream(begun, text, delta(0, "text_delta", "text", `"a"`),
		`{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}`, stopped))
	if o := collect(t, provider(t, s), t.Context(), ask("hi")); o.err != nil || o.done.StopReason != "max_tokens" {
		t.Errorf("got %v %+v, want a reply that ends with max_tokens", o.err, o.done)
	}
}

// A reply whose stop reason came is whole, also where the stream ends without its end event.
func TestTheEndEventIsMissing(t *testing.T) {
	s, asked := answers(t, 200, nil, stream(begun, text, delta(0, "text_delta", "text", `"a"`),
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":70}}`))
	o := collect(t, provider(t, s), t.Context(), ask("hi"))
	if o.err != nil || o.done.StopReason != "end_turn" || o.done.Usage.Output != 70 || *asked != 1 {
		t.Errorf("got %v %+v after %d requests, want a reply of 70 tokens that ends with end_turn after 1", o.err, o.done, *asked)
	}
}

// An answer that is not a stream is an error that quotes it, shortened and without keys.
func TestAnswersThatAreNoStream(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		kind   llm.Kind
		says   string
	}{
		"a proxy's page":                {502, "<html><body>\n  Bad   gateway " + strings.Repeat("x", 900) + "</body></html>", llm.Server, "<html><body> Bad gateway xxx"},
		"a page that echoes the key":    {403, `{"error":{"type":"permission_error","message":"the key ` + key + ` may not"}}`, llm.Auth, "the key [key] may not"},
		"nothing":                       {500, "", llm.Server, "Internal Server Error"},
		"JSON where a stream should be": {200, `{"type":"message","content":[]}`, llm.Invalid, `{"type":"message","content":[]}`},
		"an empty stream":               {200, "", llm.Cut, "ended before the reply"},
		"events of nothing":             {200, stream(`{"type":"ping"}`, `{"type":"of tomorrow"}`), llm.Cut, "ended before the reply"},
		"an event that is no JSON":      {200, stream(begun, `{"type":`), llm.Server, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := answers(t, c.status, nil, c.body)
			o := collect(t, provider(t, s), t.Context(), ask("hi"))
			var e *llm.Error
			if !errors.As(o.err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.says) || len(e.Message) > 600 || strings.Contains(o.err.Error(), key) {
				t.Errorf("got %v, want errors.As(o.err, &e) and e.Kind = c.kind and strings.Contains(e.Message, c.says) and len(e.Message) <= 600 and not strings.Contains(o.err.Error(), key)",
					o.err)
			}
			if want := map[bool]int{true: 5, false: 1}[e.Retryable()]; *asked != want {
				t.Errorf("asked %d times, wanted %d", *asked, want)
			}
		})
	}
}

// Attempts are repeated only while nothing was shown, at most Retries times, and each
// failure is yielded before the wait for the next.
func TestRetriesAreShownAndBounded(t *testing.T) {
	busy := `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`
	for name, c := range map[string]struct {
		body           string
		retries, asked int
		kind           llm.Kind
	}{
		"before anything":          {stream(busy), 2, 3, llm.Overloaded},
		"after the usage":          {stream(begun, busy), 2, 3, llm.Overloaded},
		"while it thinks unseen":   {stream(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, busy), 2, 1, llm.Overloaded},
		"after a word":             {stream(begun, text, delta(0, "text_delta", "text", `"a"`), busy), 2, 1, llm.Overloaded},
		"after a call was named":   {stream(begun, call(0, "x"), busy), 2, 1, llm.Overloaded},
		"never again":              {stream(busy), -1, 1, llm.Overloaded},
		"what does not get better": {stream(`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), 2, 1, llm.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := answers(t, 200, http.Header{"Retry-After": {"3"}}, c.body)
			var waits []time.Duration
			o := collect(t, provider(t, s, func(o *anthropic.Options) {
				o.Backoff.Retries = c.retries
				o.Backoff.Sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			}), t.Context(), ask("hi"))
			var e *llm.Error
			if !errors.As(o.err, &e) || e.Kind != c.kind || *asked != c.asked || len(o.retries) != c.asked-1 || len(waits) != c.asked-1 {
				t.Fatalf("%v, asked %d times, told %d, waited %v", o.err, *asked, len(o.retries), waits)
			}
			if want := strings.Contains(c.body, "content_block"); (len(o.usage) == 1 && o.usage[0].Input == 9) != want {
				t.Errorf("got the usage %v, want that of message_start: %t", o.usage, want)
			}
			for i, r := range o.retries {
				if r.Attempt != i+1 || r.WaitMS != 3000 || waits[i] != 3*time.Second || r.Err.Kind != llm.Overloaded {
					t.Errorf("%+v, waited %s", r, waits[i])
				}
			}
		})
	}
}

// The address may be written as people write it; what is sent with it is what the
// API asks for.
func TestWhatIsSentAlong(t *testing.T) {
	for _, suffix := range []string{"", "/", "/v1", "/v1/", "///"} {
		s := llmtest.New(t, llmtest.Text("ok"))
		s.Key = key
		p := provider(t, s, func(o *anthropic.Options) {
			o.BaseURL, o.APIKey = s.URL+suffix, " "+key+"\n"
		})
		if o := collect(t, p, t.Context(), ask("hi")); o.err != nil {
			t.Errorf("%q: got %v, want o.err = nil", suffix, o.err)
			continue
		}
		h := s.Requests()[0].Header
		if h.Get("Anthropic-Version") == "" || h.Get("X-Api-Key") != key {
			t.Errorf(`%q: got %v, want h.Get("Anthropic-Version") != "" and h.Get("X-Api-Key") = key`, suffix, h)
		}
		for _, shown := range []string{p.String(), fmt.Sprintf("%v %+v %#v", p, p, p)} {
			if strings.Contains(shown, key) || !strings.Contains(shown, s.URL) {
				t.Errorf("shown as %s", shown)
			}
		}
	}
}

// A reply may be as long as the model allows and a fifth of its window; the rest is
// for the history.
func TestRoomForTheReply(t *testing.T) {
	for model, want := range map[string]int{
		"claude-sonnet-5-5": 128_000, "claude-sonnet-4-5-20250929": 40_000, "claude-3-5-haiku-latest": 8192, "claude-of-tomorrow": 8192,
	} {
		var sent struct {
			MaxTokens int `json:"max_tokens"`
		}
		if err := json.Unmarshal([]byte(body(t, anthropic.Options{Model: model}, ask("hi"))), &sent); err != nil || sent.MaxTokens != want {
			t.Errorf("%s: %d, wanted %d", model, sent.MaxTokens, want)
		}
	}
	req := ask("hi")
	req.Model, req.MaxTokens = "claude-3-5-haiku-latest", 77
	if got := body(t, anthropic.Options{Model: "other"}, req); !strings.HasPrefix(got, `{"model":"claude-3-5-haiku-latest","max_tokens":77,`) {
		t.Errorf("what the request says does not win: %s", got)
	}
}

// A call that is over before it begins does not reach the provider.
func TestACancelledCallIsNotSent(t *testing.T) {
	s := llmtest.New(t, llmtest.Text("ok"))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if o := collect(t, provider(t, s), ctx, ask("hi")); !errors.Is(o.err, enough) || len(s.Requests()) != 0 {
		t.Errorf("%v, %d requests", o.err, len(s.Requests()))
	}
}
