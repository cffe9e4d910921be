package wire

import (
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

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(r io.Reader) (out []string, err error) {
	e := NewEvents(r)
	for {
		data, err := e.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(data))
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"plain", "event: a\ndata: 1\n\ndata: 2\n\n", []string{"1", "2"}},
		{"crlf", "event: a\r\ndata: 1\r\n\r\n", []string{"1"}},
		{"no blank after the colon", "data:1\n\n", []string{"1"}},
		{"one blank only", "data:  1\n\n", []string{" 1"}},
		{"several lines", "data: 1\ndata: 2\n\n", []string{"1\n2"}},
		{"comments and unknown fields", ": hi\nid: 3\nretry: 1\ndata: 1\n: ho\n\n", []string{"1"}},
		{"name without data", "event: a\n\ndata: 1\n\n", []string{"1"}},
		{"byte order mark", "\xef\xbb\xbfdata: 1\n\n", []string{"1"}},
		{"last empty line missing", "data: 1\n", []string{"1"}},
		{"cut in a line", "data: 1\n\ndata: 2", []string{"1"}},
		{"long line", "data: " + long + "\n\n", []string{long}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
				got, err := read(r)
				if d := cmp.Diff(c.want, got); d != "" || err != io.EOF {
					t.Errorf("got %v\n%s, want d = \"\" and err = io.EOF", err, d)
				}
			}
		})
	}
}

func TestEventsAreBounded(t *testing.T) {
	for _, in := range []string{"data: " + strings.Repeat("x", 200_000), strings.Repeat("data: x\n", 50_000)} {
		e := newEvents(strings.NewReader(in), 40_000)
		if _, err := e.Next(); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v", err)
		}
	}
}

func TestKindOfStatus(t *testing.T) {
	for _, c := range []struct {
		status  int
		message string
		want    llm.Kind
	}{
		{400, "bad", llm.Invalid}, {404, "", llm.Invalid}, {422, "context window", llm.Invalid},
		{400, "This model's maximum context length is 8192 tokens", llm.ContextOverflow},
		{400, "Input is TOO LONG: input is too long for requested model", llm.ContextOverflow},
		{200, "the request exceeds the available context size. try increasing the context size", llm.ContextOverflow},
		{400, "request (9213 tokens) exceeds the available context size (4096 tokens), try increasing it", llm.ContextOverflow},
		{400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", llm.ContextOverflow},
		{400, "This model's maximum prompt length is 131072 but the request contains 137812 tokens.", llm.ContextOverflow},
		{400, "Invalid request: Your request exceeded model token limit: 262144", llm.ContextOverflow},
		{413, "", llm.ContextOverflow}, {401, "", llm.Auth}, {403, "", llm.Auth}, {408, "", llm.Server},
		{429, "", llm.RateLimited}, {503, "", llm.Overloaded}, {529, "", llm.Overloaded}, {500, "", llm.Server}, {504, "", llm.Server},
	} {
		if got := KindOfStatus(c.status, c.message); got != c.want {
			t.Errorf("%d %q: %s, want %s", c.status, c.message, got, c.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	var top float64 = 1
	b := Backoff{Rand: func() float64 { return top }}
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 7: time.Minute, 500: time.Minute} {
		if got := b.Delay(n, nil); got != want {
			t.Errorf("attempt %d waits up to %v, want %v", n, got, want)
		}
	}
	if top = 0; b.Delay(5, nil) != 0 {
		t.Error("full jitter begins at 0")
	}
	if got := b.Delay(1, &llm.Error{RetryAfterMS: 1 << 60}); got != time.Minute {
		t.Errorf("the cap does not hold: %v", got)
	}
	for retries, want := range map[int]int{0: 4, -1: 0, 7: 7} {
		if got := (Backoff{Retries: retries}).Limit(); got != want {
			t.Errorf("limit of %d is %d", retries, got)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	if err := (Backoff{}).Wait(ctx, time.Hour); !errors.Is(err, stop) {
		t.Errorf("wait ended with %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ms, s string
		want  time.Duration
	}{
		{"", "", 0}, {"20", "3", 20 * time.Millisecond}, {"x", "3", 3 * time.Second}, {"", "-4", 0}, {"", "NaN", 0},
		{"", "Inf", 24 * time.Hour}, {"", "Thu, 01 Jan 2026 00:01:00 GMT", time.Minute}, {"", "yesterday", 0},
	} {
		h := http.Header{"Retry-After-Ms": {c.ms}, "Retry-After": {c.s}}
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("%q %q: %v, want %v", c.ms, c.s, got, c.want)
		}
	}
}

func TestRedact(t *testing.T) {
	e := Call{Provider: Provider{Options: Options{APIKey: "hunter2-key"}}}.redacted(&llm.Error{Message: "key hunter2-key refused, also sk-ant-api03-abcdefghijkl", Err: fmt.Errorf("header hunter2-key")})
	if e.Message != "key [key] refused, also [key]" || e.Err != nil {
		t.Errorf("got %+v, want e.Message = \"key [key] refused, also [key]\" and e.Err = nil", e)
	}
	if e := (Call{}).redacted(&llm.Error{Message: "task-force", Err: io.EOF}); e.Message != "task-force" || e.Err != io.EOF {
		t.Errorf("got %+v, want e.Message = \"task-force\" and e.Err = io.EOF", e)
	}
}

func TestShorten(t *testing.T) {
	if got := Shorten(" a\n\n b ", 10); got != "a b" {
		t.Errorf("got %q, want got = \"a b\"", got)
	}
	if got := Shorten("ééé", 5); got != "é…" {
		t.Errorf("got %q, want got = \"é…\"", got)
	}
}

func TestIdleEndsWithItsCause(t *testing.T) {
	synctest.Test(t, idleEndsWithItsCause)
}

func idleEndsWithItsCause(t *testing.T) {
	ctx, idle, stop := withIdle(t.Context(), 30*time.Millisecond)
	defer stop()
	idle.timer.Stop()
	time.Sleep(60 * time.Millisecond)
	if ctx.Err() != nil {
		t.Fatal("a paused clock ran")
	}
	idle.timer.Reset(idle.limit)
	<-ctx.Done()
	var e *llm.Error
	if err := TransportError(ctx, "p", io.EOF, false); !errors.As(err, &e) || e.Kind != llm.Network || !errors.Is(err, ErrIdle) {
		t.Errorf("got %v", err)
	}
	never, _, stop2 := withIdle(t.Context(), 0)
	defer stop2()
	if never.Err() != nil {
		t.Error("no limit means never")
	}
}
