package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace/shell"
)

// protocol is the version of MCP that Roost uses; see the package comment.
const protocol = "2025-11-25"

// endGrace is the time that the library has to give up a cancelled call before its connection is cut, and that a
// server has to react to the end of its session.
const endGrace = 500 * time.Millisecond

// How long an error message waits for the server's exit status and its last output.
const (
	exitWait   = 2 * time.Second        // the output has ended: the process is exiting
	outputWait = 200 * time.Millisecond // the process may live on
)

// CallError means that a call has no result. Its texts can be shown to users.
type CallError struct {
	Server  string
	Reason  string
	Unknown bool // the call may have taken effect, whole or in part
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

	mu      sync.Mutex // held during a connect
	current *session
	closed  bool
}

// session is one connection.
type session struct {
	*sdk.ClientSession
	child  *shell.Child // with stdio
	stderr *tail
	junk   *tail
	web    *http.Transport // with HTTP
	url    string          // with HTTP; contains the keys
	login  *login          // with HTTP; nil when the definition has an Authorization header
	cancel context.CancelFunc
	broken atomic.Bool   // the connection was cut: calls no longer use it
	ended  atomic.Bool   // with stdio: the output has ended
	dead   chan struct{} // closed when the connection is over
	once   sync.Once
}

// session returns the connection, or makes one. fresh means that it is new.
func (c *conn) session(ctx context.Context) (s *session, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, &CallError{Server: c.server.Name, Reason: "the run has ended"}
	}
	if c.current != nil {
		if !c.current.over() {
			return c.current, false, nil
		}
		c.current.end()
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.hub.opt.Connect, errNoAnswer)
	defer stop()
	c.current, err = c.connect(ctx)
	return c.current, err == nil, err
}

// connect starts or reaches the server and initializes the session, which is nil after an error. ctx bounds only the
// connect; the connection outlives ctx.
func (c *conn) connect(ctx context.Context) (*session, error) {
	server, err := c.server.expanded(c.hub.opt.Workspace, c.hub.opt.Env)
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
	client := sdk.NewClient(
		&sdk.Implementation{Name: "roost", Version: c.hub.opt.Version},
		&sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}},
	)
	done := make(chan error, 1)
	go func() {
		var err error
		s.ClientSession, err = client.Connect(life, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		cancel()
		s.cut()
		if err = <-done; err == nil {
			_ = s.Close()
		}
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		s.cut()
		return nil, &CallError{
			Server:  c.server.Name,
			Reason:  "it cannot be reached: " + s.describe(c.hub, err),
			Timeout: errors.Is(err, errNoAnswer),
			Err:     err,
		}
	}
	go func() {
		defer close(s.dead)
		_ = s.Wait()
	}()
	return s, nil
}

// open makes the transport.
func (s *session) open(life context.Context, server Server, o Options) (sdk.Transport, error) {
	if server.Kind == Stdio {
		child, err := shell.Serve(shell.Program{
			Path:   server.Command,
			Args:   server.Args,
			Dir:    server.Dir,
			Env:    server.environment(o.Env),
			Mark:   o.Mark,
			Stderr: s.stderr,
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
	if !server.authorized() {
		s.login = &login{from: o.Logins, server: server, address: server.URL}
		client.Transport.(*httpClient).login = s.login //nolint:errorlint,forcetypeassert // made above
	}
	s.web, s.url = web, server.URL
	if server.Kind == SSE {
		return &sdk.SSEClientTransport{Endpoint: server.URL, HTTPClient: client, MaxEventSize: maxMessage}, nil
	}
	return &sdk.StreamableClientTransport{
		Endpoint:             server.URL,
		HTTPClient:           client,
		MaxEventSize:         maxMessage,
		MaxRetries:           1,
		DisableStandaloneSSE: true,
	}, nil
}

// over reports whether the connection is dead. The process and the pipe may show that earlier than the library
// notices it.
func (s *session) over() bool {
	if s.child != nil && s.child.Status() != "" {
		return true
	}
	select {
	case <-s.dead:
		return true
	default:
		return s.broken.Load() || s.ended.Load()
	}
}

// cut closes the transport, also during a call.
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

// end closes the session, its transport and its process. The next call makes a new connection.
func (s *session) end() {
	s.broken.Store(true)
	s.once.Do(func() {
		if s.child != nil {
			s.child.End() // first: the library would wait much longer for the process
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = s.Close()
		}()
		_, _ = waitWithin(closed, endGrace)
		s.cut()
		<-closed
		<-s.dead
	})
}

// describe returns a text about a failure, with the server's exit status and the end of its output.
func (s *session) describe(h *Hub, err error) string {
	text := err.Error()
	if s.url != "" {
		text = strings.ReplaceAll(text, s.url, Address(s.url))
	}
	if errors.Is(err, errLogin) || strings.Contains(text, errLogin.Error()) { // the library does not always wrap it
		text += "; roost mcp login " + api.ShellWord(s.login.server.Name) + " starts one"
	}
	text = s.login.hide(text)
	if s.child != nil {
		// The pipes close a moment before the system reports the exit, and the last output may
		// still be in the pipe.
		soon := outputWait
		if s.ended.Load() {
			soon = exitWait
		}
		if _, gone := waitWithin(s.child.Done(), soon); gone {
			_, _ = waitWithin(s.child.Drained(), soon)
		}
		if status := s.child.Status(); status != "" {
			text += " (" + status + ")"
		}
	}
	if last := s.stderr.lastLines(); last != "" {
		text += "\nIts last output: " + last
	}
	if junk := s.junk.lastLines(); junk != "" {
		text += "\nIt printed lines that are no messages: " + junk
	}
	return h.clean(text)
}

// call makes one call. If the connection was dead before the call, call connects once more
// and repeats it. If it dies during the call, call does not repeat it, because the call
// may have taken effect.
func (c *conn) call(ctx context.Context, f func(context.Context, *session) error) error {
	ctx, stop := context.WithTimeoutCause(ctx, c.server.Timeout, errNoAnswer)
	defer stop()
	for again := false; ; again = true {
		s, fresh, err := c.session(ctx)
		if err != nil {
			return err
		}
		err = s.run(ctx, f)
		answer, isAnswer := errors.AsType[*jsonrpc.Error](err)
		// The library gave the request up, without an answer or with a status such as 503 for one.
		givenUp := isAnswer && answer.Message == "rejected by transport"
		switch {
		case err == nil:
			return nil
		case isAnswer && !givenUp: // also when the time is just over: the server has answered
			reason := fmt.Sprintf("it refused the call: %s (%d)", answer.Message, answer.Code)
			return &CallError{Server: c.server.Name, Reason: c.hub.clean(reason), Err: err}
		case ctx.Err() != nil && errors.Is(context.Cause(ctx), errNoAnswer):
			return &CallError{
				Server: c.server.Name, Reason: fmt.Sprintf("it did not answer within %v; the call was cancelled", c.server.Timeout),
				Unknown: true, Timeout: true, Err: errNoAnswer,
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !fresh && !again && undelivered(err):
			s.end()
			continue
		}
		text := s.describe(c.hub, err)
		if !givenUp { // the connection is intact
			s.end()
		}
		return &CallError{Server: c.server.Name, Reason: "the connection failed: " + text, Unknown: !undelivered(err), Err: err}
	}
}

// undelivered reports whether the call certainly did not reach the server, or the server has no such session or
// refused the call without a log-in. A connection that was closed before the call carried nothing of it; a pipe
// without a reader took at most a part.
func undelivered(err error) bool {
	return errors.Is(err, sdk.ErrSessionMissing) || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, errLogin) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE)
}

// run calls f and returns when f does. When ctx ends and f does not return, for example
// because the server does not read its input, run cuts the connection.
func (s *session) run(ctx context.Context, f func(context.Context, *session) error) error {
	done := make(chan error, 1)
	go func() { done <- f(ctx, s) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if err, ok := waitWithin(done, endGrace); ok {
		return err
	}
	s.cut()
	return <-done
}

func (c *conn) close() {
	c.mu.Lock()
	s := c.current
	c.current, c.closed = nil, true
	c.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// httpClient sends requests to one server over HTTP with the headers of its definition, or the token of a log-in, for as
// long as the connection to that server is open.
type httpClient struct {
	login   *login
	next    *http.Transport
	at      *url.URL
	headers map[string]string
	life    context.Context //nolint:containedctx // the connection's own life, not a request's
}

func newClient(life context.Context, endpoint string, headers map[string]string) (*http.Client, *http.Transport, error) {
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, nil, errors.New("its url is no http or https address") // it is not shown: it may hold a key
	}
	next := http.DefaultTransport.(*http.Transport).Clone() //nolint:errorlint,forcetypeassert // the library documents this type
	next.ResponseHeaderTimeout = 0
	return &http.Client{Transport: &httpClient{next: next, at: at, headers: headers, life: life}}, next, nil
}

// RoundTrip adds the headers, or the token, for the server itself only: a redirect to another server does not carry
// them. It renews a token once if the server refuses it. A request ends with the connection: otherwise the library
// would wait for some of its own requests, such as the notice of a cancelled call, longer than a user would.
func (c *httpClient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(c.life, cancel)
	free := func() { stop(); cancel() }
	r = r.Clone(ctx)
	res, err := c.send(r)
	if err != nil {
		free()
		return nil, err
	}
	res.Body = bounded{res.Body, free}
	return res, nil
}

func (c *httpClient) send(r *http.Request) (*http.Response, error) {
	r.Header.Del("Referer") // of a redirect: the address that it names may hold a key
	if r.URL.Host != c.at.Host || r.URL.Scheme != c.at.Scheme {
		return c.next.RoundTrip(r)
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	if c.login == nil {
		return c.next.RoundTrip(r)
	}
	token, err := c.login.token(r.Context(), "")
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := c.next.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusUnauthorized {
			return res, err
		}
		res.Body.Close()
		if again || token == "" || r.Body != nil && r.GetBody == nil {
			return nil, errLogin
		}
		if token, err = c.login.token(r.Context(), token); err != nil {
			return nil, err
		}
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// bounded is a body that releases its context when it is closed.
type bounded struct {
	io.ReadCloser
	free func()
}

func (b bounded) Close() error {
	defer b.free()
	return b.ReadCloser.Close()
}

// maxMessage is the longest message that a server may send.
const maxMessage = 16 << 20

var errLong = fmt.Errorf("it sent a message of more than %d MB", maxMessage>>20)

// jsonLines reads those lines of a server's stdout that are messages. Many servers print a greeting or a log there,
// which may be JSON and must not end the connection; errors quote such lines.
type jsonLines struct {
	io.Closer
	lines *bufio.Scanner
	rest  []byte
	junk  *tail
	over  *atomic.Bool // set when the output has ended
}

func newLines(from io.ReadCloser, junk *tail, over *atomic.Bool) *jsonLines {
	l := &jsonLines{lines: bufio.NewScanner(from), Closer: from, junk: junk, over: over}
	l.lines.Buffer(make([]byte, 0, 64<<10), maxMessage)
	return l
}

func (l *jsonLines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if !l.lines.Scan() {
			if errors.Is(l.lines.Err(), bufio.ErrTooLong) {
				return 0, errLong
			}
			l.over.Store(true)
			return 0, cmp.Or(l.lines.Err(), io.EOF)
		}
		text := bytes.TrimSpace(l.lines.Bytes())
		message := text
		for message = range esjson.Array(text) { // a batch
			break
		}
		switch {
		case esjson.Valid(text) && esjson.TextOf(message, "jsonrpc") == "2.0":
			l.rest = append(bytes.Clone(text), '\n')
		case len(text) > 0:
			_, _ = l.junk.Write(append(bytes.Clone(text), '\n'))
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// tail keeps the end of the bytes written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const (
	tailBytes = 4 << 10
	tailLines = 5
)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-tailBytes):]...)
	t.data = append(t.data[:0], t.data[max(0, len(t.data)-tailBytes):]...)
	return len(p), nil
}

// lastLines returns the last lines, safe for a terminal; "" when there are none.
func (t *tail) lastLines() string {
	t.mu.Lock()
	text := string(t.data)
	t.mu.Unlock()
	var keep []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		if line = strings.TrimSpace(redact.Terminal(line)); line != "" {
			keep = append(keep, api.Shorten(line, 300))
		}
	}
	return strings.Join(keep[max(0, len(keep)-tailLines):], "\n")
}
