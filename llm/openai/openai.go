// Package openai speaks OpenAI's two APIs: Responses, and chat completions, which
// half of all servers imitate (OpenRouter, Ollama, llama.cpp, LM Studio, vLLM).
//
// The body is built from Roo's stored blocks, so that the same history gives the
// same bytes and a longer one the same bytes in front. Nothing is kept at the
// provider: with Responses the encrypted reasoning comes back with each request.
// Content that an API has no place for moves: an image in a tool's result goes into the
// user message after it.
//
// Replies are put into Roo's stored order (reasoning, one text, tool calls). Plain
// reasoning goes back only to servers that sent it as reasoning_content: DeepSeek and
// others refuse calls without it, other servers refuse calls with it. reasoning_details
// are stored with the message and go back only to servers that sent them. The SDK was
// rejected: it adds 19 MB to the program, and its types lose members that they do not know.
package openai

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// The providers' names.
const (
	Name       = "openai"            // OpenAI itself
	Compatible = "openai-compatible" // a server that imitates chat completions
)

// DefaultBaseURL is OpenAI's own address.
const DefaultBaseURL = "https://api.openai.com/v1"

// DefaultIdle is how long a call may stay silent. Reasoning models send nothing for
// minutes, and a local one first loads itself.
const DefaultIdle = 10 * time.Minute

// Options configure a Provider.
type Options struct {
	Compatible bool   // chat completions at BaseURL; false = OpenAI's Responses
	APIKey     string // needed by OpenAI itself; many servers want none
	BaseURL    string // "" = DefaultBaseURL; with or without the /v1
	Model      string // used when a request names none
	Effort     string // reasoning effort, e.g. "high"; "" = the model's own

	HTTPClient  *http.Client  // nil = one made for large requests
	IdleTimeout time.Duration // 0 = DefaultIdle, negative = none
	Backoff     wire.Backoff
	Now         func() time.Time // for dates in retry-after; nil = time.Now
}

// Provider implements llm.Provider.
type Provider struct {
	opts    Options
	name    string
	history wire.History

	thoughtless wire.History                 // the form for models that do not reason
	last        atomic.Pointer[wire.History] // the history that made the last request of Responses
	before      atomic.Int32                 // messages of chat completions before the history
}

var _ llm.Provider = (*Provider)(nil)

// New makes a Provider. It never fails: what is missing is reported by the first
// Stream.
func New(o Options) *Provider {
	o.APIKey = strings.TrimSpace(o.APIKey)
	name := Name
	if o.Compatible {
		name = Compatible
	} else if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = DefaultIdle
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: wire.NewTransport()}
	}
	return &Provider{opts: o, name: name}
}

// Name returns "openai" or "openai-compatible".
func (p *Provider) Name() string { return p.name }

// CloseIdle closes connections that are kept for the next turn.
func (p *Provider) CloseIdle() { p.opts.HTTPClient.CloseIdleConnections() }

// String shows where the provider sends, never the key.
func (p *Provider) String() string { return fmt.Sprintf("%s at %s", p.name, p.opts.BaseURL) }

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
			if !p.opts.Compatible {
				r := &responsesReply{call: call}
				return wire.Attempt{Call: call, Add: r.add, Done: r.done}
			}
			r := &chatReply{call: call, server: p.Server(req.Model)}
			a := wire.Attempt{Call: call, Add: r.add, Done: r.done}
			// Some servers send a finish reason and never [DONE].
			a.Call.Ended = func() bool { return r.stop != "" }
			return a
		})
	}
}

// Server implements llm.Addressee. It leaves out the query of the address, which may hold a key.
func (p *Provider) Server(model string) string {
	if model == "" {
		model = p.opts.Model
	}
	at := p.opts.BaseURL
	if u, err := url.Parse(at); err == nil {
		at = u.Scheme + "://" + u.Host + u.Path
	}
	return model + " at " + at
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
		Client: p.opts.HTTPClient, Provider: p.name, Header: http.Header{}, Key: p.opts.APIKey,
		Idle: p.opts.IdleTimeout, Now: p.opts.Now, Kind: kindOf,
	}
	refuse := func(kind llm.Kind, message string) (wire.Call, error) {
		return c, &llm.Error{Provider: p.name, Kind: kind, Message: message}
	}
	switch {
	case p.opts.BaseURL == "":
		return refuse(llm.Invalid, "no address is named; try: --base-url http://127.0.0.1:11434/v1, or set OPENAI_COMPATIBLE_BASE_URL")
	case p.opts.APIKey == "" && p.opts.BaseURL == DefaultBaseURL:
		return refuse(llm.Auth, "no API key; try: set OPENAI_API_KEY")
	case req.Model == "":
		return refuse(llm.Invalid, "no model was named; try: --model NAME")
	}
	if problem := wire.CheckMessages(req.Messages); problem != "" {
		return refuse(llm.Invalid, problem)
	}
	if p.opts.APIKey != "" {
		c.Header.Set("Authorization", "Bearer "+p.opts.APIKey)
	}
	if p.opts.Compatible {
		c.URL, c.Body = wire.Join(p.opts.BaseURL, "v1", "chat/completions"), p.chatBody(req)
	} else {
		c.URL, c.Body = wire.Join(p.opts.BaseURL, "v1", "responses"), p.responsesBody(req)
	}
	return c, nil
}

// kindOf classifies an error by its code, and by the status where the code does not decide.
func kindOf(status int, code, message string) llm.Kind {
	switch {
	case code == "context_length_exceeded", status == 0 && wire.IsOverflow(message):
		return llm.ContextOverflow
	case code == "insufficient_quota", code == "invalid_api_key":
		// No wait helps: the account has to be looked at.
		return llm.Auth
	case code == "rate_limit_exceeded":
		return llm.RateLimited
	case code == "server_is_overloaded", code == "slow_down":
		return llm.Overloaded
	case status == 0:
		return llm.Server
	}
	return wire.KindOfStatus(status, message)
}
