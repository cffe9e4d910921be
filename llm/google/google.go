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
	"net/url"
	"strings"
	"time"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// Name is the provider's name.
const Name = "google"

// Options configure a Provider.
type Options = wire.Options

// Provider implements llm.Provider.
type Provider struct {
	*wire.Provider
	history wire.History
}

var _ llm.Provider = (*Provider)(nil)

// New makes a Provider.
func New(o Options) *Provider {
	p := &Provider{}
	p.Provider = wire.NewProvider(o, wire.Dialect{
		Name:    Name,
		BaseURL: "https://generativelanguage.googleapis.com",
		NoKey:   "no API key; try: set GEMINI_API_KEY",
		Idle:    10 * time.Minute,
		Request: p.request,
		Reply: func(call wire.Call, _ llm.Request) wire.Attempt {
			r := &reply{call: call}
			// The API has no end event: it sends a finish reason, and the stream ends.
			call.Ended = func() bool { return r.stop != "" }
			return wire.Attempt{Call: call, Add: r.add, Done: r.done}
		},
		Kind: kindOf,
	})
	return p
}

func (p *Provider) request(c *wire.Call, req llm.Request) error {
	if p.APIKey != "" {
		c.Header.Set("X-Goog-Api-Key", p.APIKey)
	}
	model := strings.TrimPrefix(req.Model, "models/")
	c.URL = wire.Join(p.BaseURL, "v1beta", "models/"+url.PathEscape(model)+":streamGenerateContent?alt=sse")
	c.Body = p.body(req)
	return nil
}

// Locate implements llm.Locator.
func (p *Provider) Locate(refusal string) (message, block int, ok bool) {
	return p.history.Locate(refusal, "contents", 0)
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
