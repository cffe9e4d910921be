package wire

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/roost-dev/roost/llm"
)

// Options configure a provider of any dialect. Only APIKey is needed.
type Options struct {
	APIKey  string
	BaseURL string // "" = the dialect's own; with or without the version
	Model   string // used when a request names none
	// Effort is how much the model shall think: none, minimal, low, medium, high,
	// xhigh or max; "" = the model's own.
	Effort string
	// Compatible asks for chat completions, as other servers imitate OpenAI. Package openai alone reads it.
	Compatible bool

	HTTPClient  *http.Client  // nil = one made for large requests
	IdleTimeout time.Duration // 0 = the dialect's own, negative = none
	Backoff     Backoff
	Now         func() time.Time // for dates in retry-after; nil = time.Now
}

// Dialect is what tells the API of one provider from the others.
type Dialect struct {
	Name    string
	BaseURL string        // the provider's own address, to which no call goes without a key
	NoURL   string        // the answer to a call when no address was given; "" = BaseURL is meant
	NoKey   string        // the answer to a call that lacks a key
	Model   string        // a model to name as an example; "" = NAME
	Idle    time.Duration // how long a call may stay silent

	// Request completes a call for a request: its address, its body and its headers.
	Request func(call *Call, req llm.Request) error
	// Reply begins a reply to the call. It may set the call's Ended.
	Reply func(call Call, req llm.Request) Attempt

	Kind func(status int, code, message string) (kind llm.Kind) // as in Call
}

// Provider implements llm.Provider for a dialect.
type Provider struct {
	Options
	dialect Dialect
}

// NewProvider makes a Provider. It never fails: the first Stream reports what is missing, so that listing and
// showing work without a key.
func NewProvider(o Options, d Dialect) *Provider {
	o.APIKey = strings.TrimSpace(o.APIKey)
	if o.BaseURL == "" && d.NoURL == "" {
		o.BaseURL = d.BaseURL
	}
	o.IdleTimeout = cmp.Or(o.IdleTimeout, d.Idle)
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: NewTransport()}
	}
	return &Provider{Options: o, dialect: d}
}

// Name is the provider's name in flags and records.
func (p *Provider) Name() string { return p.dialect.Name }

// CloseIdle closes connections that are kept for the next turn.
func (p *Provider) CloseIdle() { p.HTTPClient.CloseIdleConnections() }

// String shows where the provider sends, never the key.
func (p *Provider) String() string { return fmt.Sprintf("%s at %s", p.dialect.Name, p.BaseURL) }

// GoString keeps the key out of %#v.
func (p *Provider) GoString() string { return p.String() }

// Stream asks and yields what comes. See llm.Provider. Errors are *llm.Error, or
// the context's cause when the caller ended it.
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

// Body is the request body in one piece, as it goes out.
func (p *Provider) Body(req llm.Request) ([]byte, error) {
	c, err := p.call(&req)
	if err != nil {
		return nil, err
	}
	return c.Body.Bytes(), nil
}

// call is the request as it goes out.
func (p *Provider) call(req *llm.Request) (Call, error) {
	c := Call{
		Client:   p.HTTPClient,
		Provider: p.dialect.Name,
		Header:   http.Header{},
		Key:      p.APIKey,
		Idle:     p.IdleTimeout,
		Now:      p.Now,
		Kind:     p.dialect.Kind,
	}
	req.Model = cmp.Or(req.Model, p.Model)
	switch {
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
	return c, p.dialect.Request(&c, *req)
}
