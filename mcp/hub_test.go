package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/mcptest"
	"github.com/roost-dev/roost/workspace/shell"
)

func TestStdioServer(t *testing.T) {
	t.Parallel()
	s := stdio(t, "one", "")
	s.Off, s.Always = []string{"die"}, []string{"echo"}
	h := hub(t, s)
	menus := h.Open(t.Context())
	if len(menus) != 1 || menus[0].Err != nil || len(menus[0].Notes) != 0 {
		t.Fatalf("got %+v, want len(menus) = 1 and menus[0].Err = nil and len(menus[0].Notes) = 0", menus)
	}
	names := toolNames(menus[0])
	if !slices.IsSorted(names) || slices.Contains(names, "die") || !slices.Contains(names, "mark") {
		t.Errorf("tools %v", names)
	}
	echo := menus[0].Tools[slices.Index(names, "echo")]
	if !echo.ReadOnly || !echo.Always || echo.Name != "mcp--one--echo" || echo.Description != "Repeats its text." || menus[0].Tools[slices.Index(names, "mark")].ReadOnly {
		t.Errorf("%+v", echo)
	}
	if d := cmp.Diff([]Resource{{URI: "note://hello", Name: "hello", Description: "A greeting."}}, menus[0].Resources); d != "" {
		t.Error(d)
	}
	if r := call(t, h, "one", "echo", `{"text":"hi"}`); r.Text != "echo: hi" || r.Failed {
		t.Errorf("got %+v, want r.Text = \"echo: hi\" and not r.Failed", r)
	}
	if r := call(t, h, "one", "env", `{"text":"SERVER_TOKEN"}`); r.Text != "SERVER_TOKEN=tok-0123456789abcdef" {
		t.Errorf("a variable of the definition: %+v", r)
	}
	if r := call(t, h, "one", "fail", `{"text":"why"}`); !r.Failed || r.Text != "it failed: why" {
		t.Errorf("got %+v, want r.Failed and r.Text = \"it failed: why\"", r)
	}
	if r := call(t, h, "one", "picture_twice", `{}`); len(r.Images) != 1 || r.Text != `{"content":[{"data":"[136544 bytes of data]","mimeType":"image/png","type":"image"}],"width":4}` {
		t.Errorf("an image that stands in what is structured, too: %d images, %.200s", len(r.Images), r.Text)
	}
	if r := call(t, h, "one", "structured", `{}`); r.Text != `{"a":[1],"b":2}` {
		t.Errorf("got %+v, want r.Text = `{\"a\":[1],\"b\":2}`", r)
	}
	r := call(t, h, "one", "picture", `{}`)
	if len(r.Images) != 1 || r.Images[0].Media != "image/png" || !bytes.Equal(r.Images[0].Data, mcptest.PNG) {
		t.Errorf("got %+v, want len(r.Images) = 1 and r.Images[0].Media = \"image/png\" and bytes.Equal(r.Images[0].Data, mcptest.PNG)",
			r)
	}
	if d := cmp.Diff("here it is\n\n[note://1]\na note\n\n[an image (image/svg+xml, 5 bytes) of a kind that is not shown]", r.Text); d != "" {
		t.Error(d)
	}
	r, err := h.Read(t.Context(), "one", "note://hello")
	if err != nil || r.Text != "hello from the server" || len(r.Images) != 1 {
		t.Errorf("got %+v, %v, want no error and r.Text = \"hello from the server\" and len(r.Images) = 1", r, err)
	}
	_, err = h.Read(t.Context(), "one", "note://nothing")
	var failed *CallError
	if !errors.As(err, &failed) || failed.Unknown || !strings.Contains(failed.Reason, "refused") {
		t.Errorf("got %v, want errors.As(err, &failed) and not failed.Unknown and strings.Contains(failed.Reason, \"refused\")",
			err)
	}
	if e := failing(t, h, "one", "no_such_tool", `{}`); e.Unknown || !strings.Contains(e.Reason, "no_such_tool") {
		t.Errorf("got %v, want not e.Unknown and strings.Contains(e.Reason, \"no_such_tool\")", e)
	}
	if e := failing(t, h, "two", "echo", `{}`); !strings.Contains(e.Error(), "there are: one") {
		t.Errorf("got %v, want strings.Contains(e.Error(), \"there are: one\")", e)
	}
}

// The list that a run begins with stays: a tool that a server adds later can be called
// by who knows of it, and is not offered.
func TestToolsThatChange(t *testing.T) {
	t.Parallel()
	h := hub(t, stdio(t, "one", ""))
	before := toolNames(h.Open(t.Context())[0])
	call(t, h, "one", "grow", `{}`)
	if r := call(t, h, "one", "grown", `{}`); r.Text != "grown" {
		t.Errorf("got %+v, want r.Text = \"grown\"", r)
	}
	if slices.Contains(before, "grown") {
		t.Error("it was there before")
	}
}

func TestServersThatMisbehave(t *testing.T) {
	t.Parallel()
	t.Run("prints junk", func(t *testing.T) {
		t.Parallel()
		h := hub(t, stdio(t, "s", "junk"))
		if r := call(t, h, "s", "junk", `{}`); r.Text != "after the junk" {
			t.Errorf("got %+v, want r.Text = \"after the junk\"", r)
		}
		call(t, h, "s", "echo", `{}`)
	})
	t.Run("dies while it is called", func(t *testing.T) {
		t.Parallel()
		h := hub(t, stdio(t, "s", ""))
		e := failing(t, h, "s", "die", `{}`)
		if !e.Unknown {
			t.Errorf("what it did is not known: %+v", e)
		}
		holds(t, e.Error(), "exit code 3", "out of memory")
		if r := call(t, h, "s", "echo", `{"text":"again"}`); r.Text != "echo: again" {
			t.Errorf("the next call starts it again: %+v", r)
		}
	})
	t.Run("dies between calls", func(t *testing.T) {
		t.Parallel()
		h := hub(t, stdio(t, "s", ""))
		first := call(t, h, "s", "pid", `{}`)
		call(t, h, "s", "die_later", `{}`)
		dead := h.conns["s"].current.dead
		fixture.Eventually(t, "the connection is known to be dead", func() bool {
			select {
			case <-dead:
				return true
			default:
				return false
			}
		})
		if r := call(t, h, "s", "pid", `{}`); r.Text == first.Text {
			t.Error("it is the same process")
		}
	})
	t.Run("dies between calls, and the library has not heard of it", func(t *testing.T) {
		t.Parallel()
		h := hub(t, stdio(t, "s", ""))
		for range 5 {
			call(t, h, "s", "die_later", `{}`)
			<-h.conns["s"].current.child.Done()
			call(t, h, "s", "echo", `{}`)
		}
	})
	t.Run("does not start", func(t *testing.T) {
		t.Parallel()
		s := stdio(t, "s", "")
		s.Command = "no-such-program-at-all"
		menus := hub(t, s).Open(t.Context())
		if menus[0].Err == nil {
			t.Fatal("it started")
		}
		holds(t, menus[0].Err.Error(), "MCP server s", "no-such-program-at-all")
	})
	t.Run("ends at once", func(t *testing.T) {
		t.Parallel()
		h := hub(t, stdio(t, "s", "dies"))
		err := h.Open(t.Context())[0].Err
		if err == nil {
			t.Fatal("it started")
		}
		holds(t, err.Error(), "cannot find the database", "exit code 1", "[REDACTED:mcp-env]")
		if strings.ContainsAny(err.Error(), "\x1b") || strings.Contains(err.Error(), "tok-") {
			t.Errorf(`got %q, want not strings.ContainsAny(err.Error(), "\x1b") and not strings.Contains(err.Error(), "tok-")`,
				err.Error())
		}
	})
	t.Run("lacks a variable", func(t *testing.T) {
		t.Parallel()
		s := stdio(t, "s", "")
		s.Args = []string{"${env:NO_SUCH_VARIABLE}"}
		holds(t, failing(t, hub(t, s), "s", "echo", `{}`).Error(), "NO_SUCH_VARIABLE is not set")
	})
	t.Run("floods stderr", func(t *testing.T) {
		t.Parallel()
		h := hub(t, stdio(t, "s", ""))
		call(t, h, "s", "flood", `{"n":8}`)
		errs := h.conns["s"].current.stderr
		errs.mu.Lock()
		defer errs.mu.Unlock()
		if n := len(errs.data); n == 0 || n > tailBytes {
			t.Errorf("%d bytes of stderr are kept", n)
		}
	})
	t.Run("answers with much", func(t *testing.T) {
		t.Parallel()
		h := hub(t, stdio(t, "s", ""))
		if r := call(t, h, "s", "huge", `{"n":1000000}`); len(r.Text) != 1000010 || !strings.HasSuffix(r.Text, "\nlast") {
			t.Errorf("%d bytes", len(r.Text))
		}
	})
}

// After a time limit or a stop by the user the call is over, the server is notified, and
// a server that does not even read is ended.
func TestCallsThatAreCutShort(t *testing.T) {
	t.Parallel()
	t.Run("time-out", func(t *testing.T) {
		t.Parallel()
		s := stdio(t, "s", "")
		h := hub(t, s)
		call(t, h, "s", "echo", `{}`)
		h.conns["s"].server.Timeout = 300 * time.Millisecond
		e := failing(t, h, "s", "slow", `{"n":3600000}`)
		if !e.Timeout || !e.Unknown {
			t.Errorf("got %+v, want e.Timeout and e.Unknown", e)
		}
		holds(t, e.Error(), "within 300ms")
		fixture.Eventually(t, "the server hears that it was cancelled", func() bool { return strings.Contains(logged(s), "cancelled") })
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		s := stdio(t, "s", "")
		h := hub(t, s)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("stopped by hand")
		go func() {
			fixture.Eventually(t, "the call has begun", func() bool { return strings.Contains(logged(s), "slow") })
			cancel(why)
		}()
		if _, err := h.Call(ctx, "s", "slow", json.RawMessage(`{"n":3600000}`)); !errors.Is(err, why) {
			t.Errorf("got %v, want errors.Is(err, why)", err)
		}
		fixture.Eventually(t, "the server hears of it", func() bool { return strings.Contains(logged(s), "cancelled") })
		call(t, h, "s", "echo", `{}`)
	})
	t.Run("not reading", func(t *testing.T) {
		t.Parallel()
		h := hub(t, stdio(t, "s", "deaf"))
		if _, err := h.Call(t.Context(), "s", "echo", json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
		h.conns["s"].server.Timeout = 300 * time.Millisecond
		big := `{"text":"` + strings.Repeat("x", 4<<20) + `"}`
		if e := failing(t, h, "s", "echo", big); !e.Timeout {
			t.Errorf("got %+v, want e.Timeout", e)
		}
	})
	t.Run("before it began", func(t *testing.T) {
		t.Parallel()
		if _, err := hub(t, stdio(t, "s", "")).Call(cancelled(t), "s", "echo", nil); err == nil {
			t.Error("it was called")
		}
	})
	t.Run("never connects", func(t *testing.T) {
		t.Parallel()
		// A busy machine may take so long to start the other one: it is given longer then.
		for limit := time.Second; ; limit *= 3 {
			h := hub(t, stdio(t, "s", "silent"), stdio(t, "well", ""))
			h.opt.Connect = limit
			menus := h.Open(t.Context())
			var failed *CallError
			if !errors.As(menus[0].Err, &failed) || !failed.Timeout {
				t.Errorf("got %v, want errors.As(menus[0].Err, &failed) and failed.Timeout", menus[0].Err)
			}
			if menus[1].Err != nil && limit < 20*time.Second {
				continue
			}
			if menus[1].Err != nil {
				t.Errorf("the other one: %v", menus[1].Err)
			}
			return
		}
	})
}

// What does not want to go goes all the same, and what a killed run has left is ended
// by the next one of that task.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	h := hub(t, stdio(t, "stubborn", "stubborn"))
	if err := h.Open(t.Context())[0].Err; err != nil {
		t.Fatal(err)
	}
	left, err := shell.Serve(shell.Program{Path: "sleep", Args: []string{"300"}, Dir: t.TempDir(), Mark: h.opt.Mark})
	if err != nil {
		t.Fatal(err)
	}
	defer left.End()
	h.Close()
	h.Close()
	if e := failing(t, h, "stubborn", "echo", `{}`); !strings.Contains(e.Error(), "the run has ended") {
		t.Errorf("got %v, want strings.Contains(e.Error(), \"the run has ended\")", e)
	}
	next := NewHub(h.opt)
	defer next.Close()
	next.Open(t.Context())
	select {
	case <-left.Done():
	case <-time.After(time.Minute):
		t.Error("what was left still runs")
	}
}

func TestServersOverHTTP(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{HTTP, SSE} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var wrong atomic.Int64
			handler := mcptest.Handler(mcptest.New(""))
			if kind == SSE {
				handler = mcptest.SSEHandler(mcptest.New(""))
			}
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer tok-0123456789abcdef" {
					wrong.Add(1)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				handler.ServeHTTP(w, r)
			}))
			defer web.CloseClientConnections()
			t.Cleanup(web.Close)
			s := Server{Name: "web", Kind: kind, URL: web.URL, State: Allowed, Timeout: 30 * time.Second, Headers: map[string]string{"Authorization": "Bearer ${env:SERVER_TOKEN}"}}
			h := hub(t, s)
			if m := h.Open(t.Context())[0]; m.Err != nil || len(m.Tools) < 10 || len(m.Resources) != 1 {
				t.Fatalf("got %+v, want m.Err = nil and len(m.Tools) >= 10 and len(m.Resources) = 1", m)
			}
			if r := call(t, h, "web", "echo", `{"text":"hi"}`); r.Text != "echo: hi" {
				t.Errorf("got %+v, want r.Text = \"echo: hi\"", r)
			}
			if r := call(t, h, "web", "fail", `{}`); !r.Failed {
				t.Errorf("got %+v, want r.Failed", r)
			}
			if wrong.Load() != 0 {
				t.Errorf("%d requests came without the header", wrong.Load())
			}
			h.Close()
		})
	}
}

// A server that was restarted does not know the session: nothing ran, so the call
// is made again. A server that is gone is an error for that call.
func TestHTTPServerThatIsStartedAnew(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[http.Handler]
	swap := func() {
		server := mcptest.New("")
		t.Cleanup(func() { mcptest.Hangup(server) })
		h := mcptest.Handler(server)
		now.Store(&h)
	}
	swap()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	h := hub(t, Server{Name: "web", Kind: HTTP, URL: web.URL, State: Allowed, Timeout: 30 * time.Second})
	call(t, h, "web", "echo", `{}`)
	swap()
	call(t, h, "web", "echo", `{}`)
	web.CloseClientConnections()
	web.Close()
	failing(t, h, "web", "echo", `{}`) // perhaps over the connection that was just closed
	if e := failing(t, h, "web", "echo", `{}`); e.Unknown || !strings.Contains(e.Error(), "connection refused") {
		t.Errorf("got %+v, want not e.Unknown and strings.Contains(e.Error(), \"connection refused\")", e)
	}
}

// When an HTTP status comes in place of an answer, the error names the status, and leaves open whether the call took
// effect. Only a status that ends the session makes the next call open another one.
func TestCallsThatAStatusEnds(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		words    string
		unknown  bool
		sessions int64
	}{
		http.StatusInternalServerError: {"Internal Server Error", true, 1},
		http.StatusGatewayTimeout:      {"Gateway Timeout", true, 1},
		http.StatusTooManyRequests:     {"Too Many Requests", true, 1},
		http.StatusBadRequest:          {"Bad Request", true, 2},
		http.StatusUnauthorized:        {"wants a log-in; roost mcp login web starts one", false, 2},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			server := mcptest.New("")
			t.Cleanup(func() { mcptest.Hangup(server) })
			next := mcptest.Handler(server)
			var refuses atomic.Bool
			var sessions atomic.Int64
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.Contains(body, []byte(`"initialize"`)) {
					sessions.Add(1)
				}
				if refuses.Load() && bytes.Contains(body, []byte(`"tools/call"`)) {
					w.WriteHeader(status)
					return
				}
				next.ServeHTTP(w, r)
			}))
			t.Cleanup(web.Close)
			h := hub(t, Server{Name: "web", Kind: HTTP, URL: web.URL, State: Allowed, Timeout: 30 * time.Second})
			call(t, h, "web", "echo", `{}`)
			refuses.Store(true)
			e := failing(t, h, "web", "echo", `{}`)
			if !strings.Contains(e.Error(), want.words) || e.Unknown != want.unknown {
				t.Errorf("got %v, unknown %v, want the words %q, unknown %v", e, e.Unknown, want.words, want.unknown)
			}
			refuses.Store(false)
			call(t, h, "web", "echo", `{}`)
			if got := sessions.Load(); got != want.sessions {
				t.Errorf("got %d sessions, want %d", got, want.sessions)
			}
		})
	}
}

// Headers, and a key in the address, are for the server that they were given for.
func TestHeadersDoNotFollowARedirect(t *testing.T) {
	t.Parallel()
	var told atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told.Store(r.Header.Get("X-Api-Key") + r.Header.Get("Authorization") + r.Header.Get("Referer"))
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(other.Close)
	web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(web.Close)
	h := hub(t, Server{Name: "web", Kind: HTTP, URL: web.URL + "/?key=secret", State: Allowed, Timeout: 30 * time.Second, Headers: map[string]string{"X-Api-Key": "secret-secret", "Authorization": "Bearer x"}})
	failing(t, h, "web", "echo", `{}`)
	if got, _ := told.Load().(string); got != "" {
		t.Errorf("the other one was told %q", got)
	}
}
