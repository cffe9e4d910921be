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
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
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
			r := &reply{Reply: wire.Reply{Call: call}}
			// The API has no end event: it sends a finish reason, and the stream ends.
			call.Ended = func() bool { return r.Stop != "" }
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

// unsigned is the signature that the API documents for calls that another model made.
const unsigned = `"skip_thought_signature_validator"`

// body builds the request.
func (p *Provider) body(req llm.Request) *wire.Body {
	b := []byte("{")
	if req.System != "" {
		b = append(b, `"systemInstruction":{"parts":[{"text":`...)
		b = append(esjson.Quote(b, req.System), `}]},`...)
	}
	b = wire.List(b, `"tools":[{"functionDeclarations":[`, req.Tools, func(b []byte, t llm.ToolSpec) []byte {
		b = esjson.Quote(append(b, `{"name":`...), t.Name)
		b = esjson.Quote(append(b, `,"description":`...), t.Description)
		if len(t.Schema) > 0 {
			b = append(append(b, `,"parametersJsonSchema":`...), t.Schema...)
		}
		return append(b, '}')
	}, `]}],`)
	b = append(b, `"generationConfig":{`...)
	if req.MaxTokens > 0 {
		b = append(b, `"maxOutputTokens":`...)
		b = append(strconv.AppendInt(b, int64(req.MaxTokens), 10), ',')
	}
	if canThink(req.Model) {
		b = append(b, `"thinkingConfig":{"includeThoughts":true`...)
		b = append(appendEffort(b, p.Effort, req.Model), '}')
	}
	b = append([]byte(strings.TrimSuffix(string(b), ",")), `},"contents":[`...)
	body := wire.NewBody(2*len(req.Messages) + 2)
	body.Add(b)
	names := map[string]string{} // of all calls, by id: a result names its tool
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			for _, b := range wire.Blocks(m.Content) {
				if b.Type == "tool_use" {
					names[string(b.ID)] = string(b.Name)
				}
			}
		}
	}
	p.history.Add(body, req.Messages, func(m llm.Message) []byte { return translateMessage(m, names, needsSignature(req.Model)) })
	body.Add([]byte(`]}`))
	return body
}

// generationOf is the number in a model's name, 0 when there is none: gemini-2.5-pro
// is 2.
func generationOf(model string) int {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(model, "models/"), "gemini-")
	if !ok {
		return 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, _ := strconv.Atoi(rest[:end])
	return n
}

// canThink reports whether a model can show its thoughts; older models refuse requests
// for them.
func canThink(model string) bool {
	return generationOf(model) >= 3 || strings.Contains(model, "gemini-2.5")
}

// budgets are the tokens that models of generation 2.5 may think for, as Google
// documents them for the effort levels of other APIs.
var budgets = map[string]int{"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}

// appendEffort adds how much to think: a level from generation 3 on, a budget before it.
func appendEffort(b []byte, word, model string) []byte {
	budget, known := budgets[word]
	if !known {
		return b
	}
	if generationOf(model) < 3 {
		if strings.Contains(model, "pro") {
			budget = max(budget, 128) // it cannot be kept from thinking
		}
		return strconv.AppendInt(append(b, `,"thinkingBudget":`...), int64(budget), 10)
	}
	switch word {
	case "none", "minimal":
		word = "low" // thinking cannot be switched off, and the least level is not everywhere
	case "xhigh", "max":
		word = "high"
	}
	return append(append(append(b, `,"thinkingLevel":"`...), strings.ToUpper(word)...), '"')
}

// needsSignature reports whether a model refuses a call without a signature.
func needsSignature(model string) bool { return generationOf(model) >= 3 }

// translateMessage is one stored message as Google writes it.
func translateMessage(m llm.Message, names map[string]string, signed bool) []byte {
	role := "user"
	if m.Role == "assistant" {
		role = "model"
	}
	out := append([]byte(`{"role":"`), role...)
	out = append(out, `","parts":[`...)
	head := len(out)
	part := func(texts ...[]byte) {
		if len(out) > head {
			out = append(out, ',')
		}
		for _, t := range texts {
			out = append(out, t...)
		}
	}
	blocks := wire.Blocks(m.Content)
	var signature []byte
	last := -1 // the text that carries the signature of a reply without calls
	for i, b := range blocks {
		switch b.Type {
		case "thoughtSignature":
			signature = b.Signature
		case "text":
			last = i
		case "tool_use":
			last = len(blocks)
		}
	}
	var pictures []wire.Block // of results: they go after all results
	behind := func() {
		for _, image := range pictures {
			part(inlineData(image))
		}
		pictures = nil
	}
	for i, b := range blocks {
		if b.Type != "tool_result" {
			behind()
		}
		switch b.Type {
		case "text":
			if i == last && signature != nil {
				part([]byte(`{"text":`), b.Text, []byte(`,"thoughtSignature":`), signature, []byte(`}`))
			} else {
				part([]byte(`{"text":`), b.Text, []byte(`}`))
			}
		case "image":
			part(inlineData(b))
		case "tool_use":
			part([]byte(`{"functionCall":{"id":`), b.ID, []byte(`,"name":`), b.Name, []byte(`,"args":`), b.Object(), []byte(`}`))
			if signature == nil && signed {
				signature = []byte(unsigned)
			}
			if signature != nil {
				out = append(append(out, `,"thoughtSignature":`...), signature...)
			}
			signature, signed = nil, false // the first call of a reply carries it
			out = append(out, '}')
		case "tool_result":
			text, images := b.Result()
			key := `"output"`
			if b.IsError {
				key = `"error"`
			}
			name := names[string(b.ID)]
			if name == "" {
				name = `"unknown_tool"`
			}
			part([]byte(`{"functionResponse":{"id":`), b.ID, []byte(`,"name":`+name+`,"response":{`+key+`:`), text, []byte(`}}}`))
			pictures = append(pictures, images...)
		}
	}
	behind()
	if len(out) == head {
		return nil
	}
	return append(out, `]}`...)
}

func inlineData(b wire.Block) []byte {
	out := append([]byte(`{"inlineData":{"mimeType":`), esjson.Quote(nil, b.Media)...)
	out = append(out, `,"data":`...)
	return append(esjson.Quote(out, b.Data), `}}`...)
}
