// Package google speaks the Gemini API: streamGenerateContent with server-sent
// events.
//
// The body is built from Roo's stored blocks: the same history gives the same bytes
// and a longer one the same bytes in front. The API wants a thought's signature back.
// It is stored as Roo stores it (one block at the end of the reply) and sent with the
// first call of that reply, where the API looks for it. A reply that another model
// wrote has none; the API's documented placeholder is sent instead.
//
// Replies are put into Roo's stored order. Thoughts are kept for the user and not
// sent back. The SDK was rejected: its types lose fields that they do not know, and
// turn a call's arguments into Go values.
package google

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// Name is the provider's name.
const Name = "google"

// DefaultBaseURL is Google's own address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// DefaultIdle is how long a call may stay silent.
const DefaultIdle = 10 * time.Minute

// Options configure a Provider. Only APIKey is needed.
type Options struct {
	APIKey  string
	BaseURL string // "" = DefaultBaseURL; with or without the /v1beta
	Model   string // used when a request names none
	// Effort is how much the model shall think: none, minimal, low, medium, high,
	// xhigh or max; "" = the model's own.
	Effort string

	HTTPClient  *http.Client  // nil = one made for large requests
	IdleTimeout time.Duration // 0 = DefaultIdle, negative = none
	Backoff     wire.Backoff
	Now         func() time.Time // for dates in retry-after; nil = time.Now
}

// Provider implements llm.Provider.
type Provider struct {
	opts    Options
	history wire.History
}

var _ llm.Provider = (*Provider)(nil)

// New makes a Provider. It never fails: what is missing is reported by the first
// Stream.
func New(o Options) *Provider {
	o.APIKey = strings.TrimSpace(o.APIKey)
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = DefaultIdle
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: wire.NewTransport()}
	}
	return &Provider{opts: o}
}

// Name returns "google".
func (p *Provider) Name() string { return Name }

// CloseIdle closes connections that are kept for the next turn.
func (p *Provider) CloseIdle() { p.opts.HTTPClient.CloseIdleConnections() }

// String shows where the provider sends, never the key.
func (p *Provider) String() string { return fmt.Sprintf("%s at %s", Name, p.opts.BaseURL) }

// GoString keeps the key out of %#v.
func (p *Provider) GoString() string { return p.String() }

// Stream asks and yields what comes. See llm.Provider. Errors are *llm.Error, or
// the context's cause when the caller ended it.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if req.Model == "" {
			req.Model = p.opts.Model
		}
		call, err := p.call(req)
		if err != nil {
			yield(nil, err)
			return
		}
		wire.Ask(ctx, p.opts.Backoff, yield, func() wire.Attempt {
			r := &reply{call: call}
			a := wire.Attempt{Call: call, Add: r.add, Done: r.done}
			// The API has no end event: it sends a finish reason, and the stream ends.
			a.Call.Ended = func() bool { return r.stop != "" }
			return a
		})
	}
}

// Body is the request body in one piece, as it goes out.
func (p *Provider) Body(req llm.Request) ([]byte, error) {
	c, err := p.call(req)
	if err != nil {
		return nil, err
	}
	return c.Body.Bytes(), nil
}

// call is the request as it goes out.
func (p *Provider) call(req llm.Request) (wire.Call, error) {
	c := wire.Call{
		Client: p.opts.HTTPClient, Provider: Name, Header: http.Header{}, Key: p.opts.APIKey,
		Idle: p.opts.IdleTimeout, Now: p.opts.Now, Kind: kindOf,
	}
	refuse := func(kind llm.Kind, message string) (wire.Call, error) {
		return c, &llm.Error{Provider: Name, Kind: kind, Message: message}
	}
	switch {
	case p.opts.APIKey == "" && p.opts.BaseURL == DefaultBaseURL:
		return refuse(llm.Auth, "no API key; try: set GEMINI_API_KEY")
	case req.Model == "":
		return refuse(llm.Invalid, "no model was named; try: --model NAME")
	}
	if problem := wire.CheckMessages(req.Messages); problem != "" {
		return refuse(llm.Invalid, problem)
	}
	if p.opts.APIKey != "" {
		c.Header.Set("X-Goog-Api-Key", p.opts.APIKey)
	}
	model := strings.TrimPrefix(req.Model, "models/")
	c.URL = wire.Join(p.opts.BaseURL, "v1beta", "models/"+url.PathEscape(model)+":streamGenerateContent?alt=sse")
	c.Body = p.body(req)
	return c, nil
}

// kindOf classifies by message and code: Google sends many errors as a plain 400.
func kindOf(status int, code, message string) llm.Kind {
	switch {
	case strings.Contains(message, "API key not valid"), strings.Contains(message, "API key expired"):
		return llm.Auth
	case wire.IsOverflow(message):
		return llm.ContextOverflow
	case code == "RESOURCE_EXHAUSTED":
		return llm.RateLimited
	case code == "UNAVAILABLE":
		return llm.Overloaded
	case status == 0:
		return llm.Server
	}
	return wire.KindOfStatus(status, message)
}
