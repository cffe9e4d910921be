package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
)

// Request is a request. Path begins with a slash and is already escaped.
type Request struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         any    // sent as JSON, a json.RawMessage as it is; nil = none
	Key          string // Idempotency-Key of a POST; "" = that of the context (see Keyed), or a new one
	Repeatable   bool   // a PATCH or DELETE that may take effect twice: it is sent again as a read is

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
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body, into any) (http.Header, error) {
	return c.Ask(ctx, Request{Method: method, Path: path, Query: query, Body: body}, into)
}

// Ask is Do for a request with headers or a key.
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
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the answer of the server %s: %w", c.base, err)
	}
	return nil
}

// again sends a request until there is an answer, at most tries times. A first request that certainly did not reach
// a server is not repeated: nothing listens there, and a user waits. After a request that may have taken effect, the
// answer matters.
func (c *Client) again(ctx context.Context, r *Request, ask func() error) error {
	post := r.Method == http.MethodPost
	if post && r.Key == "" {
		if r.Key = KeyOf(ctx); r.Key == "" {
			r.Key = NewKey()
		}
	}
	repeatable := post || r.Method == "" || r.Method == http.MethodGet || r.Method == http.MethodHead || r.Repeatable
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
			// 409 means that the server still works on the first request under this key. The caller judges other
			// refusals, except those of a server that is stopping or overloaded.
			busy := p.Code == "idempotency_in_flight" || p.Retryable && (p.Status == http.StatusServiceUnavailable ||
				p.Status == http.StatusTooManyRequests) && p.after > 0
			if !busy || n >= tries || !repeatable {
				return p
			}
			if err := c.sleep(ctx, max(wait, min(p.after, 5*time.Second))); err != nil {
				return fmt.Errorf("ask the server %s: %w", c.base, err)
			}
			wait *= 2
			sent = true
			continue
		case errors.As(err, &un):
			return un
		}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &kind) {
			return err
		}
		if un = (&Unreachable{c.base, plainly(err)}); !repeatable || n >= tries || !sent && unsent(err) || c.local != nil {
			return un
		}
		sent = true
		if c.sleep(ctx, wait) != nil {
			return un
		}
		wait = min(2*wait, 3*time.Second)
	}
}

// plainly removes what net/http puts around an error: the method and the whole URL.
func plainly(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// send sends a request once; an answer is one of 2xx or 304.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	var body io.Reader
	if r.Body != nil {
		raw, ok := r.Body.(json.RawMessage)
		if !ok {
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(r.Body); err != nil {
				return nil, fmt.Errorf("write the request: %w", err)
			}
			raw = buf.Bytes()
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url.String()+r.Path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the server %s: %w", c.base, err)
	}
	req.URL.RawQuery = r.Query.Encode()
	for name, values := range r.Header {
		req.Header[name] = values
	}
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

// taskPath is the path of a task, or of a resource below it.
func taskPath(id string, rest ...string) string {
	return "/v1/tasks/" + strings.Join(append([]string{url.PathEscape(id)}, rest...), "/")
}
