// Package wire holds what all HTTP model providers share: making a call, reading
// server-sent events, noticing a stalled stream, classifying errors by status and
// wording, waiting between attempts, sending bodies of megabytes without copying them,
// translating only the messages that are new, and keeping keys out of error texts.
//
// It reads Roo's stored blocks and no provider's messages. Only a History keeps state
// between calls. Nothing here logs or starts a goroutine that outlives a call.
package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/llm"
)

// drainLimit bounds the wait for the end of a response after its last event. Reading to the end keeps the connection
// for the next turn; a new one costs a TLS handshake.
const drainLimit = 100 * time.Millisecond

// maxRefusal bounds the bytes that are read of an error page.
const maxRefusal = 64 << 10

// Call is one request to a provider, whose reply is a stream of events. The provider's key is removed from every error text.
type Call struct {
	Provider
	URL    string
	Header http.Header
	Body   *Body

	// Ended reports whether a stream that ends or breaks without an end event has sent a whole reply.
	// nil = every reply has an end event, and a stream without one was cut.
	Ended func() bool

	secrets []string // removed from every error text, too
}

// Door describes how a cloud sells a maker's models: at its own address, with its own credentials and framing. The
// body is the maker's, apart from a few members. A nil function means: the maker's way.
type Door struct {
	Name    string                    // the cloud's name in flags and records
	Version string                    // anthropic_version for the body, which then names no model; "" = the model is in the body
	Address func(model string) string // the address for calls of a model
	// Authorize adds the credentials to a request before it is sent. It returns the texts that no error may show. An
	// error that is no *llm.Error means that the credentials are missing.
	Authorize func(ctx context.Context, r *http.Request, body *Body) (secrets []string, err error)
	// Events reads the events of a reply that are not server-sent events.
	Events func(io.Reader) EventReader
	// Refused completes the error of a refusal after the maker's classification: it corrects the kind and adds advice.
	Refused func(err *llm.Error, code string)
}

// Stream sends the request and passes the data of each event to event, which reports whether the reply is complete. A
// stream that ends before that was cut. Errors are *llm.Error without the key, ErrStop, or the context's cause.
func (c Call) Stream(ctx context.Context, event func(data []byte) (done bool, err error)) error {
	err := c.stream(ctx, event)
	if failed, is := err.(*llm.Error); is { //nolint:errorlint // ours, not wrapped
		return c.redacted(failed)
	}
	return err
}

func (c *Call) stream(ctx context.Context, event func(data []byte) (done bool, err error)) error {
	ctx, body, stop := withIdle(ctx, c.IdleTimeout)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, c.Body.Reader())
	if err != nil {
		return c.newError(llm.Invalid, 0, "the address is not usable: "+err.Error())
	}
	req.ContentLength = c.Body.Size()
	req.GetBody = func() (io.ReadCloser, error) { return c.Body.Reader(), nil }
	maps.Copy(req.Header, c.Header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if err := c.authorize(ctx, req); err != nil {
		return err
	}
	client := *c.HTTPClient
	if client.CheckRedirect == nil {
		client.CheckRedirect = SameServer
	}
	res, err := client.Do(req)
	if err != nil {
		return TransportError(ctx, c.Name(), err, false)
	}
	defer res.Body.Close()
	body.timer.Stop()
	body.Reader = res.Body
	answer := bufio.NewReader(body)
	start, _ := answer.Peek(1)                                                           // reading on returns the error
	if res.StatusCode < 200 || res.StatusCode > 299 || bytes.ContainsAny(start, "{[<") { // JSON or a page, and no stream
		page, _ := io.ReadAll(io.LimitReader(answer, maxRefusal))          // a part of the page is enough
		code, _, _ := strings.Cut(res.Header.Get("X-Amzn-Errortype"), ":") // AWS names it only here
		return c.timed(c.errorOf(res.StatusCode, code, page), res.Header)
	}
	var events EventReader = NewEvents(answer)
	if c.Door != nil && c.Door.Events != nil {
		events = c.Door.Events(answer)
	}
	for size := 0; ; {
		data, err := events.Next()
		if size += len(data); size > MaxReply {
			err = fmt.Errorf("read the reply: %w (over %d bytes)", ErrTooLarge, MaxReply)
		}
		cause := context.Cause(ctx)
		if err != nil && (cause == nil || errors.Is(cause, ErrIdle)) && c.Ended != nil && c.Ended() {
			return nil // another attempt would be paid again
		}
		if err != nil {
			return TransportError(ctx, c.Name(), err, true)
		}
		if len(bytes.TrimSpace(data)) == 0 { // some proxies keep the connection with empty events
			continue
		}
		done, err := event(data)
		if failed, is := err.(*llm.Error); is { //nolint:errorlint // ours, not wrapped
			return c.timed(failed, res.Header)
		}
		if err != nil {
			return err
		}
		if done {
			t := time.AfterFunc(drainLimit, stop)
			defer t.Stop()
			_, _ = io.CopyN(io.Discard, res.Body, maxRefusal)
			return nil
		}
	}
}

// authorize lets the cloud add its credentials, and removes them from the call's errors.
func (c *Call) authorize(ctx context.Context, req *http.Request) error {
	if c.Door == nil || c.Door.Authorize == nil {
		return nil
	}
	secrets, err := c.Door.Authorize(ctx, req, c.Body)
	c.secrets = append(c.secrets, secrets...)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return TransportError(ctx, c.Name(), err, false)
	}
	if _, is := errors.AsType[*llm.Error](err); err != nil && !is {
		return c.newError(llm.Auth, 0, err.Error())
	}
	return err
}

// timed adds the wait that the provider asks for in a header, if the error has none.
func (c Call) timed(err *llm.Error, header http.Header) *llm.Error {
	if err.RetryAfterMS == 0 {
		now := time.Now
		if c.Now != nil {
			now = c.Now
		}
		err.RetryAfterMS = RetryAfter(header, now()).Milliseconds()
	}
	return err
}

// ErrorOf reads a provider's error from an error page (with its HTTP status) or from an
// event of a stream (status 0).
func (c Call) ErrorOf(status int, page []byte) *llm.Error { return c.errorOf(status, "", page) }

// errorOf is ErrorOf with a code for a page without one.
func (c Call) errorOf(status int, fallback string, page []byte) *llm.Error {
	code, message := Refusal(page)
	code = cmp.Or(code, fallback)
	// Redacted before it is cut: a part of a key would not be known any more.
	message = cmp.Or(message, Shorten(c.without(string(page)), 500), http.StatusText(status))
	err := c.newError("", status, message)
	// In an answer with the status 200 and in an event, the error itself may name its status.
	if n := esjson.IntOf(esjson.Member(page, "error"), "code"); status < 300 && n >= 400 && n < 600 {
		status = int(n)
	}
	err.Kind = KindOfStatus(status, message)
	if c.dialect.Kind != nil {
		err.Kind = c.dialect.Kind(status, code, message)
	}
	if c.Door != nil && c.Door.Refused != nil {
		c.Door.Refused(err, code)
	}
	switch {
	case lacksCredit(status, code, message):
		err.Err = llm.ErrCredit
	case wantsTLS(status, message):
		err.Kind, err.Err, err.Message = llm.Network, llm.ErrNotHTTP, "the server wants https:// at this address"
	}
	if m := retryDelay().FindSubmatch(page); m != nil {
		if d, ok := parseScaled(string(m[1]), time.Second); ok {
			err.RetryAfterMS = d.Milliseconds()
		}
	}
	return err
}

// retryDelay matches the wait that Google asks for: it is in the page, not in a header.
var retryDelay = lazyregexp.New(`"retryDelay":\s*"([0-9.]+)s"`)

// Refusal reads {"error":{"type","code","message"}}, which most providers write, and {"error":"..."} and
// {"message":"..."} of others.
func Refusal(page []byte) (code, message string) {
	if !esjson.Valid(page) {
		return "", ""
	}
	for first := range esjson.Array(page) { // Vertex puts the error of a stream into a list
		page = first
		break
	}
	inner, is := esjson.Get(page, "error")
	if !is {
		inner = page
	}
	if esjson.TypeOf(inner) == esjson.TypeString {
		_ = json.Unmarshal(inner, &message)
		return "", message
	}
	message, _ = esjson.GetString(inner, "message")
	message = cmp.Or(message, esjson.TextOf(inner, "Message")) // some of AWS's services
	// OpenAI may name the offending parameter only here.
	if param, _ := esjson.GetString(inner, "param"); param != "" && !strings.Contains(message, param) {
		message += " (" + param + ")"
	}
	for _, name := range []string{"code", "type", "status"} {
		if code, _ = esjson.GetString(inner, name); code != "" {
			break
		}
	}
	return code, message
}

func (c Call) newError(kind llm.Kind, status int, message string) *llm.Error {
	return c.redacted(&llm.Error{Provider: c.Name(), Kind: kind, Status: status, Message: message})
}

// redacted removes the call's secrets from an error's message, and drops the error's cause if the cause would show
// one.
func (c Call) redacted(failed *llm.Error) *llm.Error {
	failed.Message = c.without(failed.Message)
	if failed.Err != nil {
		if text := failed.Err.Error(); c.without(text) != text {
			failed.Err = nil
		}
	}
	return failed
}

// without returns a text without the call's secrets.
func (c Call) without(text string) string {
	for _, secret := range append([]string{c.APIKey}, c.secrets...) {
		text = Redact(text, secret)
	}
	return text
}

// checkMessages describes what is wrong with a request's messages, "" when nothing is.
func checkMessages(messages []llm.Message) string {
	if len(messages) == 0 {
		return "the request has no message"
	}
	for i, m := range messages {
		if m.Role != "user" && m.Role != "assistant" {
			return fmt.Sprintf("message %d has the role %q", i, m.Role)
		}
		if len(m.Content) == 0 {
			return fmt.Sprintf("message %d has no content", i)
		}
	}
	return ""
}

// Join appends an API's path to a base URL that may or may not end in a version, such as /api/v1 or /openai/v1beta.
func Join(base, version, path string) string {
	base = strings.TrimRight(base, "/")
	if last := base[strings.LastIndexByte(base, '/')+1:]; len(last) < 2 || last[0] != 'v' || last[1] < '0' || last[1] > '9' {
		base += "/" + version
	}
	return base + "/" + path
}

// Attempt is one call, and the functions that build its reply.
type Attempt struct {
	Call Call // with Ended, for an API whose streams simply end
	// Add adds the data of an event. done: the reply is complete.
	Add func(data []byte) (chunks []llm.Chunk, done bool, err error)
	// Done returns the reply, once it is complete.
	Done func() llm.Done
}

// Ask repeats a request until a reply begins (see Attempts), and yields the chunks of the reply, the llm.Done last.
// begin makes each attempt without any data of the attempt before.
func Ask(ctx context.Context, b Backoff, yield func(llm.Chunk, error) bool, begin func() Attempt) {
	Attempts(ctx, b, yield, func() (started bool, err error) {
		a := begin()
		delivered := false // the consumer has the reply: an error after it has no reader
		err = a.Call.Stream(ctx, func(data []byte) (bool, error) {
			chunks, done, err := a.Add(data)
			for _, c := range chunks {
				started = true
				if !yield(c, nil) {
					return false, ErrStop
				}
			}
			if err == nil && done {
				started, delivered = true, true
				_ = yield(a.Done(), nil) // a consumer that leaves now keeps the connection all the same
			}
			return done, err
		})
		if err == nil && !delivered && !yield(a.Done(), nil) {
			return true, ErrStop
		}
		return started, err
	})
}

// NewTransport returns a variant of the default transport for requests of megabytes. The default write buffer of 4 KB
// would turn each into hundreds of writes. 16 KB, one TLS record, are enough, since TLS sends record by record. On a
// connection without TLS (a model or a gateway on this machine) a Body is sent without a copy through the buffer.
// Each running task keeps a connection with its buffers: larger buffers would be most of the memory of a task.
func NewTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // a program that embeds us has put its own there
	}
	t = t.Clone()
	t.WriteBufferSize = 16 << 10
	t.ReadBufferSize = 8 << 10
	t.OnProxyConnectResponse = func(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
		if res.StatusCode == http.StatusOK {
			return nil
		}
		return &proxyError{proxy: proxy.Host, status: res.Status}
	}
	dial := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext // as the default one has it
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, is := c.(*net.TCPConn); is && err == nil {
			return gatherConn{tcp}, nil
		}
		return c, err
	}
	return t
}

// gatherConn sends a Body with as few system calls as possible. The transport asks connections for ReadFrom before it
// copies.
type gatherConn struct{ *net.TCPConn }

// ReadFrom sends the bytes of r.
func (c gatherConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, is := r.(*io.LimitedReader); is {
		if body, is := limited.R.(*bodyReader); is && limited.N == body.left {
			n, err := body.gather(c.TCPConn)
			limited.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r) //nolint:wrapcheck // the transport looks at the error
}

// maxRedirects bounds the redirects that a call follows.
const maxRedirects = 3

// redirectError is a refused redirect.
type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return "the address redirects to " + Shorten(e.to, 300) + ", and no key is sent there: if that is right, use it as the base URL"
}

// SameServer is a CheckRedirect for http.Client: a call follows a redirect only to the same
// server and with the same method. Another server would receive the whole conversation and
// the key: the standard client removes only the few headers that it knows.
func SameServer(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1]
	if len(via) > maxRedirects || req.Method != from.Method || req.URL.Host != from.URL.Host || req.URL.Scheme != from.URL.Scheme {
		return &redirectError{req.URL.String()}
	}
	return nil
}

// CheckAddress refuses an address that holds a user's name or password: addresses are stored and shown in clear.
func CheckAddress(base string) error {
	if _, behind, ok := strings.Cut(base, "//"); ok {
		base = behind
	}
	if host := strings.IndexAny(base, "/?#"); host >= 0 {
		base = base[:host]
	}
	if !strings.Contains(base, "@") {
		return nil
	}
	return errors.New("the address holds a name or password in front of its host, which would be kept and shown in clear: leave it out")
}

// ErrStop means that the consumer of a stream wants no more events.
var ErrStop = errors.New("the consumer stopped reading")

// Attempts repeats a request until a reply begins. attempt sends the request once, yields what arrives, and reports
// whether it yielded anything. A failure after that ends the stream, because only the caller knows what to do with
// half a reply. A failure also ends the stream when the provider asks for a longer wait than Backoff.Cap. Attempts
// yields any other failure as llm.Retrying and waits. attempt returns ErrStop when its consumer wants no more chunks.
func Attempts(ctx context.Context, b Backoff, yield func(llm.Chunk, error) bool, attempt func() (started bool, err error)) {
	for n := 1; ; n++ {
		started, err := attempt()
		if err == nil || errors.Is(err, ErrStop) {
			return
		}
		var failed *llm.Error
		if started || !errors.As(err, &failed) || !failed.Retryable() || n >= failed.Tries(b.Limit()+1) ||
			failed.RetryAfterMS > b.longest().Milliseconds() {
			yield(nil, err) // after a used-up quota the caller decides whether to wait for hours
			return
		}
		wait := b.Delay(n, failed)
		if !yield(llm.Retrying{Attempt: n, Err: failed, WaitMS: wait.Milliseconds()}, nil) {
			return
		}
		if err := b.Wait(ctx, wait); err != nil {
			yield(nil, err)
			return
		}
	}
}

// Backoff is how often a request is tried again, and how long to wait before each try. The zero value is the default.
type Backoff struct {
	Retries int           // attempts after the first; 0 = 4, negative = none
	Base    time.Duration // bound of the first wait; 0 = 1 s
	Cap     time.Duration // longest wait, even if the provider asks for a longer one; 0 = 60 s

	// For tests; nil = time and randomness as usual.
	Sleep func(ctx context.Context, d time.Duration) error
	Rand  func() float64 // in [0,1)
}

// Limit returns the number of attempts after the first.
func (b Backoff) Limit() int { return max(cmp.Or(b.Retries, 4), 0) }

// longest returns the longest wait.
func (b Backoff) longest() time.Duration { return cmp.Or(b.Cap, time.Minute) }

// Delay returns the wait after attempt n (from 1) failed with err: the one that the provider asks for, up to Cap, or
// else a random time between 0 and base*2^(n-1) (full jitter). Without the randomness, clients that were refused
// together would come back together.
func (b Backoff) Delay(n int, err *llm.Error) time.Duration {
	limit := b.longest()
	if err != nil && err.RetryAfterMS > 0 {
		return time.Duration(min(err.RetryAfterMS, limit.Milliseconds())) * time.Millisecond
	}
	bound := cmp.Or(b.Base, time.Second)
	for i := 1; i < n && bound < limit; i++ {
		bound *= 2
	}
	draw := b.Rand
	if draw == nil {
		draw = rand.Float64
	}
	return time.Duration(draw() * float64(min(bound, limit)))
}

// Wait waits, or returns the context's cause as soon as the context ends.
func (b Backoff) Wait(ctx context.Context, d time.Duration) error {
	if b.Sleep != nil {
		return b.Sleep(ctx, d)
	}
	if !sleep.For(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

// ErrIdle is the cause of a call that ended because nothing came for too long.
var ErrIdle = errors.New("the provider sent nothing for too long")

// withIdle returns a context that ends with the cause ErrIdle when nothing arrives for the time of limit: before the
// first read, or during a read through the reader. A limit of 0 or less never ends it. stop must be called.
func withIdle(ctx context.Context, limit time.Duration) (_ context.Context, r *idleReader, stop context.CancelFunc) {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r = &idleReader{limit: limit, timer: time.AfterFunc(limit, func() { cancel(ErrIdle) })}
	return ctx, r, func() {
		r.timer.Stop()
		cancel(context.Canceled)
	}
}

// idleReader reads a reply and runs the clock of the call only while a read waits: a slow consumer is not a stalled
// provider.
type idleReader struct {
	io.Reader
	timer *time.Timer // ends the call
	limit time.Duration
}

func (r *idleReader) Read(p []byte) (int, error) {
	r.timer.Reset(r.limit)
	n, err := r.Reader.Read(p)
	r.timer.Stop()
	return n, err
}

// Options configure a provider of any dialect. Only APIKey is required.
type Options struct {
	APIKey  string
	BaseURL string // "" = the dialect's own; with or without the version
	Model   string // used when a request names none
	// Effort is how much the model should think: none, minimal, low, medium, high, xhigh or max; "" = the model's
	// default.
	Effort string
	// Compatible selects chat completions, the API with which other servers imitate OpenAI. Only package openai reads
	// it.
	Compatible bool
	// Door is the cloud that sells the models; nil = their maker. It holds the credentials.
	Door *Door

	HTTPClient  *http.Client  // nil = one made for large requests
	IdleTimeout time.Duration // how long the provider may stay silent; 0 = the dialect's own, negative = for ever
	Backoff     Backoff
	Now         func() time.Time // for dates in retry-after; nil = time.Now
}

// Dialect describes the API of one provider.
type Dialect struct {
	Name    string
	BaseURL string        // the provider's own address, to which no call is sent without a key
	NoURL   string        // the error of a call without an address; "" = BaseURL is used
	NoKey   string        // the error of a call without a key
	Model   string        // a model to name as an example; "" = NAME
	Idle    time.Duration // how long a call may stay silent

	Address   func(model string) string   // of the provider's own API
	Header    map[string]string           // of calls to it
	KeyHeader string                      // the name of the header that holds the key
	KeyPrefix string                      // what precedes the key there
	Body      func(req llm.Request) *Body // the model of the request is known
	// Reply begins a reply to the call. It may set the call's Ended.
	Reply func(call Call, req llm.Request) Attempt

	Kind func(status int, code, message string) llm.Kind // classifies a refusal; nil = KindOfStatus
}

// Provider implements llm.Provider for a dialect.
type Provider struct {
	Options
	dialect Dialect
}

// NewProvider makes a Provider. It never fails: the first Stream reports missing settings, so that listing and
// showing work without a key.
func NewProvider(o Options, d Dialect) *Provider {
	o.APIKey = strings.TrimSpace(o.APIKey)
	if o.Door != nil {
		d.Name = o.Door.Name
	}
	if o.BaseURL == "" && d.NoURL == "" {
		o.BaseURL = d.BaseURL
	}
	o.IdleTimeout = cmp.Or(o.IdleTimeout, d.Idle)
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: NewTransport()}
	}
	return &Provider{Options: o, dialect: d}
}

// Name returns the provider's name in flags and records.
func (p *Provider) Name() string { return p.dialect.Name }

// CloseIdle closes connections that are kept for the next turn.
func (p *Provider) CloseIdle() { p.HTTPClient.CloseIdleConnections() }

// String shows the address of the provider, never the key.
func (p *Provider) String() string { return fmt.Sprintf("%s at %s", p.dialect.Name, p.BaseURL) }

// GoString keeps the key out of %#v.
func (p *Provider) GoString() string { return p.String() }

// Stream sends the request and yields the chunks of the reply; see llm.Provider. Errors are *llm.Error, or the context's
// cause when the caller ended the context.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	call, err := p.call(&req)
	return func(yield func(llm.Chunk, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		Ask(ctx, p.Backoff, yield, func() Attempt { return p.dialect.Reply(call, req) })
	}
}

// Body returns the request body in one piece, exactly as it is sent.
func (p *Provider) Body(req llm.Request) ([]byte, error) {
	c, err := p.call(&req)
	if err != nil {
		return nil, err
	}
	return c.Body.Bytes(), nil
}

// call makes the call for a request.
func (p *Provider) call(req *llm.Request) (Call, error) {
	c := Call{Provider: *p, Header: http.Header{}}
	req.Model = cmp.Or(req.Model, p.Model)
	switch {
	case p.Door != nil && req.Model != "":
		c.URL = p.Door.Address(req.Model)
	case p.BaseURL == "":
		return c, c.newError(llm.Invalid, 0, p.dialect.NoURL)
	case p.APIKey == "" && p.BaseURL == p.dialect.BaseURL:
		return c, c.newError(llm.Auth, 0, p.dialect.NoKey)
	case req.Model == "":
		return c, c.newError(llm.Invalid, 0, "no model was named; try: --model "+cmp.Or(p.dialect.Model, "NAME"))
	}
	if problem := checkMessages(req.Messages); problem != "" {
		return c, c.newError(llm.Invalid, 0, problem)
	}
	if c.Body = p.dialect.Body(*req); p.Door != nil {
		return c, nil
	}
	c.URL = p.dialect.Address(req.Model)
	for name, value := range p.dialect.Header {
		c.Header.Set(name, value)
	}
	if p.APIKey != "" {
		c.Header.Set(p.dialect.KeyHeader, p.dialect.KeyPrefix+p.APIKey)
	}
	return c, nil
}
