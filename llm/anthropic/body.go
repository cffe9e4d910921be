package anthropic

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/llm/wire"
)

const (
	mark = `"cache_control":{"type":"ephemeral"}`

	// fallbackMaxTokens is for models the catalogue does not know: every model of
	// the Messages API takes it.
	fallbackMaxTokens = 8192

	minBudget = 1024 // the API's own lower limit
)

// Body is the request body in one piece, as it goes out.
func (p *Provider) Body(req llm.Request) ([]byte, error) {
	b, err := p.buildBody(req)
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// buildBody builds the request body. It neither copies nor decodes the messages; it scans
// only the last two user messages, for the position of the cache mark. Content must
// be valid JSON and valid for sending. The error is an *llm.Error of Kind Invalid.
func (p *Provider) buildBody(req llm.Request) (*wire.Body, error) {
	model := req.Model
	if model == "" {
		model = p.opts.Model
	}
	if model == "" {
		return nil, p.newError(llm.Invalid, "no model was named; try: --model claude-sonnet-5-5")
	}
	if problem := wire.CheckMessages(req.Messages); problem != "" {
		return nil, p.newError(llm.Invalid, problem)
	}
	b := append(make([]byte, 0, 256), `{"model":`...)
	b = esjson.Quote(b, model)
	maxTokens := maxTokens(req, model)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(maxTokens), 10)
	b = append(b, `,"stream":true`...)
	b, budget := p.appendEffort(b, model, maxTokens)
	b = p.appendThinking(b, req, model, maxTokens, max(budget, p.opts.ThinkingBudget))
	out := wire.NewBody(2*len(req.Messages) + 2 + 4)
	out.Add(b)
	out.Add(p.preamble(req))
	marked := markedMessages(req.Messages)
	for i, m := range req.Messages {
		before := between[m.Role]
		if i == 0 {
			before = before[len(endOfMessage):]
		}
		out.Add(before)
		if i == marked[0] || i == marked[1] {
			for _, piece := range withMark(m.Content) {
				out.Add(piece)
			}
		} else {
			out.Add(m.Content)
		}
	}
	out.Add(endOfBody)
	return out, nil
}

// The JSON around each message, by role.
const endOfMessage = `},`

var (
	between = map[string][]byte{
		"user":      []byte(endOfMessage + `{"role":"user","content":`),
		"assistant": []byte(endOfMessage + `{"role":"assistant","content":`),
	}
	endOfBody = []byte(`}]}`)
)

// preamble is the part of a request between its parameters and its messages: system prompt
// and tools. It stays the same while mode and tools do, so it is built once.
type preamble struct {
	system string
	tools  []llm.ToolSpec
	json   []byte
}

func (s *preamble) matches(req llm.Request) bool {
	return s != nil && s.system == req.System && slices.EqualFunc(s.tools, req.Tools, func(a, b llm.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
	})
}

// preamble returns the bytes, which the caller must not change.
func (p *Provider) preamble(req llm.Request) []byte {
	if s := p.last.Load(); s.matches(req) {
		return s.json
	}
	b := make([]byte, 0, preambleSize(req))
	if req.System != "" {
		b = append(b, `,"system":[{"type":"text","text":`...)
		b = esjson.Quote(b, req.System)
		b = append(b, `,`+mark+`}]`...)
	}
	b = appendTools(b, req.Tools)
	b = append(b, `,"messages":[`...)
	p.last.Store(&preamble{req.System, req.Tools, b})
	return b
}

// preambleSize is the capacity to reserve, so that one allocation is enough except for
// system prompts full of characters that need escapes.
func preambleSize(req llm.Request) int {
	n := 256 + len(req.System) + len(req.System)/8
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Description)/8 + len(t.Schema) + 64
	}
	return n
}

// maxTokens is how long a reply may get. The API counts the requested length towards the
// context window from the start: with all that a model can write, a third of a
// small window would be closed to the history. Roo also leaves a fifth of the window
// for a reply.
func maxTokens(req llm.Request, model string) int {
	m, ok := catalogue.Find(Name, model)
	known := ok && m.MaxOutput > 0
	switch {
	case req.MaxTokens > 0 && known:
		return min(req.MaxTokens, m.MaxOutput) // more is refused
	case req.MaxTokens > 0:
		return req.MaxTokens
	case known:
		return min(m.MaxOutput, m.Context/5)
	}
	return fallbackMaxTokens
}

func (p *Provider) appendThinking(b []byte, req llm.Request, model string, maxTokens, budget int) []byte {
	adaptive := p.opts.AdaptiveThinking || p.opts.Effort != "" && p.opts.Effort != "none" && decidesThinking(model)
	if adaptive { // a model that decides by itself whether to think may skip it anywhere
		return append(b, `,"thinking":{"type":"adaptive"}`...)
	}
	if budget <= 0 || !mayThink(req.Messages) {
		return b
	}
	budget = max(budget, minBudget)
	if budget >= maxTokens { // the budget counts towards the output limit
		budget = maxTokens * 3 / 4
	}
	if budget < minBudget {
		return b
	}
	b = append(b, `,"thinking":{"type":"enabled","budget_tokens":`...)
	b = strconv.AppendInt(b, int64(budget), 10)
	return append(b, '}')
}

// mayThink reports whether thinking can be requested with a budget. To the API a tool loop is
// one turn, and its first message decides whether the whole turn thinks. A message in
// the middle of it may have skipped thinking.
func mayThink(ms []llm.Message) bool {
	first := -1
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role == "assistant" {
			first = i
		} else if !bytes.Contains(ms[i].Content, []byte(`"tool_result"`)) {
			break
		}
	}
	return first < 0 || bytes.Contains(blockHead(firstBlock(ms[first].Content)), []byte(`thinking"`))
}

// blockHead is the beginning of a block: every writer puts the type there.
func blockHead(block []byte) []byte { return block[:min(len(block), 64)] }

func appendTools(b []byte, ts []llm.ToolSpec) []byte {
	for i, t := range ts {
		if i == 0 {
			b = append(b, `,"tools":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = esjson.Quote(b, t.Name)
		if t.Description != "" {
			b = append(b, `,"description":`...)
			b = esjson.Quote(b, t.Description)
		}
		b = append(b, `,"input_schema":`...)
		if len(t.Schema) == 0 {
			b = append(b, `{"type":"object"}`...)
		} else {
			b = append(b, t.Schema...)
		}
		if i == len(ts)-1 {
			b = append(b, `,`+mark+`}]`...)
		} else {
			b = append(b, '}')
		}
	}
	return b
}

// markedMessages returns the indexes of the last two user messages, -1 for none.
// The second one is the end of what the turn before sent: it makes the cache hit
// even when the new turn adds more blocks than the API looks back over.
func markedMessages(ms []llm.Message) [2]int {
	out, n := [2]int{-1, -1}, 0
	for i := len(ms) - 1; i >= 0 && n < 2; i-- {
		if ms[i].Role == "user" {
			out[n] = i
			n++
		}
	}
	return out
}
