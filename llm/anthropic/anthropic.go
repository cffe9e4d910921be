// Package anthropic speaks Anthropic's Messages API.
//
// Stored content blocks are spliced into the request body as they are. The official
// SDK was rejected: its typed parameters rename, reorder and sometimes drop what they
// do not know, and a changed byte costs the prompt cache and may void a thinking
// signature. The same request gives the same bytes.
//
// The package adds at most four cache marks to the caller's messages: on the system
// prompt, on the last tool and on the last block of the last two user messages, so
// that each turn reads from the cache what the turn before wrote.
//
// Replies are put into Roo's stored order (thinking, one text, other blocks, tool
// calls). Text citations and the positions of text between calls are lost.
//
// Attempts that fail before the first chunk are repeated here with back-off, each
// failure shown as llm.Retrying before the wait. After the first chunk a failure
// ends the stream: only the caller knows what to do with half a reply.
package anthropic

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// Name is the provider's name.
const Name = "anthropic"

// DefaultBaseURL is Anthropic's own address.
const DefaultBaseURL = "https://api.anthropic.com"

// apiVersion is the version of the Messages API whose events and errors this package reads.
const apiVersion = "2023-06-01"

// DefaultIdle is how long a call may stay silent. Anthropic sends pings while a
// model thinks, so silence of this length is a dead connection.
const DefaultIdle = 5 * time.Minute

// Options configure a Provider. Only APIKey is needed.
type Options struct {
	APIKey  string
	BaseURL string // "" = DefaultBaseURL; without the /v1
	Model   string // used when a request names none
	Betas   []string

	// ThinkingBudget asks for extended thinking with that many tokens (at least
	// 1024, less than the output limit; adjusted to fit). AdaptiveThinking lets the
	// model decide, on models that offer it, and wins over the budget. Thinking is
	// left out of a request that continues a tool call made without it: the API
	// refuses that, and such histories come from other models or modes.
	ThinkingBudget   int
	AdaptiveThinking bool

	// Effort is how much the model shall think: minimal, low, medium, high, xhigh or
	// max; "" and "none" leave it to the model and to the two above. Models without an
	// effort get a share of their output limit as budget.
	Effort string

	HTTPClient  *http.Client  // nil = one with a large write buffer
	IdleTimeout time.Duration // 0 = DefaultIdle, negative = none
	Backoff     wire.Backoff
	Now         func() time.Time // for dates in retry-after; nil = time.Now
}

// Provider implements llm.Provider.
type Provider struct {
	opts Options
	last atomic.Pointer[preamble] // of the newest request
}

var _ llm.Provider = (*Provider)(nil)

// New makes a Provider. It never fails: a missing key is reported by the first
// Stream as an llm.Error of Kind Auth, so that listing and showing work without.
func New(o Options) *Provider {
	o.APIKey = strings.TrimSpace(o.APIKey)
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	// Users write the address with and without the version.
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1")
	if o.IdleTimeout == 0 {
		o.IdleTimeout = DefaultIdle
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: wire.NewTransport()}
	}
	return &Provider{opts: o}
}

// Name returns "anthropic".
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
	call, err := p.newCall(req)
	return func(yield func(llm.Chunk, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		wire.Ask(ctx, p.opts.Backoff, yield, func() wire.Attempt {
			reply := &accumulator{call: call}
			return wire.Attempt{Call: call, Add: reply.add, Done: reply.done}
		})
	}
}

// newCall is the request as it goes out.
func (p *Provider) newCall(req llm.Request) (wire.Call, error) {
	c := wire.Call{
		Client:   p.opts.HTTPClient,
		Provider: Name,
		URL:      p.opts.BaseURL + "/v1/messages",
		Header:   http.Header{"Anthropic-Version": {apiVersion}},
		Key:      p.opts.APIKey,
		Idle:     p.opts.IdleTimeout,
		Now:      p.opts.Now,
		Refusal:  errorParts,
		Kind:     kindOf,
	}
	if p.opts.APIKey != "" {
		c.Header.Set("X-Api-Key", p.opts.APIKey)
	} else if p.opts.BaseURL == DefaultBaseURL {
		return c, p.newError(llm.Auth, "no API key; try: roost auth set anthropic, or set ANTHROPIC_API_KEY")
	}
	if len(p.opts.Betas) > 0 {
		c.Header.Set("Anthropic-Beta", strings.Join(p.opts.Betas, ","))
	}
	body, err := p.buildBody(req)
	c.Body = body
	return c, err
}

func (p *Provider) newError(kind llm.Kind, message string) *llm.Error {
	return wire.RedactError(&llm.Error{Provider: Name, Kind: kind, Message: message}, p.opts.APIKey)
}

// kindOf classifies by the API's own error type, and by status where the type does
// not decide. An error event in a stream has a type and no status.
func kindOf(status int, typ, message string) llm.Kind {
	switch typ {
	case "overloaded_error":
		return llm.Overloaded
	case "rate_limit_error":
		return llm.RateLimited
	case "authentication_error", "permission_error":
		return llm.Auth
	case "request_too_large":
		return llm.ContextOverflow
	case "timeout_error":
		return llm.Server
	case "api_error":
		if status < 400 {
			return llm.Server
		}
	case "invalid_request_error":
		if status < 400 {
			status = http.StatusBadRequest
		}
	case "not_found_error", "billing_error":
		if status < 400 {
			return llm.Invalid
		}
	}
	if status < 400 {
		return llm.Server
	}
	return wire.KindOfStatus(status, message)
}
