package openai_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/openai"
)

// A whole reply, as it streams and as it is stored.
func TestReply(t *testing.T) {
	reasoning := map[string]string{
		"responses": `{"type":"reasoning","summary":[],"encrypted_content":"enc:I wonder \"why\".","id":"item_1_0"}`,
		"chat":      `{"type":"reasoning","text":"I wonder \"why\".","summary":[]}`,
	}
	for name, o := range dialects {
		t.Run(name, func(t *testing.T) {
			r := llmtest.Reply{Input: 90, CacheRead: 10, Output: 7, ID: "r1", Model: "m-2026"}.
				AndThinking(`I wonder "why".`, "").AndText("Because\nof this 😀.").AndCall("c1", "look", `{ "at": "x" }`).AndCall("c2", "wait", `{}`)
			p := provider(t, llmtest.New(t, r).URL, o)
			got := collect(t.Context(), p, ask("hi"))
			if got.err != nil {
				t.Fatal(got.err)
			}
			want := []string{
				reasoning[name], `{"type":"text","text":"Because\nof this 😀."}`,
				`{"type":"tool_use","id":"c1","name":"look","input":{"at":"x"}}`, `{"type":"tool_use","id":"c2","name":"wait","input":{}}`,
			}
			if d := cmp.Diff(want, got.blocks()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]string{`c1 look { "at": "x" }`, `c2 wait {}`}, got.calls); d != "" {
				t.Error(d)
			}
			if got.text != "Because\nof this 😀." || got.thought != `I wonder "why".` {
				t.Errorf("streamed %q and %q", got.text, got.thought)
			}
			usage := llm.Usage{Input: 90, CacheRead: 10, Output: 7}
			if d := got.done; d.ID != "r1" || d.Model != "m-2026" || d.StopReason != "tool_use" || d.Usage != usage || d.Malformed != nil {
				t.Errorf(`got %+v, want d.ID = "r1" and d.Model = "m-2026" and d.StopReason = "tool_use" and d.Usage = usage and d.Malformed = nil`,
					d)
			}
		})
	}
}

func TestStopReasons(t *testing.T) {
	each(t, func(t *testing.T, s *llmtest.Server, p *openai.Provider) {
		for _, reason := range []string{"end_turn", "max_tokens", "refusal"} {
			r := llmtest.Text("so")
			if reason != "end_turn" {
				r.StopReason = reason
			}
			s.Add(r)
			if got := collect(t.Context(), p, ask("hi")); got.err != nil || got.done.StopReason != reason {
				t.Errorf("%s: got %v %+v, want got.err = nil and got.done.StopReason = reason", reason, got.err, got.done)
			}
		}
	})
}

// However the bytes come, the reply is the same.
func TestSlowAndSplitStreams(t *testing.T) {
	each(t, func(t *testing.T, s *llmtest.Server, p *openai.Provider) {
		r := llmtest.Text("Grüße 😀 and more").AndCall("c1", "look", `{"at":"ü"}`)
		s.Add(r, r.Trickle(1, 0), r.Trickle(7, time.Microsecond))
		first := collect(t.Context(), p, ask("hi"))
		for range 2 {
			if got := collect(t.Context(), p, ask("hi")); got.err != nil || !cmp.Equal(first.blocks(), got.blocks()) {
				t.Errorf("%v %v, not %v", got.err, got.blocks(), first.blocks())
			}
		}
	})
}

// A stream that ends anywhere before its end is a cut reply, never a short one.
func TestCutStreams(t *testing.T) {
	each(t, func(t *testing.T, s *llmtest.Server, p *openai.Provider) {
		r := llmtest.Text("one two three four").AndCall("c1", "look", `{"at":"here"}`)
		for n := 1; n < 60; n++ {
			for _, broken := range []llmtest.Reply{r.CutEvent(n), r.CutEvent(n).Broken()} {
				broken.DeltaRunes = 6
				s.Answer(func(llmtest.Request) llmtest.Reply { return broken })
				got := collect(t.Context(), p, ask("hi"))
				if got.done != nil {
					if got.done.StopReason == "" || len(got.done.Blocks) != 2 {
						t.Fatalf("cut after %d events: %v", n, got.blocks())
					}
					return // the stream was whole enough
				}
				if got.kind() != llm.Cut {
					t.Fatalf("cut after %d events: %v", n, got.err)
				}
			}
		}
		t.Error("the stream never ended")
	})
}

// A refusal has its kind; one that a wait may cure is tried again.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		reply llmtest.Reply
		kind  llm.Kind
		tries int
	}{
		"wrong key":   {llmtest.Fail(401, "Incorrect API key provided: sk-test-1234567890abcdef"), llm.Auth, 1},
		"bad request": {llmtest.Fail(400, "Invalid 'input[3]'"), llm.Invalid, 1},
		"too long":    {llmtest.Fail(400, "This model's maximum context length is 8192 tokens"), llm.ContextOverflow, 1},
		"busy":        {llmtest.Fail(503, "The engine is currently overloaded"), llm.Overloaded, 5},
		"broken":      {llmtest.Fail(500, "The server had an error"), llm.Server, 5},
		"rate":        {llmtest.Fail(429, "Rate limit reached").After("retry-after-ms", "1500"), llm.RateLimited, 5},
		"of a prompt": {llmtest.Text("x").ErrorEvent(1, "invalid_prompt", "Your prompt was flagged"), llm.Invalid, 1},
		"of an image": {llmtest.Text("x").ErrorEvent(1, "unsupported_image_media_type", "Not an image"), llm.Invalid, 1},
		"in stream":   {llmtest.Text("x").ErrorEvent(1, "server_error", "The server had an error"), llm.Server, 5},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *llmtest.Server, p *openai.Provider) {
				s.Answer(func(llmtest.Request) llmtest.Reply { return c.reply })
				got := collect(t.Context(), p, ask("hi"))
				var e *llm.Error
				if !errors.As(got.err, &e) || e.Kind != c.kind || e.Provider != p.Name() {
					t.Fatalf("got %v, want errors.As(got.err, &e) and e.Kind = c.kind and e.Provider = p.Name()", got.err)
				}
				if strings.Contains(e.Error(), "1234567890") {
					t.Errorf("the key is shown: %v", e)
				}
				if n := len(s.Requests()); n != c.tries || len(got.retries) != c.tries-1 {
					t.Errorf("asked %d times, %d retries told", n, len(got.retries))
				}
				if name == "rate" && (got.retries[0].WaitMS != 1500 || e.RetryAfterMS != 1500) {
					t.Errorf("waits %d ms", got.retries[0].WaitMS)
				}
			})
		})
	}
}

// After something was shown there is no second try: it would be shown twice.
func TestNoRetryAfterTheFirstChunk(t *testing.T) {
	each(t, func(t *testing.T, s *llmtest.Server, p *openai.Provider) {
		cut := map[string]int{openai.Name: 5, openai.Compatible: 3}[p.Name()]
		s.Add(llmtest.Text("one two three four five six").CutEvent(cut))
		if got := collect(t.Context(), p, ask("hi")); got.kind() != llm.Cut || got.text == "" || len(s.Requests()) != 1 {
			t.Errorf("%v after %q, %d requests", got.err, got.text, len(s.Requests()))
		}
	})
}

func TestNoMoneyIsNotWaitedFor(t *testing.T) {
	url, asked := serve(t, 429, nil, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`)
	if got := collect(t.Context(), provider(t, url, dialects["responses"]), ask("hi")); got.kind() != llm.Auth || *asked != 1 {
		t.Errorf("%v, asked %d times", got.err, *asked)
	}
}

// Silence is a dead connection; a caller that gives up gets its answer at once.
func TestSilenceAndCancelling(t *testing.T) {
	each(t, func(t *testing.T, s *llmtest.Server, p *openai.Provider) {
		s.Add(llmtest.Text("one two three").Stall(4))
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		mine := errors.New("enough")
		var last error
		for chunk, err := range p.Stream(ctx, ask("hi")) {
			if _, is := chunk.(llm.TextDelta); is {
				cancel(mine)
			}
			last = err
		}
		if !errors.Is(last, mine) {
			t.Errorf("cancelled: %v", last)
		}
	})
	for name, o := range dialects {
		o.Backoff.Retries = -1
		for o.IdleTimeout = 30 * time.Millisecond; ; o.IdleTimeout *= 4 {
			s := llmtest.New(t, llmtest.Text("one two three").Stall(3))
			got := collect(t.Context(), provider(t, s.URL, o), ask("hi"))
			if got.kind() == llm.Network && o.IdleTimeout < 10*time.Second {
				continue // a busy machine is silent before the answer begins, but not for so long
			}
			if got.kind() != llm.Cut {
				t.Errorf("%s: got %v, want got.kind() = llm.Cut", name, got.err)
			}
			break
		}
	}
}

// A consumer may stop listening at any chunk.
func TestConsumerStops(t *testing.T) {
	each(t, func(t *testing.T, s *llmtest.Server, p *openai.Provider) {
		r := llmtest.Text("one two three four").AndCall("c1", "look", `{"at":"x"}`)
		for stop := 1; ; stop++ {
			s.Add(r)
			n := 0
			for _, err := range p.Stream(t.Context(), ask("hi")) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n == stop {
					break
				}
			}
			if n < stop {
				break
			}
		}
	})
}

// A provider without its settings names what to set, and sends nothing.
func TestWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		o    openai.Options
		req  llm.Request
		says string
	}{
		"no key":      {openai.Options{Model: "gpt-5"}, ask("hi"), "OPENAI_API_KEY"},
		"no address":  {openai.Options{Compatible: true, Model: "m"}, ask("hi"), "--base-url"},
		"no model":    {openai.Options{Compatible: true, BaseURL: "http://127.0.0.1:1"}, ask("hi"), "--model"},
		"no message":  {openai.Options{Compatible: true, BaseURL: "http://127.0.0.1:1", Model: "m"}, ask(), "no message"},
		"bad role":    {openai.Options{Compatible: true, BaseURL: "http://127.0.0.1:1", Model: "m"}, llm.Request{Messages: []llm.Message{{Role: "system", Content: []byte(`"x"`)}}}, "role"},
		"bad address": {openai.Options{Compatible: true, BaseURL: "http://[::1", Model: "m"}, ask("hi"), "address"},
	} {
		if got := collect(t.Context(), openai.New(c.o), c.req); got.err == nil || !strings.Contains(got.err.Error(), c.says) {
			t.Errorf("%s: got %v, want got.err != nil and strings.Contains(got.err.Error(), c.says)", name, got.err)
		}
	}
}

// Answers that are no stream are quoted in the error.
func TestAnswersOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		kind   llm.Kind
		says   string
	}{
		"a proxy's page":     {502, "<html><body>Bad   Gateway</body></html>", llm.Server, "Bad Gateway"},
		"error as text":      {400, `{"error":"model requires more system memory"}`, llm.Invalid, "system memory"},
		"message alone":      {422, `{"message":"no such parameter"}`, llm.Invalid, "no such parameter"},
		"nothing":            {404, "", llm.Invalid, "Not Found"},
		"a page with 200":    {200, "<html>log in</html>", llm.Invalid, "log in"},
		"an error with 200":  {200, `{"error":{"message":"no such model","code":"model_not_found"}}`, llm.Invalid, "no such model"},
		"a status with 200":  {200, `{"error":{"message":"User not found.","code":401}}`, llm.Auth, "User not found"},
		"a status in events": {200, "data: {\"error\":{\"message\":\"Provider returned error\",\"code\":429}}\n\n", llm.RateLimited, "Provider"},
		"no credit in one":   {200, "data: {\"error\":{\"message\":\"Buy more\",\"code\":402}}\n\n", llm.Invalid, "Buy more"},
		"a number of theirs": {200, "data: {\"error\":{\"message\":\"Busy\",\"code\":1302}}\n\n", llm.Server, "Busy"},
		"a reply, no stream": {200, `{"object":"chat.completion","choices":[]}`, llm.Invalid, "chat.completion"},
		"events no one sent": {200, "data: hello\n\n", llm.Server, "hello"},
		"done at once":       {200, "data: [DONE]\n\n", llm.Cut, ""},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := serve(t, c.status, http.Header{"Content-Type": {"text/html"}}, c.body)
			o := dialects["chat"]
			o.Backoff.Retries = -1
			got := collect(t.Context(), provider(t, url, o), ask("hi"))
			if got.kind() != c.kind || !strings.Contains(got.err.Error(), c.says) {
				t.Errorf("got %v, want got.kind() = c.kind and strings.Contains(got.err.Error(), c.says)", got.err)
			}
		})
	}
}
