package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-test-0123456789abcdef"

type outcome struct {
	text, reasoning string
	calls           map[int]string // name + input by index
	retries         []llm.Retrying
	usage           []llm.Usage
	done            *llm.Done
	err             error
}

func collect(t *testing.T, p llm.Provider, ctx context.Context, req llm.Request) outcome {
	t.Helper()
	o := outcome{calls: map[int]string{}}
	for c, err := range p.Stream(ctx, req) {
		if err != nil {
			if o.err != nil {
				t.Errorf("two errors: %v, %v", o.err, err)
			}
			o.err = err
			continue
		}
		if o.done != nil {
			t.Errorf("chunk %T after Done", c)
		}
		switch c := c.(type) {
		case llm.TextDelta:
			o.text += c.Text
		case llm.ReasoningDelta:
			o.reasoning += c.Text
		case llm.ToolDelta:
			if c.Name != "" {
				o.calls[c.Index] = c.Name + " "
			}
			o.calls[c.Index] += c.Input
		case llm.UsageReport:
			o.usage = append(o.usage, c.Usage)
		case llm.Retrying:
			o.retries = append(o.retries, c)
		case llm.Done:
			o.done = &c
		}
	}
	if (o.err == nil) == (o.done == nil) {
		t.Errorf("stream ended with done=%v err=%v", o.done, o.err)
	}
	return o
}

// provider has no waits: sleeping is recorded.
func provider(t *testing.T, s *llmtest.Server, change ...func(*anthropic.Options)) *anthropic.Provider {
	t.Helper()
	o := anthropic.Options{APIKey: key, BaseURL: s.URL, Model: "claude-sonnet-4-5"}
	o.Backoff.Sleep = func(ctx context.Context, d time.Duration) error { return context.Cause(ctx) }
	for _, c := range change {
		c(&o)
	}
	p := anthropic.New(o)
	t.Cleanup(p.CloseIdle)
	return p
}

func user(text string) llm.Message {
	b, _ := json.Marshal([]any{map[string]string{"type": "text", "text": text}})
	return llm.Message{Role: "user", Content: b}
}

func ask(text string) llm.Request { return llm.Request{Messages: []llm.Message{user(text)}} }

func TestReplyIsPutTogether(t *testing.T) {
	reply := llmtest.Reply{}.AndThinking("first think, 你好", "c2ln+/=").
		AndText("Hello ").
		AndCall("toolu_1", "read_file", `{"path":"a\u0041b","n":1.0,"big":1e2}`).
		AndText("wörld 😀 <&>").
		AndCall("bad id!", "list", `{}`)
	reply.Blocks = append(reply.Blocks, json.RawMessage(`{"type":"redacted_thinking","data":"abc="}`), json.RawMessage(`{"type":"novel","x":{"y":[1,2.50]}}`))
	reply.CacheRead, reply.CacheWrite, reply.Input, reply.Output = 7, 8, 9, 10
	for _, shape := range []struct {
		name string
		r    llmtest.Reply
	}{
		{"one write", reply},
		{"event by event", reply.Trickle(0, time.Microsecond)},
		{"byte by byte", reply.Trickle(1, 0)},
		{"seven bytes", reply.Trickle(7, 0)},
	} {
		t.Run(shape.name, func(t *testing.T) {
			s := llmtest.New(t, shape.r)
			o := collect(t, provider(t, s), t.Context(), ask("hi"))
			if o.err != nil {
				t.Fatal(o.err)
			}
			want := llm.Done{
				ID: "msg_test_1", Model: "claude-sonnet-4-5", StopReason: "tool_use",
				Blocks: []json.RawMessage{
					json.RawMessage(`{"type":"thinking","thinking":"first think, 你好","signature":"c2ln+/="}`),
					json.RawMessage(`{"type":"redacted_thinking","data":"abc="}`),
					json.RawMessage(`{"type":"text","text":"Hello wörld 😀 <&>"}`),
					json.RawMessage(`{"type":"novel","x":{"y":[1,2.50]}}`),
					json.RawMessage(`{"type":"tool_use","id":"toolu_1","name":"read_file","input":{"path":"a\u0041b","n":1.0,"big":1e2}}`),
					json.RawMessage(`{"type":"tool_use","id":"bad_id_","name":"list","input":{}}`),
				},
				Usage: llm.Usage{Input: 9, Output: 10, CacheRead: 7, CacheWrite: 8},
			}
			if d := cmp.Diff(want, *o.done, cmp.Transformer("s", func(r json.RawMessage) string { return string(r) })); d != "" {
				t.Errorf("done (-want +got):\n%s", d)
			}
			if o.text != "Hello wörld 😀 <&>" || o.reasoning != "first think, 你好" {
				t.Errorf("shown %q, %q", o.text, o.reasoning)
			}
			if d := cmp.Diff(map[int]string{0: `read_file {"path":"a\u0041b","n":1.0,"big":1e2}`, 1: "list {}"}, o.calls); d != "" {
				t.Error(d)
			}
			if o.usage[0].Input != 9 || o.usage[0].CacheWrite != 8 || o.usage[len(o.usage)-1].Output != 10 {
				t.Errorf("usage %+v", o.usage)
			}
		})
	}
}

func TestMalformedInputIsKeptApart(t *testing.T) {
	for _, c := range []struct {
		name, stop string
		pieces     []string
		input      string
		malformed  bool
	}{
		{"cut", "max_tokens", []string{`{"path":"a`}, `{}`, true},
		{"cut before it begins", "max_tokens", []string{""}, `{}`, true},
		{"wrong", "", []string{`{"a":`, `,}`}, `{}`, true},
		{"no object", "", []string{`[1]`}, `{}`, true},
		{"nothing", "", []string{""}, `{}`, false},
		{"blanks", "", []string{" { \"a\" :", "\n [ 1 , 2 ] } "}, `{"a":[1,2]}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := llmtest.Call("t1", "f", `{}`)
			r.InputPieces, r.StopReason = c.pieces, c.stop
			s := llmtest.New(t, r)
			o := collect(t, provider(t, s), t.Context(), ask("hi"))
			if o.err != nil {
				t.Fatal(o.err)
			}
			if got, want := string(o.done.Blocks[0]), `{"type":"tool_use","id":"t1","name":"f","input":`+c.input+`}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			sent, ok := o.done.Malformed["t1"]
			if ok != c.malformed || ok && sent != strings.Join(c.pieces, "") {
				t.Errorf("malformed %q", o.done.Malformed)
			}
		})
	}
}

func TestErrorsAreClassified(t *testing.T) {
	text := llmtest.Text("one two three four five six seven eight")
	for _, c := range []struct {
		name    string
		reply   llmtest.Reply
		kind    llm.Kind
		retried bool
	}{
		{"401", llmtest.Fail(401, "invalid x-api-key "+key), llm.Auth, false},
		{"403", llmtest.Fail(403, "no"), llm.Auth, false},
		{"400", llmtest.Fail(400, "tools.0: bad"), llm.Invalid, false},
		{"too long", llmtest.Fail(400, "prompt is too long: 209102 tokens > 200000 maximum"), llm.ContextOverflow, false},
		{"413", llmtest.Fail(413, "Request exceeds the maximum size"), llm.ContextOverflow, false},
		{"404", llmtest.Fail(404, "model: nope"), llm.Invalid, false},
		{"422", llmtest.Fail(422, "nope"), llm.Invalid, false},
		{"429", llmtest.Fail(429, "slow down"), llm.RateLimited, true},
		{"529", llmtest.Fail(529, "Overloaded"), llm.Overloaded, true},
		{"500", llmtest.Fail(500, "oops"), llm.Server, true},
		{"502", llmtest.Fail(502, "bad gateway"), llm.Server, true},
		{"early cut", text.CutEvent(1), llm.Cut, true},
		{"early break", text.CutEvent(1).Broken(), llm.Cut, true},
		{"late cut", text.CutEvent(4), llm.Cut, false},
		{"late break", text.CutEvent(4).Broken(), llm.Cut, false},
		{"cut before the last event", text.CutEvent(8), llm.Cut, false},
		{"cut in an event", text.CutByte(700).Broken(), llm.Cut, false},
		{"early error event", text.ErrorEvent(1, "overloaded_error", "Overloaded"), llm.Overloaded, true},
		{"late error event", text.ErrorEvent(4, "overloaded_error", "Overloaded"), llm.Overloaded, false},
		{"api error event", text.ErrorEvent(4, "api_error", "Internal "+key), llm.Server, false},
		{"overflow event", text.ErrorEvent(4, "invalid_request_error", "prompt is too long"), llm.ContextOverflow, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.New(t)
			s.Answer(func(llmtest.Request) llmtest.Reply { return c.reply })
			o := collect(t, provider(t, s, func(o *anthropic.Options) { o.Backoff.Retries = 2 }), t.Context(), ask("hi"))
			var e *llm.Error
			if !errors.As(o.err, &e) || e.Kind != c.kind || e.Provider != "anthropic" {
				t.Fatalf("got %v, want kind %s", o.err, c.kind)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", o.err, e, e), key) {
				t.Errorf("the key stands in %v", o.err)
			}
			want := 1
			if c.retried {
				want = 3
			}
			if n := len(s.Requests()); n != want || len(o.retries) != want-1 {
				t.Errorf("%d requests and %d Retrying, want %d and %d", n, len(o.retries), want, want-1)
			}
		})
	}
}

func TestEveryCutIsNoticed(t *testing.T) {
	reply := llmtest.Text("abc").AndCall("t", "f", `{"a":1}`)
	s := llmtest.New(t)
	n := 1
	s.Answer(func(llmtest.Request) llmtest.Reply { return reply.CutByte(n) })
	p := provider(t, s, func(o *anthropic.Options) { o.Backoff.Retries = -1 })
	whole := 0
	for ; whole < 3 && n < 5000; n += 13 {
		o := outcome{}
		for c, err := range p.Stream(t.Context(), ask("hi")) {
			if d, ok := c.(llm.Done); ok {
				o.done = &d
			}
			o.err = err
		}
		var e *llm.Error
		switch {
		case o.done != nil && o.err == nil && len(o.done.Blocks) == 2 && o.done.StopReason == "tool_use":
			whole++
		case errors.As(o.err, &e) && e.Kind == llm.Cut && whole == 0:
		default:
			t.Fatalf("cut at %d: done %v, error %v", n, o.done, o.err)
		}
	}
	if whole == 0 {
		t.Error("no reply was ever whole")
	}
}

// A used-up quota is not waited out here: hours are for whoever can keep them.
func TestALongWaitIsTheCallers(t *testing.T) {
	for value, want := range map[string]int64{"61": 61_000, "3600": 3_600_000, "1e300": 86_400_000} {
		s := llmtest.New(t, llmtest.Fail(429, "the quota is used up").After("retry-after", value))
		o := collect(t, provider(t, s), t.Context(), ask("hi"))
		var refused *llm.Error
		if !errors.As(o.err, &refused) || refused.RetryAfterMS != want || len(o.retries) != 0 || len(s.Requests()) != 1 {
			t.Errorf("%s: %v after %d requests", value, o.err, len(s.Requests()))
		}
	}
}

func TestRetryHonoursWhatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		name, header, value string
		want                int64
	}{
		{"seconds", "retry-after", "7", 7000},
		{"fraction", "retry-after", "0.25", 250},
		{"milliseconds", "retry-after-ms", "1500", 1500},
		{"date", "retry-after", "Thu, 01 Jan 2026 00:00:09 GMT", 9000},
		{"past", "retry-after", "Thu, 01 Jan 2015 00:00:09 GMT", 500},
		{"cap", "retry-after", "60", 60000},
		{"nonsense", "retry-after", "soon", 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Fail(429, "slow").After(c.header, c.value), llmtest.Text("ok"))
			var slept []time.Duration
			p := provider(t, s, func(o *anthropic.Options) {
				o.Now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
				o.Backoff.Rand = func() float64 { return 0.5 }
				o.Backoff.Sleep = func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }
			})
			o := collect(t, p, t.Context(), ask("hi"))
			if o.err != nil || o.text != "ok" {
				t.Fatalf("got %q, %v, want o.err = nil and o.text = \"ok\"", o.text, o.err)
			}
			if len(o.retries) != 1 || o.retries[0].WaitMS != c.want || o.retries[0].Attempt != 1 || o.retries[0].Err.Status != 429 {
				t.Errorf("retries %+v, want a wait of %d ms", o.retries, c.want)
			}
			if len(slept) != 1 || slept[0].Milliseconds() != c.want {
				t.Errorf("slept %v", slept)
			}
			if a, b := s.Requests()[0].Body, s.Requests()[1].Body; string(a) != string(b) {
				t.Error("the second attempt sent other bytes")
			}
		})
	}
}

func TestCancelEndsAtOnce(t *testing.T) {
	stop := errors.New("enough")
	for _, c := range []struct {
		name  string
		reply llmtest.Reply
	}{
		{"in the wait", llmtest.Fail(529, "busy").After("retry-after", "50")},
		{"in the stream", llmtest.Text("some words that never end").Stall(4)},
		{"before the answer", llmtest.Reply{Before: time.Minute}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.New(t, c.reply)
			p := provider(t, s, func(o *anthropic.Options) { o.Backoff = wire.Backoff{} })
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
			begin := time.Now()
			o := collect(t, p, ctx, ask("hi"))
			if !errors.Is(o.err, stop) || time.Since(begin) > 30*time.Second {
				t.Errorf("ended with %v after %v", o.err, time.Since(begin))
			}
		})
	}
}

func TestSilenceIsAnError(t *testing.T) {
	for _, events := range []int{4, 1} {
		patiently(t, 80*time.Millisecond, func(idle time.Duration) bool {
			s := llmtest.New(t, llmtest.Text("some words").Stall(events))
			p := provider(t, s, func(o *anthropic.Options) { o.IdleTimeout, o.Backoff.Retries = idle, -1 })
			var e *llm.Error
			o := collect(t, p, t.Context(), ask("hi"))
			return errors.As(o.err, &e) && e.Kind == llm.Cut && errors.Is(e, wire.ErrIdle)
		})
	}
}

// patiently tries with more and more time between events until it goes as it should: a
// busy machine is silent on its own account, but not for so long.
func patiently(t *testing.T, idle time.Duration, ok func(time.Duration) bool) {
	t.Helper()
	for ; !ok(idle); idle *= 4 {
		if idle > 10*time.Second {
			t.Fatal("it never went as it should")
		}
	}
}

func TestSlowStreamAndSlowConsumerAreNotIdle(t *testing.T) {
	patiently(t, 150*time.Millisecond, func(idle time.Duration) bool {
		s := llmtest.New(t, llmtest.Text(strings.Repeat("word ", 40)).Trickle(0, idle/10))
		p := provider(t, s, func(o *anthropic.Options) { o.IdleTimeout, o.Backoff.Retries = idle, -1 })
		slow := true
		for c, err := range p.Stream(t.Context(), ask("hi")) {
			if errors.Is(err, wire.ErrIdle) {
				return false
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := c.(llm.TextDelta); ok && slow {
				slow = false
				time.Sleep(2 * idle)
			}
		}
		return true
	})
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	p := anthropic.New(anthropic.Options{APIKey: key, BaseURL: "http://" + addr + "/v1/", Model: "m",
		Backoff: wire.Backoff{Retries: 1, Base: time.Millisecond}})
	defer p.CloseIdle()
	o := collect(t, p, t.Context(), ask("hi"))
	var e *llm.Error
	if !errors.As(o.err, &e) || e.Kind != llm.Network || len(o.retries) != 1 || !strings.Contains(e.Message, addr) {
		t.Errorf("got %v after %d retries", o.err, len(o.retries))
	}
}

func TestAMissingKeyFailsBeforeAnyRequest(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-from-the-environment")
	o := collect(t, anthropic.New(anthropic.Options{Model: "m"}), t.Context(), ask("hi"))
	var e *llm.Error
	if !errors.As(o.err, &e) || e.Kind != llm.Auth || !strings.Contains(e.Message, "roost auth set") {
		t.Errorf("got %v", o.err)
	}
}

func TestConsumerMayStopAnywhere(t *testing.T) {
	s := llmtest.New(t)
	s.Answer(func(r llmtest.Request) llmtest.Reply {
		if r.Number%7 == 1 {
			return llmtest.Fail(529, "busy")
		}
		return llmtest.Text("a b c").AndCall("t", "f", `{}`)
	})
	p := provider(t, s)
	for n := 1; n < 9; n++ {
		left := n
		for range p.Stream(t.Context(), ask("hi")) {
			if left--; left == 0 {
				break
			}
		}
	}
}

func TestConnectionIsReused(t *testing.T) {
	s := llmtest.New(t, llmtest.Text("a"), llmtest.Text("b"), llmtest.Text("c"))
	p := provider(t, s)
	for range 3 {
		collect(t, p, t.Context(), ask("hi"))
	}
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections for 3 turns", n)
	}
}
