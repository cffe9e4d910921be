package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/llm"
)

// Events come out as they were written, however the network cuts the stream.
func TestEventsSurviveAnyCutting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var src strings.Builder
		var want []string
		for range rapid.IntRange(0, 6).Draw(t, "events") {
			end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
			name := rapid.SampledFrom([]string{"", "a", "content_block_delta"}).Draw(t, "name")
			lines := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune("ab: ü😀{}"))), 1, 3).Draw(t, "data")
			if name != "" {
				fmt.Fprintf(&src, "event: %s%s", name, end)
			}
			if rapid.Bool().Draw(t, "comment") {
				src.WriteString(": a comment" + end)
			}
			for _, l := range lines {
				fmt.Fprintf(&src, "data: %s%s", l, end)
			}
			src.WriteString(end)
			want = append(want, strings.Join(lines, "\n"))
		}
		text := src.String()
		n := rapid.IntRange(1, 9).Draw(t, "bytes a read")
		got, err := read(pieces(text, n))
		if d := cmp.Diff(want, got); d != "" || err != io.EOF {
			t.Fatalf("got %v %s\n%q, want d = \"\" and err = io.EOF", err, d, text)
		}
	})
}

// pieces gives n bytes a read.
func pieces(s string, n int) io.Reader {
	var readers []io.Reader
	for len(s) > 0 {
		k := min(n, len(s))
		readers = append(readers, strings.NewReader(s[:k]))
		s = s[k:]
	}
	return io.MultiReader(readers...)
}

// Hostile bytes: no panic, no endless loop, nothing that was not sent.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: a\n\ndata\n\n:\r\n\r\nevent: x\ndata:\n\n"))
	f.Add([]byte("\xef\xbb\xbfdata: a\r\rdata: b\n\n"))
	f.Add([]byte("data: a\nevent: b\ndata: c"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := read(bytes.NewReader(in))
		if err != io.EOF {
			t.Fatalf("got %v, want err = io.EOF", err)
		}
		total := 0
		for _, e := range got {
			total += len(e)
		}
		if total > len(in) {
			t.Fatalf("%d bytes became %d: %q", len(in), total, got)
		}
	})
}

// An error of the reader is the reader's own, and what was whole before it is not
// lost.
func TestEventsEndWithTheReadersError(t *testing.T) {
	broken := errors.New("broken")
	r := io.MultiReader(strings.NewReader("data: 1\n\ndata: 2\n"), iotest.ErrReader(broken))
	got, err := read(r)
	if d := cmp.Diff([]string{"1"}, got); d != "" || !errors.Is(err, broken) {
		t.Errorf("got %v %s, want d = \"\" and errors.Is(err, broken)", err, d)
	}
}

// The wordings by which providers report that a request is too long, and wordings that
// only resemble them.
func TestOverflowWordings(t *testing.T) {
	for _, m := range []string{
		"prompt is too long: 209102 tokens > 200000 maximum",
		"input length and `max_tokens` exceed context limit: 180000 + 64000 > 200000",
		"This model's maximum context length is 8192 tokens. However, you requested 9000",
		"Your input exceeds the context window of this model",
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)",
		"Please reduce the length of the messages",
		"PROMPT TOO LONG",
	} {
		if !IsOverflow(m) || KindOfStatus(400, m) != llm.ContextOverflow {
			t.Errorf("%q is not known", m)
		}
	}
	for _, m := range []string{
		"", "max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens for claude",
		"tools.0.name: String should have at most 128 characters", "messages.1: too many images", "credit balance is too low",
	} {
		if IsOverflow(m) {
			t.Errorf("%q is taken for it", m)
		}
	}
	if KindOfStatus(500, "prompt is too long") != llm.Server {
		t.Error("a server's own failure is not the request's length")
	}
}

// Waits are never negative and never above the cap, for any wait that a provider asks for.
func TestDelaysStayInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Base: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "base")),
			Cap:  time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "cap")),
			Rand: func() float64 { return rapid.Float64Range(0, 0.999999).Draw(t, "rand") },
		}
		limit := b.Cap
		if limit == 0 {
			limit = time.Minute
		}
		e := &llm.Error{RetryAfterMS: rapid.Int64().Draw(t, "asked")}
		n := rapid.IntRange(-3, 2000).Draw(t, "attempt")
		if d := b.Delay(n, e); d < 0 || d > limit {
			t.Fatalf("attempt %d waits %s, the cap is %s", n, d, limit)
		}
		if asked := time.Duration(e.RetryAfterMS) * time.Millisecond; e.RetryAfterMS > 0 && e.RetryAfterMS < limit.Milliseconds() && b.Delay(n, e) != asked {
			t.Fatalf("asked for %s, waits %s", asked, b.Delay(n, e))
		}
	})
}

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := (Backoff{}).Wait(t.Context(), 3*time.Second); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(enough) })
		begin = time.Now()
		if err := (Backoff{}).Wait(ctx, time.Hour); !errors.Is(err, enough) || time.Since(begin) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

// What cannot be read is no date and no number; what can is exact.
func TestRetryAfterSpellings(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		" 2 ": 2 * time.Second, "0": 0, "0.001": time.Millisecond, "1e2": 100 * time.Second, "-0": 0, "0x10": 0, "5s": 0, "2,5": 0,
		"Thursday, 01-Jan-26 00:00:05 GMT": 5 * time.Second, "Thu Jan  1 00:00:07 2026": 7 * time.Second, "2026-01-01T00:00:05Z": 0,
	} {
		h := http.Header{}
		h.Set("retry-after", v)
		if got := RetryAfter(h, now); got != want {
			t.Errorf("%q: %s, wanted %s", v, got, want)
		}
		for ms, want := range map[string]time.Duration{"0": want, "-1": want, "1500": 1500 * time.Millisecond} {
			h.Set("retry-after-ms", ms)
			if got := RetryAfter(h, now); got != want {
				t.Errorf("%q beside %q ms: %s, wanted %s", v, ms, got, want)
			}
		}
	}
}

func TestTransportErrors(t *testing.T) {
	enough := errors.New("enough")
	cancelled, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	idle, stop := context.WithCancelCause(context.Background())
	stop(ErrIdle)
	for name, c := range map[string]struct {
		ctx     context.Context
		err     error
		started bool
		kind    llm.Kind
		is      error
	}{
		"no connection":             {context.Background(), io.ErrUnexpectedEOF, false, llm.Network, io.ErrUnexpectedEOF},
		"broken in the middle":      {context.Background(), io.ErrUnexpectedEOF, true, llm.Cut, io.ErrUnexpectedEOF},
		"silent from the start":     {idle, io.EOF, false, llm.Network, ErrIdle},
		"silent in the middle":      {idle, io.EOF, true, llm.Cut, ErrIdle},
		"an event without end":      {context.Background(), fmt.Errorf("read: %w", ErrTooLarge), true, llm.Server, ErrTooLarge},
		"cancelled":                 {cancelled, io.EOF, true, "", enough},
		"cancelled before anything": {cancelled, io.EOF, false, "", enough},
	} {
		err := TransportError(c.ctx, "p", c.err, c.started)
		var e *llm.Error
		if is := errors.As(err, &e); is != (c.kind != "") || is && (e.Kind != c.kind || e.Provider != "p" || !e.Retryable()) || !errors.Is(err, c.is) {
			t.Errorf(`%s: got %v, want is = (c.kind != "") and (not is or (e.Kind = c.kind and e.Provider = "p" and e.Retryable())) and errors.Is(err, c.is)`,
				name, err)
		}
	}
}

// A key never gets out, wherever it appears, and ordinary words stay.
func TestKeysNeverGetOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[A-Za-z0-9]{4,40}`).Draw(t, "key")
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		e := Call{Provider: Provider{Options: Options{APIKey: key}}}.redacted(&llm.Error{Message: before + key + after, Err: errors.New(after + key + before)})
		if strings.Contains(e.Message, key) && !strings.Contains(before+"[key]"+after, key) || e.Err != nil && strings.Contains(e.Err.Error(), key) {
			t.Fatalf("%q is in %q, %v", key, e.Message, e.Err)
		}
	})
	for _, text := range []string{"sk-short", "the risk-free-rate-of-return", "AIza", "a task-management-system-x"} {
		if got := Redact(text, ""); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{"sk-ant-api03-abcdefghijkl", "AIzaSyA1234567890abcdefghij", "pk-abcdefghijkl"} {
		if got := Redact("x "+text+" y", ""); got != "x [key] y" {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A shortened text is valid, no longer than asked, and a beginning.
func TestShortenedTextsAreBeginnings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("aü😀 \n\t"))).Draw(t, "text")
		limit := rapid.IntRange(len(ellipsis), 20).Draw(t, "max")
		got := Shorten(text, limit)
		plain := strings.Join(strings.Fields(text), " ")
		if !utf8.ValidString(got) || len(got) > limit || !strings.HasPrefix(plain, strings.TrimSuffix(got, ellipsis)) {
			t.Fatalf("%q at %d became %q", text, limit, got)
		}
	})
}

// The clock runs only while a read waits: a slow consumer is not a silent provider,
// and each byte that arrives resets it.
func TestIdleClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, idle, stop := withIdle(context.Background(), time.Second)
		defer stop()
		in, out := io.Pipe()
		defer in.Close()
		go func() {
			for range 3 {
				time.Sleep(900 * time.Millisecond)
				_, _ = out.Write([]byte("x")) // the reader may have gone
			}
			<-ctx.Done()
			_ = out.CloseWithError(context.Cause(ctx))
		}()
		idle.timer.Stop()
		r := idle
		r.Reader = in
		buf := make([]byte, 1)
		for range 3 {
			if _, err := r.Read(buf); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second) // the consumer is slow
		}
		begin := time.Now()
		if _, err := r.Read(buf); !errors.Is(err, ErrIdle) || time.Since(begin) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		if !errors.Is(context.Cause(ctx), ErrIdle) {
			t.Errorf("the call's cause is %v", context.Cause(ctx))
		}
	})
}
