package anthropic

import (
	"bytes"
	"strconv"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/llm/wire"
)

const (
	// fallbackMaxTokens is for models the catalogue does not know: every model of
	// the Messages API takes it.
	fallbackMaxTokens = 8192

	minBudget = 1024 // the API's own lower limit
)

// body builds the request body. It neither copies nor decodes the messages; it scans
// only the last two user messages, for the position of the cache mark. Content must
// be valid JSON and valid for sending.
func (p *Provider) body(req llm.Request) *wire.Body {
	b := append([]byte(`{"model":`), esjson.Quote(nil, req.Model)...)
	maxTokens := maxTokens(req)
	b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(maxTokens), 10)
	b = append(b, `,"stream":true`...)
	b, budget := p.appendEffort(b, req.Model, maxTokens)
	b = p.appendThinking(b, req, maxTokens, budget)
	if req.System != "" {
		b = esjson.Quote(append(b, `,"system":[{"type":"text","text":`...), req.System)
		b = append(b, `,`+mark+`}]`...)
	}
	b = appendTools(b, req.Tools)
	b = append(b, `,"messages":[`...)
	out := wire.NewBody(2*len(req.Messages) + 2 + 4)
	out.Add(b)
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
	return out
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

// maxTokens is how long a reply may get. The API counts the requested length towards the
// context window from the start: with all that a model can write, a third of a
// small window would be closed to the history. Roo also leaves a fifth of the window
// for a reply.
func maxTokens(req llm.Request) int {
	m, ok := catalogue.Find(Name, req.Model)
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

// appendThinking asks for thinking: of a model that decides by itself whether to think, which may skip it anywhere, or
// with a budget, which counts towards the output limit.
func (p *Provider) appendThinking(b []byte, req llm.Request, maxTokens, budget int) []byte {
	if p.Effort != "" && p.Effort != "none" && decidesThinking(req.Model) {
		return append(b, `,"thinking":{"type":"adaptive"}`...)
	}
	if budget <= 0 || max(budget, minBudget) >= maxTokens || !mayThink(req.Messages) {
		return b
	}
	b = strconv.AppendInt(append(b, `,"thinking":{"type":"enabled","budget_tokens":`...), int64(max(budget, minBudget)), 10)
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
	return first < 0 || thinks(ms[first].Content)
}

// thinks reports whether a message begins with thinking.
func thinks(content []byte) bool {
	for block := range esjson.Array(content) {
		return isType(block, "thinking") || isType(block, "redacted_thinking")
	}
	return false
}

func appendTools(b []byte, ts []llm.ToolSpec) []byte {
	left := len(ts)
	return wire.List(b, `,"tools":[`, ts, func(b []byte, t llm.ToolSpec) []byte {
		b = esjson.Quote(append(b, `{"name":`...), t.Name)
		if t.Description != "" {
			b = esjson.Quote(append(b, `,"description":`...), t.Description)
		}
		b = append(b, `,"input_schema":`...)
		if len(t.Schema) == 0 {
			b = append(b, `{"type":"object"}`...)
		}
		b = append(b, t.Schema...)
		if left--; left == 0 { // the last one
			b = append(b, `,`+mark...)
		}
		return append(b, '}')
	}, `]`)
}

// mark is the member of a block that asks for a place in the cache.
const mark = `"cache_control":{"type":"ephemeral"}`

// withMark gives content with a cache mark on its last block that can carry one, in pieces:
// content is not copied. A string becomes an array of one text block, because a string
// cannot. Everything else keeps its bytes.
func withMark(content []byte) [][]byte {
	trimmed := bytes.TrimSpace(content)
	if len(trimmed) < 2 {
		return [][]byte{content}
	}
	if trimmed[0] == '"' {
		if len(trimmed) == 2 { // an empty text cannot be marked
			return [][]byte{content}
		}
		return [][]byte{beforeString, trimmed, afterString}
	}
	end := markPosition(trimmed)
	if end < 0 {
		return [][]byte{content}
	}
	return [][]byte{trimmed[:end], markMember, trimmed[end:]}
}

var (
	beforeString = []byte(`[{"type":"text","text":`)
	afterString  = []byte(`,` + mark + `}]`)
	markMember   = []byte(`,` + mark)
)

// markPosition returns the index of the closing brace of the last block that can be
// marked, or -1. Empty texts and thinking cannot be; a block that has a mark
// already needs none.
func markPosition(array []byte) int {
	position, end := -1, 0
	for block := range esjson.Array(array) {
		end += bytes.Index(array[end:], block) + len(block)
		_, marked := esjson.Get(block, "cache_control")
		text, _ := esjson.GetString(block, "text")
		switch {
		case len(block) < 2 || block[0] != '{' || len(bytes.TrimSpace(block[1:len(block)-1])) == 0:
		case marked:
			position = -1
		case isType(block, "thinking"), isType(block, "redacted_thinking"):
		case isType(block, "text") && text == "":
		default:
			position = end - 1
		}
	}
	return position
}

func isType(block []byte, want string) bool {
	return esjson.TextOf(block, "type") == want
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
