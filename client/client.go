// Package client is the one interface to Roost: over http and https, over the unix socket of a process that runs tasks, and
// to a server in the same process without a network. A caller cannot see the difference. Get, Post, Do, Ask and Open serve
// every route; frequent acts have methods of their own. Documents are those of package api.
//
// Every POST carries an Idempotency-Key. If the answer to a POST is lost, the client repeats the POST with the same key, and
// it takes effect once. The client repeats reads, and other changes only if the request is Repeatable.
//
// Events follows tasks. It reconnects after a broken connection, and yields each durable event once and in order.
//
// An error is a *Problem if a server refused a request, and *Unreachable if no server of Roost answered.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// Options are the options of a client.
type Options struct {
	Token string
	HTTP  *http.Client // nil: the client makes one
	Cert  string       // without HTTP: SHA-256, in hexadecimal, of the server's certificate; "": any that this machine trusts

	// Lost is called when an event stream breaks, with the reason and the time until the client reconnects. nil: no call.
	Lost func(err error, again time.Duration)
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base  string // the address, for errors
	url   url.URL
	opt   Options
	http  *http.Client
	local *local
	sleep func(context.Context, time.Duration) error // tests shorten it
}

// New makes a client for http://HOST or https://HOST, each perhaps with the path of the API, or for unix:/PATH. It sends
// nothing yet.
func New(base string, o Options) (*Client, error) {
	c := &Client{base: base, opt: o, http: o.HTTP, sleep: Sleep}
	if path, ok := strings.CutPrefix(base, "unix:"); ok {
		path = strings.TrimPrefix(path, "//") // unix:///run/x means unix:/run/x
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("server %q: want unix: and an absolute path", base)
		}
		c.url = url.URL{Scheme: "http", Host: "localhost"}
		c.http = plain(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		})
		return c, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("server %q: want http://HOST:PORT, https://HOST or unix:/PATH", base)
	}
	if u.User != nil {
		return nil, fmt.Errorf("server %q: remove the name and password: the server takes its token alone", u.Redacted())
	}
	c.url = url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	if c.http == nil {
		c.http = plain(nil)
		if o.Cert != "" {
			c.http.Transport.(*http.Transport).TLSClientConfig = only(o.Cert)
		}
	}
	return c, nil
}

// Local makes a client for a server in this process: it calls the handler without a network.
func Local(h http.Handler, token string) *Client {
	l := &local{handler: h}
	return &Client{
		base: "of this process", url: url.URL{Scheme: "http", Host: "localhost"}, opt: Options{Token: token}, local: l, sleep: Sleep,
		http: &http.Client{Transport: l, CheckRedirect: stay},
	}
}

// Base returns the address that was given to New.
func (c *Client) Base() string { return c.base }

// Close closes idle connections. Open streams stay open.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// plain returns an HTTP client that follows no redirect: its token is for one server.
func plain(dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, ForceAttemptHTTP2: dial == nil,
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: 0, // a request may wait for the end of a run
	}
	if dial == nil {
		t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	} else {
		t.Proxy = nil
	}
	return &http.Client{Transport: t, CheckRedirect: stay}
}

// only returns the configuration for a server with one certificate, as Options.Cert names it.
func only(cert string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { //nolint:gosec // it verifies
		if fmt.Sprintf("%x", sha256.Sum256(s.PeerCertificates[0].Raw)) != cert {
			return errors.New("the certificate is not the one that the server has")
		}
		return nil
	}}
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Sleep waits for a time, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unsent reports whether a request certainly did not reach a server that this machine trusts.
func unsent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" || errors.As(err, &untrusted)
}

// local calls a handler as a network would. The handler runs in a goroutine that the body of the answer owns: closing
// the body ends the request and waits for the handler.
type local struct{ handler http.Handler }

// Request is one request. Path begins with a slash and is already escaped.
type Request struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         any    // sent as JSON, or unchanged if a json.RawMessage; nil = none
	Key          string // Idempotency-Key of a POST; "" = that of the context (see Keyed), or a new one
	Repeatable   bool   // for a PATCH or DELETE that may take effect twice: the client may repeat the request

	attempt int // from 1; 0 = not sent yet
}

// AttemptHeader counts, from 2, how often a request was sent.
const AttemptHeader = "Roost-Attempt"

// tries bounds how often a request is sent, and answerBytes the size of a document.
const (
	tries       = 6
	answerBytes = 1 << 30
)

// Do sends a request and reads the answer into a value: nil ignores it, a *json.RawMessage gets its bytes.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body, into any) error {
	_, err := c.Ask(ctx, Request{Method: method, Path: path, Query: query, Body: body}, into)
	return err
}

// Ask is Do with all members of a request. It returns the header of the answer.
func (c *Client) Ask(ctx context.Context, r Request, into any) (http.Header, error) {
	var head http.Header
	err := c.again(ctx, &r, func() error {
		resp, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		head = resp.Header
		return c.read(resp, into)
	})
	return head, err
}

// Open sends a request. The caller reads the answer and closes it.
func (c *Client) Open(ctx context.Context, r Request) (*http.Response, error) {
	var resp *http.Response
	err := c.again(ctx, &r, func() (err error) {
		resp, err = c.send(ctx, r) //nolint:bodyclose // the caller does
		return err
	})
	return resp, err
}

// read reads a document.
func (c *Client) read(resp *http.Response, into any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes+1))
	switch {
	case err != nil:
		return err
	case len(body) > answerBytes:
		return &Unreachable{c.base, fmt.Errorf("the answer has more than %d bytes", answerBytes)}
	case into == nil || resp.StatusCode == http.StatusNoContent:
		return nil
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/json" || !esjson.Valid(body) {
		return &Unreachable{c.base, errors.New("this is not a server of roost: its answer is not a JSON document")}
	}
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = body
		return nil
	}
	return api.Failed(json.Unmarshal(body, into), "read the answer of the server %s", c.base)
}

// again sends a request until there is an answer, at most tries times. It does not repeat a first attempt that certainly
// did not reach a server: nothing listens there, and a user waits. After an attempt that may have taken effect, it
// repeats the request in every case, because the caller needs the answer.
func (c *Client) again(ctx context.Context, r *Request, ask func() error) error {
	post := r.Method == http.MethodPost
	if post && r.Key == "" {
		if r.Key = KeyOf(ctx); r.Key == "" {
			r.Key = NewKey()
		}
	}
	repeatable := post || r.Method == "" || r.Method == http.MethodGet || r.Method == http.MethodHead ||
		r.Method == http.MethodPut || r.Repeatable
	sent := false
	wait := 100 * time.Millisecond
	for n := 1; ; n++ {
		r.attempt = n
		err := ask()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("ask the server %s: %w", c.base, context.Cause(ctx))
		}
		var (
			p  *Problem
			un *Unreachable
		)
		switch {
		case errors.As(err, &p):
			// 409 means that the server still works on the first request with this key. The client also waits for a server
			// that is stopping or overloaded. All other refusals are for the caller.
			busy := p.Code == "idempotency_in_flight" || p.Retryable && (p.Status == http.StatusServiceUnavailable ||
				p.Status == http.StatusTooManyRequests) && after(p) > 0
			if !busy || n >= tries || !repeatable {
				return p
			}
			if err := c.sleep(ctx, max(wait, min(after(p), 5*time.Second))); err != nil {
				return fmt.Errorf("ask the server %s: %w", c.base, err)
			}
			wait *= 2
			sent = true
			continue
		case errors.As(err, &un) && !errors.Is(err, errProxy):
			return un
		}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &kind) {
			return err
		}
		if un = cmp.Or(un, &Unreachable{c.base, plainly(err)}); !repeatable || n >= tries || !sent && unsent(err) || c.local != nil {
			return un
		}
		sent = true
		if c.sleep(ctx, wait) != nil {
			return un
		}
		wait = min(2*wait, 3*time.Second)
	}
}

// plainly removes the method and the URL that net/http adds to an error.
func plainly(err error) error {
	if u, is := errors.AsType[*url.Error](err); is {
		return u.Err
	}
	return err
}

// send sends a request once; an answer is one of 2xx or 304.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	var body io.Reader
	if r.Body != nil {
		raw, ok := r.Body.(json.RawMessage)
		if !ok {
			var err error
			if raw, err = api.Encode(r.Body); err != nil {
				return nil, fmt.Errorf("write the request: %w", err)
			}
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, c.url.String()+r.Path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the server %s: %w", c.base, err)
	}
	req.URL.RawQuery = r.Query.Encode()
	maps.Copy(req.Header, r.Header)
	if c.opt.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opt.Token)
	}
	req.Header.Set("User-Agent", "roost")
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.Key != "" {
		req.Header.Set("Idempotency-Key", r.Key)
	}
	if r.attempt > 1 {
		req.Header.Set(AttemptHeader, strconv.Itoa(r.attempt))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusNotModified {
		return nil, c.refusal(resp)
	}
	return resp, nil
}

// TaskPath is the path of a task, or of a resource below it. The dots of an id are no steps of the path.
func TaskPath(id string, rest ...string) string {
	return "/v1/tasks/" + strings.Join(append([]string{strings.ReplaceAll(url.PathEscape(id), ".", "%2E")}, rest...), "/")
}

type keyed struct{}

// NewKey makes a unique idempotency key: a UUID of version 7, so that the id of a task that is derived from the key has a
// time.
func NewKey() string {
	key, _ := uuid.NewV7() // never fails: it reads random bytes
	return hex.EncodeToString(key[:])
}

// Keyed gives the requests of a context an idempotency key. POSTs with one key, path and body take effect once, even if
// clients send them repeatedly. Keyed is for callers that repeat a request after an error for which Lost is true. Different
// requests must have different keys.
func Keyed(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyed{}, key)
}

// KeyOf returns the key of a context; "" = none.
func KeyOf(ctx context.Context) string {
	key, _ := ctx.Value(keyed{}).(string)
	return key
}

// Lost reports whether the answer to a request was lost, so that the request may have taken effect. If the caller repeats the
// request with the same key, it takes effect once.
func Lost(err error) bool {
	var un *Unreachable
	var p *Problem
	return errors.As(err, &un) || errors.As(err, &p) && (p.Code == "holder_gone" || p.Code == "idempotency_in_flight")
}

// Problem is a refusal: the RFC 9457 problem object that the server sent.
type Problem = api.Problem

// after returns the time after which the server wants the request again; 0 = not given.
func after(p *Problem) time.Duration {
	if n, err := strconv.Atoi(strings.TrimSpace(p.After)); err == nil && n >= 0 && n < 3600 {
		return time.Duration(n) * time.Second
	}
	return 0
}

// Unreachable is an error between client and server: nothing listens at the address, the connection broke too often, or
// another program than a server of Roost answers.
type Unreachable struct {
	Base string // the server's address
	Err  error
}

func (e *Unreachable) Error() string { return "reach the server " + e.Base + ": " + e.Err.Error() }

func (e *Unreachable) Unwrap() error { return e.Err }

// errProxy: the server restarts, or works for longer than its proxy waits. The request may have taken effect.
var errProxy = errors.New("a proxy has no answer of the server")

// problemBytes bounds how much of a refusal the client reads.
const problemBytes = 4 << 20

// refusal reads an answer with a status other than 2xx, and closes it.
func (c *Client) refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, problemBytes))
	resp.Body.Close()
	if err != nil {
		return err
	}
	p := &Problem{}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(body, p) != nil || p.Code == "" {
		if resp.StatusCode >= http.StatusBadGateway && resp.StatusCode <= http.StatusGatewayTimeout {
			return &Unreachable{c.base, fmt.Errorf("%w: it answers %s", errProxy, resp.Status)}
		}
		return &Unreachable{c.base, fmt.Errorf("this is not a server of roost: it answers %s", resp.Status)}
	}
	p.Status, p.After = resp.StatusCode, resp.Header.Get("Retry-After")
	return p
}

// IsLocal reports whether the server is in this process.
func (c *Client) IsLocal() bool { return c.local != nil }

// LocalPeer is the remote address that a handler sees in a request of a client in its own process.
const LocalPeer = "local"

func (l *local) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RemoteAddr, in.RequestURI = LocalPeer, r.URL.RequestURI()
	in.Host = cmp.Or(in.Host, r.URL.Host)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	out, w := io.Pipe()
	a := &answer{head: http.Header{}, begun: make(chan struct{}), w: w}
	gone, trailer := make(chan struct{}), http.Header{} // the trailer is complete when the body ends
	go func() {
		defer close(gone)
		defer func() {
			err := error(nil)
			if p := recover(); p != nil { // as in net/http, the request fails and not the process
				err = errBroken
				if why, ok := p.(error); ok && !errors.Is(why, http.ErrAbortHandler) {
					err = fmt.Errorf("%w: %w", errBroken, why)
				}
			}
			a.begin(http.StatusOK)
			for _, name := range strings.Split(a.sent.Get("Trailer"), ",") {
				if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); a.head[name] != nil {
					trailer[name] = a.head[name]
				}
			}
			_ = w.CloseWithError(err) // never fails
		}()
		l.handler.ServeHTTP(a, in)
	}()
	// A handler that writes must not wait for a reader that has gone.
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) })
	end := sync.OnceFunc(func() {
		cancel()
		_ = out.Close() // never fails
		<-gone
		stop()
		if r.Body != nil {
			_ = r.Body.Close() // was read from memory
		}
	})
	select {
	case <-a.begun:
	case <-ctx.Done():
		end()
		return nil, context.Cause(ctx)
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: &body{out, end}, ContentLength: -1, Request: r, Trailer: trailer,
	}, nil
}

var errBroken = errors.New("the answer was broken off")

type body struct {
	io.Reader
	end func()
}

func (b *body) Close() error {
	b.end()
	return nil
}

// answer is the ResponseWriter of the handler.
type answer struct {
	head, sent http.Header
	status     int
	once       sync.Once
	begun      chan struct{}
	w          *io.PipeWriter
}

func (a *answer) Header() http.Header { return a.head }

func (a *answer) begin(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.head.Clone()
		close(a.begun)
	})
}

func (a *answer) WriteHeader(status int) {
	if status >= 200 { // a lower status is a hint
		a.begin(status)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.w.Write(p)
}

// Flush sends the header; the reader gets the rest as the handler writes it.
func (a *answer) Flush() { a.begin(http.StatusOK) }

// Get reads a document of any route.
func Get[T any](ctx context.Context, c *Client, path string, query url.Values) (doc T, err error) {
	err = c.Do(ctx, http.MethodGet, path, query, nil, &doc)
	return doc, err
}

// Post makes a change by any route, and reads the document that answers it.
func Post[T any](ctx context.Context, c *Client, path string, body any) (doc T, err error) {
	err = c.Do(ctx, http.MethodPost, path, nil, body, &doc)
	return doc, err
}

// List yields the rows of all tasks while the server reads them. The first part has the given number of newest rows, and the
// last part has all rows. An error ends the iteration.
func (c *Client) List(ctx context.Context, first int) iter.Seq2[api.ListPart, error] {
	return func(yield func(api.ListPart, error) bool) {
		resp, err := c.Open(ctx, Request{Method: http.MethodGet, Path: "/v1/list", Query: url.Values{"first": {strconv.Itoa(first)}}})
		if err != nil {
			yield(api.ListPart{}, err)
			return
		}
		defer resp.Body.Close()
		lines := json.NewDecoder(resp.Body)
		for whole := false; !whole; {
			var part api.ListPart
			if err := lines.Decode(&part); err != nil {
				yield(part, fmt.Errorf("read the list of the server %s: %w", c.base, err))
				return
			}
			if part.Problem != nil {
				yield(part, part.Problem)
				return
			}
			whole = part.Whole
			if !yield(part, nil) {
				return
			}
		}
	}
}

// Task returns a task.
func (c *Client) Task(ctx context.Context, id string) (api.Summary, error) {
	return Get[api.Summary](ctx, c, TaskPath(id), nil)
}

// Tasks returns a page of tasks; the query is that of GET /v1/tasks, see api.TaskFilter.Query.
func (c *Client) Tasks(ctx context.Context, query url.Values) (api.Page[api.Summary], error) {
	return Get[api.Page[api.Summary]](ctx, c, "/v1/tasks", query)
}

// Start makes a task, and starts its run if the document has a message. Without a message the ID of the run is "".
func (c *Client) Start(ctx context.Context, t api.NewTask) (api.Run, error) {
	made, err := Post[api.Started](ctx, c, "/v1/tasks", t)
	if err != nil {
		return api.Run{}, err
	}
	if made.Run == nil {
		return api.Run{Task: made.Task, State: made.Status, Mode: made.Mode, Provider: made.Provider, Model: made.Model}, nil
	}
	return *made.Run, nil
}

// Resume continues a task, with or without a message.
func (c *Client) Resume(ctx context.Context, id string, n api.NewRun) (api.Run, error) {
	return Post[api.Run](ctx, c, TaskPath(id, "runs"), n)
}

// ResumePlan shows how a run of the task would begin, and what the user must decide first. The query has the decisions so
// far, see GET /v1/tasks/{id}/resume.
func (c *Client) ResumePlan(ctx context.Context, id string, query url.Values) (api.ResumePlan, error) {
	return Get[api.ResumePlan](ctx, c, TaskPath(id, "resume"), query)
}

// Send sends a message to a task, in any state.
func (c *Client) Send(ctx context.Context, id string, m api.Message) (api.Sent, error) {
	return Post[api.Sent](ctx, c, TaskPath(id, "messages"), m)
}

// Cancel stops the run of a task, and returns when the run has ended.
func (c *Client) Cancel(ctx context.Context, id string) (api.Run, error) {
	return Post[api.Run](ctx, c, TaskPath(id, "cancel"), nil)
}

// Questions returns the open questions of a task, or of all tasks when task is "".
func (c *Client) Questions(ctx context.Context, task string) ([]api.Question, error) {
	query := url.Values{}
	if task != "" {
		query.Set("task", task)
	}
	var items []api.Question
	for {
		p, err := Get[api.Page[api.Question]](ctx, c, "/v1/questions", query)
		if err != nil {
			return nil, err
		}
		items = append(items, p.Items...)
		if p.Next == nil || *p.Next == query.Get("cursor") {
			return items, nil
		}
		query.Set("cursor", *p.Next)
	}
}

// Question returns an open question. If the question is not open, the error is a *Problem with the code
// question_not_found.
func (c *Client) Question(ctx context.Context, id string) (api.Question, error) {
	return Get[api.Question](ctx, c, "/v1/questions/"+url.PathEscape(id), nil)
}

// Answer answers a question. The first answer wins; a later one gets a *Problem with status 409, which holds the first one.
func (c *Client) Answer(ctx context.Context, question string, a api.Answer) (api.Answered, error) {
	return Post[api.Answered](ctx, c, "/v1/questions/"+url.PathEscape(question)+"/answer", a)
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, rid string) (api.Run, error) {
	return Get[api.Run](ctx, c, "/v1/runs/"+url.PathEscape(rid), nil)
}

// Await waits until a run has ended or waits for a user, for most at the longest, and returns it. A server may answer
// earlier.
func (c *Client) Await(ctx context.Context, rid string, most time.Duration) (r api.Run, err error) {
	wait := strconv.Itoa(int(max(most, time.Second) / time.Second))
	_, err = c.Ask(ctx, Request{Path: "/v1/runs/" + url.PathEscape(rid), Header: http.Header{"Prefer": {"wait=" + wait}}}, &r)
	return r, err
}

// RunsOf returns the newest runs of a task, the newest first.
func (c *Client) RunsOf(ctx context.Context, id string) (api.Page[api.Run], error) {
	return Get[api.Page[api.Run]](ctx, c, TaskPath(id, "runs"), nil)
}

// Rewind takes both histories of a task back to a message, edits a message, or removes one.
func (c *Client) Rewind(ctx context.Context, id string, n api.NewRewind) (api.Rewound, error) {
	return Post[api.Rewound](ctx, c, TaskPath(id, "rewinds"), n)
}

// Undo undoes the last action on a task.
func (c *Client) Undo(ctx context.Context, id string, n api.NewUndo) (api.Undone, error) {
	return Post[api.Undone](ctx, c, TaskPath(id, "undo"), n)
}

// UserSettings returns the settings of the server's user.
func (c *Client) UserSettings(ctx context.Context) (api.UserSettings, error) {
	return Get[api.UserSettings](ctx, c, "/v1/settings", nil)
}

// ChangeSettings sets settings in the user's file, and removes others.
func (c *Client) ChangeSettings(ctx context.Context, n api.SettingsPatch) (doc api.UserSettings, err error) {
	err = c.Do(ctx, http.MethodPatch, "/v1/settings", nil, n, &doc)
	return doc, err
}

func providerPath(provider, rest string) string {
	return "/v1/providers/" + url.PathEscape(provider) + rest
}

// SetKey stores the key of a provider on the server's machine.
func (c *Client) SetKey(ctx context.Context, provider string, n api.NewKey) (doc api.KeyState, err error) {
	err = c.Do(ctx, http.MethodPut, providerPath(provider, "/key"), nil, n, &doc)
	return doc, err
}

// RemoveKey removes the key of a provider from the server's machine.
func (c *Client) RemoveKey(ctx context.Context, provider string) (doc api.KeyState, err error) {
	err = c.Do(ctx, http.MethodDelete, providerPath(provider, "/key"), nil, nil, &doc)
	return doc, err
}

// TestProvider makes the server send one short request to a provider, outside any task.
func (c *Client) TestProvider(ctx context.Context, provider string, n api.NewTest) (api.Tested, error) {
	return Post[api.Tested](ctx, c, providerPath(provider, "/test"), n)
}

// AddMCPServer defines an MCP server in the user's own file.
func (c *Client) AddMCPServer(ctx context.Context, n api.NewMCPServer) (api.MCPServer, error) {
	return Post[api.MCPServer](ctx, c, "/v1/mcp-servers", n)
}

// RemoveMCPServer removes an MCP server from the user's own file.
func (c *Client) RemoveMCPServer(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodDelete, "/v1/mcp-servers/"+url.PathEscape(name), nil, nil, nil)
}

// AddSource adds a folder to the sources of tasks.
func (c *Client) AddSource(ctx context.Context, n api.NewSource) (api.AddedSource, error) {
	return Post[api.AddedSource](ctx, c, "/v1/sources", n)
}

// RemoveSource removes a folder from the sources of tasks.
func (c *Client) RemoveSource(ctx context.Context, path string) error {
	return c.Do(ctx, http.MethodDelete, "/v1/sources", url.Values{"path": {path}}, nil, nil)
}
