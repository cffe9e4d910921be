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
	"time"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// New makes a Provider.
func New(o Options) *Provider {
	p := &Provider{}
	d := wire.Dialect{
		Name:    Name,
		BaseURL: "https://api.openai.com/v1",
		NoKey:   "no API key; try: set OPENAI_API_KEY",
		Idle:    10 * time.Minute, // reasoning models send nothing for minutes, and a local one first loads itself
		Request: p.request,
		Reply:   p.reply,
		Kind:    kindOf,
	}
	if o.Compatible {
		d.Name = Compatible
		d.NoURL = "no address is named; try: --base-url http://127.0.0.1:11434/v1, or set OPENAI_COMPATIBLE_BASE_URL"
	}
	p.Provider = wire.NewProvider(o, d)
	return p
}

func (p *Provider) request(c *wire.Call, req llm.Request) error {
	if p.APIKey != "" {
		c.Header.Set("Authorization", "Bearer "+p.APIKey)
	}
	if p.Compatible {
		c.URL, c.Body = wire.Join(p.BaseURL, "v1", "chat/completions"), p.chatBody(req)
	} else {
		c.URL, c.Body = wire.Join(p.BaseURL, "v1", "responses"), p.responsesBody(req)
	}
	return nil
}

func (p *Provider) reply(call wire.Call, req llm.Request) wire.Attempt {
	if !p.Compatible {
		r := &responsesReply{call: call}
		return wire.Attempt{Call: call, Add: r.add, Done: r.done}
	}
	r := &chatReply{call: call, server: p.Server(req.Model)}
	// Some servers send a finish reason and never [DONE].
	call.Ended = func() bool { return r.stop != "" }
	return wire.Attempt{Call: call, Add: r.add, Done: r.done}
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
