package wire_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

func TestJoin(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1":         "https://api.openai.com/v1/responses",
		"https://api.openai.com":            "https://api.openai.com/v1/responses",
		"https://api.openai.com/":           "https://api.openai.com/v1/responses",
		"http://127.0.0.1:11434":            "http://127.0.0.1:11434/v1/responses",
		"https://openrouter.ai/api/v1/":     "https://openrouter.ai/api/v1/responses",
		"https://x.example/openai/v1beta":   "https://x.example/openai/v1beta/responses",
		"https://x.example/deployments/vga": "https://x.example/deployments/vga/v1/responses",
	} {
		if got := wire.Join(base, "v1", "responses"); got != want {
			t.Errorf("%s: got %s, want got = %v", base, got, want)
		}
	}
}

// A reply that never ends does not fill the memory.
func TestRepliesAreBounded(t *testing.T) {
	event := []byte("data: " + strings.Repeat("x", 1<<20) + "\n\n")
	c, _ := asks(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 2 * wire.MaxReply >> 20 {
			if _, err := w.Write(event); err != nil {
				return
			}
		}
	})
	size := 0
	err := c.Stream(t.Context(), func(data []byte) (bool, error) {
		size += len(data)
		return false, nil
	})
	if !errors.Is(err, wire.ErrTooLarge) || size != wire.MaxReply {
		t.Errorf("got %v after %d bytes, want %v after %d", err, size, wire.ErrTooLarge, wire.MaxReply)
	}
}

// Providers write their refusals in different shapes.
func TestRefusal(t *testing.T) {
	for page, want := range map[string][2]string{
		`{"error":{"message":"m","type":"t","code":"c"}}`:              {"c", "m"},
		`{"error":{"message":"m","type":"t","code":null}}`:             {"t", "m"},
		`{"error":{"code":400,"message":"m","status":"INVALID"}}`:      {"INVALID", "m"},
		`{"type":"error","error":{"type":"overloaded","message":"m"}}`: {"overloaded", "m"},
		`{"error":"m"}`:              {"", "m"},
		`{"message":"m","code":"c"}`: {"c", "m"},
		`{"detail":"x"}`:             {"", ""},
		`{"Message":"m"}`:            {"", "m"},
		`[{"error":{"code":404,"message":"m","status":"S"}}]`: {"S", "m"},
		`[]`:                             {"", ""},
		`<html>`:                         {"", ""},
		`{"error":{"message":["a"]}}`:    {"", ""},
		`{"error":{"message":"\ud800"}}`: {"", "\xed\xa0\x80"},
	} {
		code, message := wire.Refusal([]byte(page))
		if d := cmp.Diff(want, [2]string{code, message}); d != "" {
			t.Error(page, d)
		}
	}
}

// asks makes a call whose events end the reply at "end".
func asks(t *testing.T, handler http.HandlerFunc) (wire.Call, func(ctx context.Context, c wire.Call) ([]string, error)) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	b := new(wire.Body)
	b.Add([]byte("{}"))
	p := wire.NewProvider(wire.Options{HTTPClient: client(t), APIKey: "sk-0123456789abcdef"}, wire.Dialect{Name: "p"})
	c := wire.Call{Provider: *p, URL: s.URL, Header: http.Header{"X-Mine": {"1"}}, Body: b}
	return c, func(ctx context.Context, c wire.Call) (got []string, err error) {
		err = c.Stream(ctx, func(data []byte) (bool, error) {
			got = append(got, string(data))
			return string(data) == "end", nil
		})
		return got, err
	}
}

func said(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Mine") != "1" || r.Header.Get("Content-Type") != "application/json" || r.ContentLength != 2 {
			http.Error(w, "bad headers", http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte(text)) // the client may be gone
	}
}

// breaking sends a text and breaks the connection.
func breaking(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		said(text)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func TestCall(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		ended  bool
		kind   llm.Kind
		got    []string
	}{
		"whole":            {said("data: a\n\ndata: end\n\nrest"), false, "", []string{"a", "end"}},
		"cut":              {said("data: a\n\n"), false, llm.Cut, []string{"a"}},
		"ends by itself":   {said("data: a\n\n"), true, "", []string{"a"}},
		"breaks, is whole": {breaking("data: a\n\n"), true, "", []string{"a"}},
		"breaks":           {breaking("data: a\n\n"), false, llm.Cut, []string{"a"}},
		"refused":          {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":"no"}`, http.StatusBadRequest) }, false, llm.Invalid, nil},
		"an empty refusal": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, false, llm.Server, nil},
	} {
		t.Run(name, func(t *testing.T) {
			call, ask := asks(t, c.answer)
			if c.ended {
				call.Ended = func() bool { return true }
			}
			got, err := ask(t.Context(), call)
			if d := cmp.Diff(c.got, got); d != "" {
				t.Error(d)
			}
			var failed *llm.Error
			if errors.As(err, &failed) != (c.kind != "") || failed != nil && (failed.Kind != c.kind || failed.Message == "") {
				t.Errorf(`got %v, want errors.As(err, &failed) = (c.kind != "") and (failed = nil or (failed.Kind = c.kind and failed.Message != ""))`,
					err)
			}
		})
	}
}

// An error that comes as an event carries the wait that the headers ask for, and no
// key.
func TestCallCleansErrors(t *testing.T) {
	call, _ := asks(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		_, _ = w.Write([]byte("data: {\"error\":{\"message\":\"sk-0123456789abcdef is busy\"}}\n\n")) // the client may be gone
	})
	err := call.Stream(t.Context(), func(data []byte) (bool, error) { return false, call.ErrorOf(0, data) })
	var failed *llm.Error
	if !errors.As(err, &failed) || failed.RetryAfterMS != 3000 || failed.Message != "[key] is busy" {
		t.Errorf("got %v, want errors.As(err, &failed) and failed.RetryAfterMS = 3000 and failed.Message = \"[key] is busy\"",
			err)
	}
	call.URL = "http://127.0.0.1:1/sk-0123456789abcdef"
	if err := call.Stream(t.Context(), nil); !errors.As(err, &failed) || failed.Kind != llm.Network || failed.Message != wire.Redact(failed.Message, call.APIKey) {
		t.Errorf("got %v, want errors.As(err, &failed) and failed.Kind = llm.Network and failed.Message = wire.Redact(failed.Message, call.APIKey)",
			err)
	}
}

func TestCallGivesUpOnSilence(t *testing.T) {
	call, ask := asks(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("data: a\n\n")) // the client may be gone
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	call.IdleTimeout = time.Second // the first event has to come before, on a busy machine too
	var failed *llm.Error
	if got, err := ask(t.Context(), call); !errors.As(err, &failed) || failed.Kind != llm.Cut || !errors.Is(err, wire.ErrIdle) || len(got) != 1 {
		t.Errorf("got %v %v, want errors.As(err, &failed) and failed.Kind = llm.Cut and errors.Is(err, wire.ErrIdle) and len(got) = 1",
			got, err)
	}
	call.Ended = func() bool { return true }
	if got, err := ask(t.Context(), call); err != nil || len(got) != 1 {
		t.Errorf("silence behind a whole reply: got %v %v, want one event and no error", got, err)
	}
	gone, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := ask(gone, call); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller's end behind a whole reply: got %v, want context.DeadlineExceeded", err)
	}
}

// What Attempts makes of the ends that an attempt can have.
func TestAttempts(t *testing.T) {
	busy := &llm.Error{Kind: llm.Overloaded, RetryAfterMS: 20}
	wrong := &llm.Error{Kind: llm.Invalid}
	for name, c := range map[string]struct {
		ends    []error
		started bool
		stop    int // the consumer wants so many chunks; 0 = all
		tries   int
		waits   []time.Duration
		want    error
	}{
		"at once":                 {ends: []error{nil}, tries: 1},
		"the second time":         {ends: []error{busy, nil}, tries: 2, waits: []time.Duration{20 * time.Millisecond}},
		"never":                   {ends: []error{busy, busy, busy, busy}, tries: 3, waits: []time.Duration{20 * time.Millisecond, 20 * time.Millisecond}, want: busy},
		"no use in trying":        {ends: []error{wrong}, tries: 1, want: wrong},
		"something was shown":     {ends: []error{busy}, started: true, tries: 1, want: busy},
		"not the provider's":      {ends: []error{context.Canceled}, tries: 1, want: context.Canceled},
		"nobody listens":          {ends: []error{wire.ErrStop}, tries: 1},
		"nobody wants to wait":    {ends: []error{busy, nil}, stop: 1, tries: 1},
		"cancelled while waiting": {ends: []error{busy, nil}, tries: 1, waits: []time.Duration{-1}, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			var waits []time.Duration
			b := wire.Backoff{Retries: 2, Sleep: func(_ context.Context, d time.Duration) error {
				if len(c.waits) > 0 && c.waits[0] < 0 {
					waits = c.waits
					return context.DeadlineExceeded
				}
				waits = append(waits, d)
				return nil
			}}
			tries, chunks := 0, 0
			var last error
			wire.Attempts(t.Context(), b, func(_ llm.Chunk, err error) bool {
				chunks++
				last = err
				return chunks != c.stop
			}, func() (bool, error) {
				tries++
				return c.started, c.ends[tries-1]
			})
			if tries != c.tries || !errors.Is(last, c.want) || !cmp.Equal(waits, c.waits) {
				t.Errorf("%d tries, waited %v, %v", tries, waits, last)
			}
		})
	}
}
