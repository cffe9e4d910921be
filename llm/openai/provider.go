package openai

import (
	"cmp"
	"net/url"
	"sync/atomic"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// The providers' names.
const (
	Name       = "openai"            // OpenAI itself
	Compatible = "openai-compatible" // a server that imitates chat completions
)

// Options configure a Provider. OpenAI itself needs a key; many other servers want none.
type Options = wire.Options

// Provider implements llm.Provider.
type Provider struct {
	*wire.Provider
	history wire.History

	thoughtless wire.History                 // the form for models that do not reason
	last        atomic.Pointer[wire.History] // the history that made the last request of Responses
	before      atomic.Int32                 // messages of chat completions before the history
}

var _ llm.Provider = (*Provider)(nil)

// Server implements llm.Addressee. It leaves out the query of the address, which may hold a key.
func (p *Provider) Server(model string) string {
	at := p.BaseURL
	if u, err := url.Parse(at); err == nil {
		at = u.Scheme + "://" + u.Host + u.Path
	}
	return cmp.Or(model, p.Model) + " at " + at
}

// Locate implements llm.Locator.
func (p *Provider) Locate(refusal string) (message, block int, ok bool) {
	if p.Compatible {
		return p.history.Locate(refusal, "messages", int(p.before.Load()))
	}
	if h := p.last.Load(); h != nil {
		return h.Locate(refusal, "input", 0)
	}
	return 0, 0, false
}
