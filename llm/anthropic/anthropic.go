// Package anthropic speaks Anthropic's Messages API.
//
// The official SDK carries the bytes; the body is ours. Stored content blocks are
// spliced into it as they are, because the SDK's typed parameters rename, reorder
// and sometimes drop what they do not know, and a changed byte costs the prompt
// cache and may void a thinking signature. Same request, same bytes.
//
// What is added to the caller's messages is at most four cache marks: on the
// system prompt, on the last tool and on the last block of the last two user
// messages, so that each turn reads what the turn before wrote.
//
// Replies are put into Roo's stored order (thinking, one text, other blocks, tool
// calls). Text citations are not kept, and where text stood between calls is not
// kept either.
//
// Attempts that fail before anything came are repeated here with back-off, each
// failure shown as llm.Retrying before the wait. After the first chunk a failure
// ends the stream: only the caller knows what to do with half a reply.
package anthropic

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// Name is the provider's name.
const Name = "anthropic"

// DefaultBaseURL is Anthropic's own address.
const DefaultBaseURL = "https://api.anthropic.com"

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
	opts   Options
	client sdk.Client
	last   atomic.Pointer[setting] // of the newest request
}

var _ llm.Provider = (*Provider)(nil)

// New makes a Provider. It never fails: a missing key is reported by the first
// Stream as an llm.Error of Kind Auth, so that listing and showing work without.
func New(o Options) *Provider {
	o.APIKey = strings.TrimSpace(o.APIKey)
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	// Both spellings are found in the wild; the SDK adds the v1 itself.
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1")
	if o.IdleTimeout == 0 {
		o.IdleTimeout = DefaultIdle
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: wire.NewTransport(), CheckRedirect: wire.Stay}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	opts := []option.RequestOption{
		// Keys come from the caller only: the SDK would otherwise also read profile
		// files and half a dozen variables.
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
		option.WithBaseURL(o.BaseURL + "/"),
		option.WithHTTPClient(o.HTTPClient),
		option.WithMaxRetries(0), // ours tell the caller before they wait
	}
	if o.APIKey != "" {
		opts = append(opts, option.WithAPIKey(o.APIKey))
	}
	if len(o.Betas) > 0 {
		opts = append(opts, option.WithHeader("anthropic-beta", strings.Join(o.Betas, ",")))
	}
	return &Provider{opts: o, client: sdk.NewClient(opts...)}
}

// send makes the SDK send the body. The SDK takes bodies of unknown length or in
// one piece only, so it is put in behind it.
func send(body *wire.Body) option.RequestOption {
	return option.WithMiddleware(func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		req.Header.Set("Content-Type", "application/json")
		req.ContentLength = body.Size()
		req.Body = body.Reader()
		// A connection that was kept may turn out to be closed: the transport then
		// sends the body again by itself.
		req.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
		return next(req)
	})
}

// Name returns "anthropic".
func (p *Provider) Name() string { return Name }

// CloseIdle closes connections that are kept for the next turn.
func (p *Provider) CloseIdle() { p.opts.HTTPClient.CloseIdleConnections() }

// String shows where the provider sends, never the key.
func (p *Provider) String() string { return fmt.Sprintf("%s at %s", Name, p.opts.BaseURL) }

// GoString keeps the key out of %#v.
func (p *Provider) GoString() string { return p.String() }

func (p *Provider) fail(kind llm.Kind, status int, message string) *llm.Error {
	return wire.RedactError(&llm.Error{Provider: Name, Kind: kind, Status: status, Message: message}, p.opts.APIKey)
}
