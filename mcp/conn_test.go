package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A call that certainly did not reach the server is reported as without effect and is made
// again over a new connection; the effect of any other failed call is unknown.
func TestWhatDidNotReachTheServer(t *testing.T) {
	for err, want := range map[error]bool{
		sdk.ErrSessionMissing:   true,
		sdk.ErrConnectionClosed: true, // it was closed before the call
		syscall.ECONNREFUSED:    true,
		syscall.EPIPE:           true,
		io.EOF:                  false, // while the call was under way
		io.ErrUnexpectedEOF:     false,
		syscall.ECONNRESET:      false,
		context.Canceled:        false,
	} {
		if got := undelivered(fmt.Errorf("calling: %w", err)); got != want {
			t.Errorf("%v: got %v, want got = %v", err, got, want)
		}
	}
}

// After a process was suspended, all its timers have expired. waitWithin still waits for
// an event that is about to happen, and for any other no longer than its limit.
func TestWaitingOnABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if _, ok := waitWithin(make(chan error), time.Second); ok || time.Since(begun) != time.Second {
			t.Errorf("in vain: %s", time.Since(begun))
		}
		done := make(chan error, 1)
		done <- io.EOF
		begun = time.Now()
		if got, ok := waitWithin(done, time.Second); !ok || !errors.Is(got, io.EOF) || time.Since(begun) != 0 {
			t.Errorf("got %v %v, want ok and errors.Is(got, io.EOF) and time.Since(begun) = 0", got, ok)
		}
		closed := make(chan struct{})
		time.AfterFunc(900*time.Millisecond, func() { close(closed) })
		if _, ok := waitWithin(closed, time.Second); !ok {
			t.Error("it was not waited for")
		}
	})
}

// An answer is an answer, also when the time for it is over just then.
func TestARefusalAtTheLastMoment(t *testing.T) {
	h := NewHub(Options{Servers: []Server{{Name: "s", State: Allowed, Timeout: time.Hour}}})
	c := h.conns["s"]
	c.current = &session{dead: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	err := c.call(ctx, func(context.Context, *session) error {
		cancel()
		return &jsonrpc.Error{Code: 7, Message: "no"}
	})
	var failed *CallError
	if !errors.As(err, &failed) || failed.Unknown || failed.Reason != "it refused the call: no (7)" {
		t.Errorf("got %+v, want errors.As(err, &failed) and not failed.Unknown and failed.Reason = \"it refused the call: no (7)\"", err)
	}
}

// A connection is over as soon as one of its signs is there.
func TestAConnectionThatIsOver(t *testing.T) {
	for name, end := range map[string]func(*session){
		"well":              nil,
		"dead":              func(s *session) { close(s.dead) },
		"cut":               func(s *session) { s.broken.Store(true) },
		"its output is out": func(s *session) { s.ended.Store(true) },
	} {
		s := &session{dead: make(chan struct{})}
		if end != nil {
			end(s)
		}
		if got := s.over(); got != (end != nil) {
			t.Errorf("%s: over: %v", name, got)
		}
	}
}
