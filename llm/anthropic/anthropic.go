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
	"strings"
	"time"

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
			reply := &accumulator{call: call}
			return wire.Attempt{Call: call, Add: reply.add, Done: reply.done}
		},
		Refusal: errorParts,
		Kind:    kindOf,
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
