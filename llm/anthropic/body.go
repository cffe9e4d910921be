package anthropic

import (
	"bytes"
	"encoding/json"

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
	maxTokens := maxTokens(req)
	effort, budget := p.effort(req.Model, maxTokens)
	var system []byte
	if req.System != "" {
		system = esjson.List([][]byte{esjson.ObjectOf("type", "text", "text", req.System, "cache_control", ephemeral)})
	}
	tools := wire.Tools(req.Tools, func(i int, t llm.ToolSpec) []byte {
		schema, mark := t.Schema, ephemeral
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		if i < len(req.Tools)-1 {
			mark = nil // only the last one
		}
		return esjson.ObjectOf("name", t.Name, "description", esjson.Given(t.Description), "input_schema", schema,
			"cache_control", mark)
	})
	head := esjson.ObjectOf("model", req.Model, "max_tokens", maxTokens, "stream", true, "output_config", effort,
		"thinking", p.thinking(req, maxTokens, budget), "system", system, "tools", tools)
	out := wire.NewBody(head, "messages", 2*len(req.Messages)+2+4)
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

// thinking asks for thinking: of a model that decides by itself whether to think, which may skip it anywhere, or
// with a budget, which counts towards the output limit. nil = it does not.
func (p *Provider) thinking(req llm.Request, maxTokens, budget int) []byte {
	if p.Effort != "" && p.Effort != "none" && decidesThinking(req.Model) {
		return esjson.ObjectOf("type", "adaptive")
	}
	if budget <= 0 || max(budget, minBudget) >= maxTokens || !mayThink(req.Messages) {
		return nil
	}
	return esjson.ObjectOf("type", "enabled", "budget_tokens", max(budget, minBudget))
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

// mark is the member of a block that asks for a place in the cache.
const mark = `"cache_control":{"type":"ephemeral"}`

var ephemeral = []byte(`{"type":"ephemeral"}`)

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
