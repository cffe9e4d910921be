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
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// New makes a Provider.
func New(o Options) *Provider {
	// Users write the address with and without the version.
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1")
	p := &Provider{}
	p.Provider = wire.NewProvider(o, wire.Dialect{
		Name:    Name,
		BaseURL: "https://api.anthropic.com",
		NoKey:   "no API key; try: roost auth set anthropic, or set ANTHROPIC_API_KEY",
		Model:   "claude-sonnet-5-5",
		Idle:    5 * time.Minute, // pings come while a model thinks, so such a silence is a dead connection
		Request: p.request,
		Reply: func(call wire.Call, _ llm.Request) wire.Attempt {
			reply := &accumulator{Reply: wire.Reply{Call: call}}
			return wire.Attempt{Call: call, Add: reply.add, Done: reply.done}
		},
		Kind: kindOf,
	})
	return p
}

func (p *Provider) request(c *wire.Call, req llm.Request) error {
	c.URL = p.BaseURL + "/v1/messages"
	// The version of the Messages API whose events and errors this package reads.
	c.Header.Set("Anthropic-Version", "2023-06-01")
	if p.APIKey != "" {
		c.Header.Set("X-Api-Key", p.APIKey)
	}
	c.Body = p.body(req)
	return nil
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

// Name is the provider's name.
const Name = "anthropic"

// Options configure a Provider. Models without an effort get a share of their output limit as budget for thinking.
// Thinking is left out of a request that continues a tool call made without it: the API refuses that, and such
// histories come from other models or modes.
type Options = wire.Options

// Provider implements llm.Provider.
type Provider struct{ *wire.Provider }

var _ llm.Provider = (*Provider)(nil)

// shares of a reply's tokens that models without an effort of their own may think
// for, in percent.
var shares = map[string]int{"minimal": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 90, "max": 95}

// generationOf is the number behind a Claude's family, 4.5 as 45; ok is false for
// older names and those of other models.
func generationOf(model string) (family string, number int, ok bool) {
	parts := strings.Split(model, "-")
	if len(parts) < 3 || parts[0] != "claude" {
		return "", 0, false
	}
	major, err := strconv.Atoi(parts[2])
	if err != nil || major > 99 {
		return "", 0, false // claude-3-opus, claude-instant-1
	}
	number = major * 10
	if len(parts) > 3 && len(parts[3]) == 1 { // longer ones are dates
		if minor, err := strconv.Atoi(parts[3]); err == nil {
			number += minor
		}
	}
	return parts[1], number, true
}

// takesEffort reports whether a model has an effort parameter, and adapts whether it
// decides itself how long it thinks. Both are documented by model; models newer than
// this list are treated like the newest in it.
func takesEffort(model string) bool {
	family, n, ok := generationOf(model)
	return ok && (n >= 46 || family == "opus" && n == 45)
}

func decidesThinking(model string) bool {
	_, n, ok := generationOf(model)
	return ok && n >= 46
}

// effort requests as much thinking as the user wants: as the model's effort where it has one, else as a budget, 0 for
// none.
func (p *Provider) effort(model string, maxTokens int) (config []byte, budget int) {
	word := p.Effort
	switch {
	case word == "" || word == "none":
		return nil, 0
	case !takesEffort(model):
		return nil, maxTokens * shares[word] / 100
	case word == "minimal":
		word = "low" // the least that there is
	}
	return esjson.ObjectOf("effort", word), 0
}

// Locate implements llm.Locator: messages go out one by one and block by block, so
// that the API's own numbers are ours.
func (p *Provider) Locate(refusal string) (message, block int, ok bool) {
	path, names := wire.Path(refusal, "messages")
	if path == nil {
		return 0, 0, false
	}
	block = -1
	if len(path) > 1 && names[1] == "content" {
		block = path[1]
	}
	return path[0], block, true
}
