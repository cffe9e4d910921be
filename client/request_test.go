package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	logs "log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
)

// What may be a server's address.
func TestBase(t *testing.T) {
	for base, ok := range map[string]bool{
		"http://127.0.0.1:7878": true, "https://host/roost/": true, "unix:/run/x.sock": true, "unix:///run/x.sock": true,
		"": false, "127.0.0.1:7878": false, "ftp://host": false, "http://": false, "http://h?x=1": false, "http://h#x": false, "unix:x.sock": false, "unix:": false,
		"http://me:secret@host": false,
	} {
		_, err := New(base, Options{})
		if (err == nil) != ok {
			t.Errorf("%q: got %v, want (err == nil) = ok", base, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells a password: %v", err)
		}
	}
}

// A request carries the token, and a body that is JSON; its path stands below the base's.
func TestRequest(t *testing.T) {
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		say(w, 200, map[string]any{"path": r.URL.Path, "query": r.URL.RawQuery, "auth": r.Header.Get("Authorization"), "type": r.Header.Get("Content-Type"), "body": string(body), "key": len(r.Header.Get("Idempotency-Key"))})
	})
	c.url.Path = "/below"
	var got struct {
		Path, Query, Auth, Type, Body string
		Key                           int
	}
	if err := c.Do(soon(t), "POST", pathWith("a b"), map[string][]string{"x": {"1&2"}}, map[string]string{"text": "<é>"}, &got); err != nil {
		t.Fatal(err)
	}
	if got.Path != "/below/v1/tasks/a b/x" || got.Query != "x=1%262" || got.Auth != "Bearer secret" || got.Type != "application/json" || got.Body != "{\"text\":\"<é>\"}\n" || got.Key != 32 {
		t.Errorf("%+v", got)
	}
	var raw json.RawMessage
	if err := c.Do(soon(t), "GET", "/x", nil, nil, &raw); err != nil || !strings.HasSuffix(string(raw), "}\n") {
		t.Errorf("the document's own bytes: %q, %v", raw, err)
	}
}

func pathWith(id string) string { return TaskPath(id, "x") }

// A POST whose answer was lost is sent again, under the same key; a PATCH, which has
// none, is not; a read is.
func TestRepeats(t *testing.T) {
	for _, tt := range []struct {
		method string
		ok     bool
		asked  int
	}{{"POST", true, 3}, {"GET", true, 3}, {"PATCH", false, 1}, {"DELETE", false, 1}} {
		var n counter
		keys := map[string]bool{}
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			keys[r.Header.Get("Idempotency-Key")] = true
			if n.next() < 3 {
				cut(w)
				return
			}
			say(w, 200, struct{}{})
		})
		c.http.Transport.(*http.Transport).DisableKeepAlives = true // net/http repeats by itself on a reused connection
		err := c.Do(soon(t), tt.method, "/x", nil, nil, nil)
		var un *Unreachable
		if (err == nil) != tt.ok || err != nil && !errors.As(err, &un) {
			t.Errorf("%s: got %v, want (err == nil) = tt.ok and (no error or errors.As(err, &un))", tt.method, err)
		}
		if got := int(n.n.Load()); tt.method != "GET" && got != tt.asked || len(keys) != 1 {
			t.Errorf("%s: asked %d times under %d keys, want %d", tt.method, got, len(keys), tt.asked)
		}
	}
}

// Two POSTs are two requests: their keys differ.
func TestKeysDiffer(t *testing.T) {
	keys := map[string]bool{}
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		keys[r.Header.Get("Idempotency-Key")] = true
		say(w, 200, struct{}{})
	})
	for range 3 {
		if err := c.Do(soon(t), "POST", "/x", nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 3 || keys[""] {
		t.Error(keys)
	}
}

// Where nothing listens, nobody is kept waiting.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, base := range []string{"http://" + l.Addr().String(), "unix:" + filepath.Join(t.TempDir(), "none.sock")} {
		c := newClient(t, base)
		waited := 0
		c.sleep = func(context.Context, time.Duration) error { waited++; return nil }
		_, err = c.Task(soon(t), "x")
		var un *Unreachable
		if !errors.As(err, &un) || un.Base != base || waited != 0 || strings.Contains(err.Error(), "/v1/tasks") {
			t.Errorf("%v, waited %d times", err, waited)
		}
	}
}

// A refusal is told as the server said it; waiting is only for what passes.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		p      Problem
		after  string
		asked  int
	}{
		{"not found", 404, Problem{Code: "task_not_found", Title: "No such task", Detail: "x", Suggestions: []string{"y"}}, "", 1},
		{"in flight", 409, Problem{Code: "idempotency_in_flight", Retryable: true}, "", tries},
		{"answered", 409, Problem{Code: "already_answered"}, "", 1},
		{"too many", 429, Problem{Code: "too_many", Retryable: true}, "1", tries},
		{"busy, to be tried later by whoever wants", 409, Problem{Code: "task_busy", Retryable: true}, "1", 1},
		{"stopping", 503, Problem{Code: "stopping", Retryable: true}, "1", tries},
		{"wrong", 422, Problem{Code: "validation_failed", Errors: []api.Wrong{{Parameter: "/text", Detail: "missing"}}}, "", 1},
	} {
		var n counter
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			n.next()
			if tt.after != "" {
				w.Header().Set("Retry-After", tt.after)
			}
			say(w, tt.status, tt.p)
		})
		_, err := c.Send(soon(t), "x", api.Message{Text: "x"})
		var p *Problem
		if !errors.As(err, &p) || p.Code != tt.p.Code || p.Status != tt.status || len(p.Errors) != len(tt.p.Errors) || n.n.Load() != int64(tt.asked) {
			t.Errorf("%s: %#v after %d requests, want %d", tt.name, err, n.n.Load(), tt.asked)
		}
	}
}

// What answers and is no server of Roost is as good as none.
func TestOthers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<p>")
		},
		"a page's error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 404) },
		"half a document": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "{")
		},
		"a redirection": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"another problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(400)
			io.WriteString(w, "{}")
		},
	} {
		_, err := served(t, answer).Task(soon(t), "x")
		var un *Unreachable
		if !errors.As(err, &un) {
			t.Errorf("%s: got %v, want errors.As(err, &un)", name, err)
		}
	}
}

// The token goes to the server alone, wherever that leads.
func TestTokenStays(t *testing.T) {
	asked := 0
	other := served(t, func(http.ResponseWriter, *http.Request) { asked++ })
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.url.String(), http.StatusTemporaryRedirect)
	})
	_, _ = c.Task(soon(t), "x")
	if asked > 0 {
		t.Error("the client followed a redirection")
	}
}

// A client whose context ends says so, and does not go on.
func TestGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(soon(t))
	c := served(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := c.Task(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A certificate that this machine does not trust stays so: the user gets the error at once.
func TestAnUntrustedCertificateIsNotTriedAgain(t *testing.T) {
	var calls atomic.Int32
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = logs.New(io.Discard, "", 0)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			calls.Add(1)
		}
	}
	srv.StartTLS()
	defer srv.Close()
	c, err := New(srv.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Task(t.Context(), "x")
	var untrusted *tls.CertificateVerificationError
	if !errors.As(err, &untrusted) || calls.Load() != 1 {
		t.Errorf("got %v after %d connections, want an untrusted certificate after one", err, calls.Load())
	}
}
