package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/workspace/shell"
)

// protocol is what is spoken; see the package comment.
const protocol = "2025-11-25"

// linger is how long a library may take to give up a call that is cancelled before its
// connection is cut, and a server to hear that its session is over.
const linger = 500 * time.Millisecond

// lastWords is how long is waited for what a server said last: of one whose output has
// ended, which is as good as gone, and of one that may live on.
const (
	lastWords  = 2 * time.Second
	someWords  = 200 * time.Millisecond
	heartbeats = 20 // in which such a time is waited for: see within
)

// within waits until done is closed or has something, or a time has passed in which this
// process could do something about it. On a busy machine it may stand still for longer than
// that: then all clocks have run out when it goes on, and what is done is about to be.
func within[T any](done <-chan T, limit time.Duration) (got T, ok bool) {
	for range heartbeats {
		select {
		case got = <-done:
			return got, true
		case <-time.After(limit / heartbeats):
		}
	}
	return got, false
}

// CallError: a call has no result. What is in it is fit to be shown.
type CallError struct {
	Server  string
	Reason  string
	Unknown bool // the server may have done it, or a part of it
	Timeout bool
	Err     error
}

func (e *CallError) Error() string {
	text := fmt.Sprintf("the MCP server %s: %s", e.Server, e.Reason)
	if e.Unknown {
		text += "; it is not known whether, or how far, the call took effect"
	}
	return text
}

func (e *CallError) Unwrap() error { return e.Err }

var errNoAnswer = errors.New("it did not answer in time")

// conn is one server, connected or not.
type conn struct {
	server Server
	hub    *Hub

	mu     sync.Mutex // held while connecting
	now    *session
	closed bool
}

// session is one connection.
type session struct {
	*sdk.ClientSession
	child  *shell.Child // of stdio
	stderr *tail
	junk   *tail
	web    *http.Transport // of the others
	url    string          // and their address, with what it may hold
	cancel context.CancelFunc
	broken atomic.Bool   // it was cut: nothing goes over it any more
	ended  atomic.Bool   // of stdio: its output has
	dead   chan struct{} // closed when the connection is over
	once   sync.Once
}

// session gives the connection, or makes one. fresh says that it was made just now.
func (c *conn) session(ctx context.Context) (s *session, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, &CallError{Server: c.server.Name, Reason: "the run has ended"}
	}
	if c.now != nil {
		if !c.now.over() {
			return c.now, false, nil
		}
		c.now.end()
		c.now = nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.hub.opt.connectWithin(), errNoAnswer)
	defer stop()
	if c.now, err = c.connect(ctx); err != nil {
		c.now = nil
		return nil, false, err
	}
	return c.now, true, nil
}

// connect starts or reaches the server and greets it. The connection lives on when ctx
// ends; only making it is bounded by that.
func (c *conn) connect(ctx context.Context) (*session, error) {
	server, err := c.server.filled(c.hub.opt.Workspace, c.hub.opt.Env)
	if err != nil {
		return nil, &CallError{Server: c.server.Name, Reason: err.Error()}
	}
	life, cancel := context.WithCancel(context.Background())
	s := &session{stderr: &tail{}, junk: &tail{}, cancel: cancel, dead: make(chan struct{})}
	transport, err := s.open(life, server, c.hub.opt)
	if err != nil {
		cancel()
		return nil, &CallError{Server: c.server.Name, Reason: c.hub.clean(err.Error()), Err: err}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "roost", Version: c.hub.opt.Version}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	type greeted struct {
		session *sdk.ClientSession
		err     error
	}
	done := make(chan greeted, 1)
	go func() {
		session, err := client.Connect(life, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
		done <- greeted{session, err}
	}()
	var g greeted
	select {
	case g = <-done:
	case <-ctx.Done():
		cancel()
		s.cut()
		if g = <-done; g.err == nil {
			_ = g.session.Close()
		}
		g.err = context.Cause(ctx)
	}
	if g.err != nil {
		cancel()
		s.cut()
		return nil, &CallError{Server: c.server.Name, Reason: "it cannot be reached: " + s.why(c.hub, g.err), Timeout: errors.Is(g.err, errNoAnswer), Err: g.err}
	}
	s.ClientSession = g.session
	go func() {
		defer close(s.dead)
		_ = s.Wait()
	}()
	return s, nil
}

// open makes what carries the messages.
func (s *session) open(life context.Context, server Server, o Options) (sdk.Transport, error) {
	if server.Kind == Stdio {
		child, err := shell.Serve(shell.Program{
			Path: server.Command, Args: server.Args, Dir: server.Dir, Env: server.environment(o.Env), Mark: o.Mark, Stderr: s.stderr,
		})
		if err != nil {
			return nil, err
		}
		s.child = child
		return &sdk.IOTransport{Reader: newLines(child.Out, s.junk, &s.ended), Writer: child.In, MaxLineLength: maxMessage + 64<<10}, nil
	}
	client, web, err := newClient(life, server.URL, server.Headers)
	if err != nil {
		return nil, err
	}
	s.web, s.url = web, server.URL
	if server.Kind == SSE {
		return &sdk.SSEClientTransport{Endpoint: server.URL, HTTPClient: client, MaxEventSize: maxMessage}, nil
	}
	return &sdk.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, MaxEventSize: maxMessage, MaxRetries: 1, DisableStandaloneSSE: true}, nil
}

// over reports whether nothing can be asked any more: the library may learn of it last.
func (s *session) over() bool {
	if s.child != nil {
		select {
		case <-s.child.Done():
			return true
		default:
		}
	}
	select {
	case <-s.dead:
		return true
	default:
		return s.broken.Load() || s.ended.Load()
	}
}

// cut ends what carries the messages, whatever is under way.
func (s *session) cut() {
	s.broken.Store(true)
	s.cancel()
	if s.child != nil {
		s.child.End()
	}
	if s.web != nil {
		s.web.CloseIdleConnections()
	}
}

// end ends the connection and all that belongs to it.
func (s *session) end() {
	s.once.Do(func() {
		if s.child != nil {
			s.child.End() // first: the library would wait for it much longer
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = s.Close()
		}()
		_, _ = within(closed, linger)
		s.cut()
		<-closed
		<-s.dead
	})
}

// why says what went wrong in words, with what the server printed.
func (s *session) why(h *Hub, err error) string {
	text := err.Error()
	if s.url != "" {
		text = strings.ReplaceAll(text, s.url, Address(s.url))
	}
	if s.child != nil {
		// The pipes tell of its end a moment before the system does, and its last words may
		// still be on their way.
		soon := someWords
		if s.ended.Load() {
			soon = lastWords
		}
		if _, gone := within(s.child.Done(), soon); gone {
			_, _ = within(s.child.Heard(), soon)
		}
		if status := s.child.Status(); status != "" {
			text += " (" + status + ")"
		}
	}
	if last := s.stderr.last(); last != "" {
		text += "\nIts last words: " + last
	}
	if junk := s.junk.last(); junk != "" {
		text += "\nIt printed what is no message: " + junk
	}
	return h.clean(text)
}

// do makes one call. A connection that was dead before is made anew, once; one that
// dies while the call runs is not, because nobody knows what the call did.
func (c *conn) do(ctx context.Context, f func(context.Context, *session) error) error {
	ctx, stop := context.WithTimeoutCause(ctx, c.server.Timeout, errNoAnswer)
	defer stop()
	for again := false; ; again = true {
		s, fresh, err := c.session(ctx)
		if err != nil {
			return err
		}
		err = s.run(ctx, f)
		var refused *refusal
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused): // also when the time is over just now: it has answered
			return &CallError{Server: c.server.Name, Reason: c.hub.clean(refused.Error()), Err: err}
		case ctx.Err() != nil && errors.Is(context.Cause(ctx), errNoAnswer):
			return &CallError{
				Server: c.server.Name, Reason: fmt.Sprintf("it did not answer within %v; the call was cancelled", c.server.Timeout),
				Unknown: true, Timeout: true, Err: errNoAnswer,
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !fresh && !again && unheard(err):
			c.drop(s)
			continue
		}
		text := s.why(c.hub, err)
		c.drop(s)
		return &CallError{Server: c.server.Name, Reason: "the connection failed: " + text, Unknown: !unheard(err), Err: err}
	}
}

// drop gives a connection up.
func (c *conn) drop(s *session) {
	c.mu.Lock()
	if c.now == s {
		c.now = nil
	}
	c.mu.Unlock()
	s.end()
}

// unheard: the call did not reach the server, or it says that it does not know us. A
// connection that was closed before took no call, and a pipe that nobody reads no whole one.
func unheard(err error) bool {
	for _, one := range []error{sdk.ErrSessionMissing, sdk.ErrConnectionClosed, syscall.ECONNREFUSED, syscall.EPIPE} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// run calls f and returns when that does; when ctx is over and f does not notice, as
// when the server does not read what it is sent, the connection is cut under it.
func (s *session) run(ctx context.Context, f func(context.Context, *session) error) error {
	done := make(chan error, 1)
	go func() { done <- f(ctx, s) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if err, ok := within(done, linger); ok {
		return err
	}
	s.cut()
	return <-done
}

func (c *conn) close() {
	c.mu.Lock()
	s := c.now
	c.now, c.closed = nil, true
	c.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// refusal is an answer of the server that says no: the connection is well.
type refusal struct{ err error }

func (r *refusal) Error() string { return strings.TrimSpace(r.err.Error()) }
func (r *refusal) Unwrap() error { return r.err }
