package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
)

// raw answers with bytes of the test's own, and then cuts the connection.
func raw(w http.ResponseWriter, text string) {
	conn, out, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(out, text)
	_ = out.Flush()
	_ = conn.Close()
}

// An answer that breaks off anywhere is no answer: what was asked is asked again, under the
// same key, until a whole one comes.
func TestAnswersThatBreakOff(t *testing.T) {
	const whole = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"task_id\":\"t1\"}"
	for _, at := range []int{0, 1, 9, 17, 40, 60, len(whole) - 16, len(whole) - 1} {
		var mu sync.Mutex
		keys := map[string]int{}
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			keys[r.Header.Get("Idempotency-Key")]++
			if keys[r.Header.Get("Idempotency-Key")] == 1 {
				raw(w, whole[:at])
				return
			}
			raw(w, whole)
		})
		sent, err := c.Send(soon(t), "t1", api.Message{Text: "x"})
		if err != nil || sent.Task != "t1" {
			t.Errorf("cut at %d: %+v, %v", at, sent, err)
		}
		mu.Lock()
		if len(keys) != 1 {
			t.Errorf("cut at %d: %d keys", at, len(keys))
		}
		mu.Unlock()
	}
}

// A refusal that breaks off is asked for again, too, and then is what the server said.
func TestRefusalsThatBreakOff(t *testing.T) {
	var n counter
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.next() == 1 {
			raw(w, "HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\nContent-Length: 500\r\n\r\n{\"code\":\"task_")
			return
		}
		say(w, 409, Problem{Code: "task_busy"})
	})
	_, err := c.Resume(soon(t), "x", api.NewRun{})
	var p *Problem
	if !errors.As(err, &p) || p.Code != "task_busy" || n.n.Load() != 2 {
		t.Errorf("%v after %d requests", err, n.n.Load())
	}
}

// How long a server wants to be left alone is respected, up to what a person waits; what it
// says that is no number of seconds counts as nothing said.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		header string
		waits  time.Duration // the first wait; 0 = it is not asked again
	}{
		{"1", time.Second}, {" 2 ", 2 * time.Second}, {"600", 5 * time.Second},
		{"", 0}, {"0", 0}, {"-1", 0}, {"soon", 0}, {"3600", 0}, {"Wed, 21 Oct 2026 07:28:00 GMT", 0}, {"99999999999999999999", 0},
	} {
		var n counter
		cl := served(t, func(w http.ResponseWriter, _ *http.Request) {
			if n.next() > 1 {
				say(w, 200, struct{}{})
				return
			}
			w.Header().Set("Retry-After", c.header)
			say(w, 429, Problem{Code: "too_many", Retryable: true})
		})
		var waited []time.Duration
		cl.sleep = func(ctx context.Context, d time.Duration) error {
			waited = append(waited, d)
			return ctx.Err()
		}
		_, err := cl.Task(soon(t), "x")
		if c.waits == 0 && (err == nil || len(waited) > 0) || c.waits > 0 && (err != nil || len(waited) != 1 || waited[0] != c.waits) {
			t.Errorf("%q: waited %v, %v", c.header, waited, err)
		}
	}
}

// When a proxy answers for a server that restarts, the client sends the request again under the same key, because the
// server may have carried it out. The client does not repeat a request without a key.
func TestAProxyWhoseServerRestarts(t *testing.T) {
	for _, status := range []int{502, 503, 504} {
		for method, want := range map[string]int64{"POST": 2, "GET": 2, "PATCH": 1} {
			var n counter
			keys := map[string]bool{}
			c := served(t, func(w http.ResponseWriter, r *http.Request) {
				keys[r.Header.Get("Idempotency-Key")] = true
				if n.next() == 1 {
					http.Error(w, "the server is away", status)
					return
				}
				say(w, 200, struct{}{})
			})
			err := c.Do(soon(t), method, "/x", nil, nil, nil)
			if (err == nil) != (want == 2) || n.n.Load() != want || len(keys) != 1 {
				t.Errorf("%s, %d: %v after %d requests under %d keys, want %d", method, status, err, n.n.Load(), len(keys), want)
			}
		}
	}
}

// A refusal is what its media type says, not what it looks like; a page that claims to be a
// problem is a server's that is not Roost's, whatever its status.
func TestPagesThatClaimToBeProblems(t *testing.T) {
	for _, status := range []int{401, 403, 404, 409, 412, 429, 500, 502} {
		for name, c := range map[string]struct{ media, body string }{
			"a page":               {"application/problem+json", "<html><body>no</body></html>"},
			"a problem, by chance": {"text/html", `{"code":"task_not_found","title":"x"}`},
			"nobody's problem":     {"application/problem+json", `{"title":"x"}`},
			"nothing":              {"application/problem+json", ""},
			"a list":               {"application/problem+json", `["code"]`},
		} {
			var n counter
			_, err := served(t, func(w http.ResponseWriter, _ *http.Request) {
				n.next()
				w.Header().Set("Content-Type", c.media)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, c.body)
			}).Send(soon(t), "x", api.Message{})
			var un *Unreachable
			want := int64(1)
			if status == 502 { // of a proxy whose server restarts
				want = tries
			}
			if !errors.As(err, &un) || !strings.Contains(err.Error(), fmt.Sprint(status)) || n.n.Load() != want {
				t.Errorf("%s, %d: %v after %d requests, want %d", name, status, err, n.n.Load(), want)
			}
		}
	}
}

// No redirection takes the token, or the words, anywhere else.
func TestRedirections(t *testing.T) {
	var n counter
	other := served(t, func(http.ResponseWriter, *http.Request) { n.next() })
	for _, status := range []int{301, 302, 303, 307, 308} {
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.url.String()+"/v1/tasks", status)
		})
		var un *Unreachable
		if _, err := c.Send(soon(t), "x", api.Message{Text: "secret words"}); !errors.As(err, &un) {
			t.Errorf("%d: got %v, want errors.As(err, &un)", status, err)
		}
		for _, err := range c.Events(soon(t), "x", "") {
			if !errors.As(err, &un) {
				t.Errorf("%d, of events: %v", status, err)
			}
		}
	}
	if n.n.Load() > 0 {
		t.Errorf("%d requests went elsewhere", n.n.Load())
	}
}
