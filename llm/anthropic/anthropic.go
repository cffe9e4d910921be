// Package anthropic speaks Anthropic's Messages API.
//
// Stored content blocks are copied into the request body unchanged. The official SDK was rejected: its typed
// parameters rename, reorder and sometimes drop unknown members, and a changed byte costs the prompt cache and may
// void a thinking signature. The same request gives the same bytes.
//
// The package adds at most four cache marks to the caller's messages: on the system prompt, on the last tool and on
// the last block of the last two user messages, so that each turn reads the part of the cache that the turn before
// wrote.
//
// Replies are put into Roo's stored order (thinking, one text, other blocks, tool
// calls). Text citations and the positions of text between calls are lost.
//
// Attempts that fail before the first chunk are repeated here with back-off, each
// failure shown as llm.Retrying before the wait. After the first chunk a failure
// ends the stream: only the caller knows what to do with half a reply.
package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
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
		Address: func(string) string { return p.BaseURL + "/v1/messages" },
		// The version of the Messages API whose events and errors this package reads.
		Header:    map[string]string{"Anthropic-Version": "2023-06-01"},
		KeyHeader: "X-Api-Key",
		Body:      p.body,
		Reply: func(call wire.Call, _ llm.Request) wire.Attempt {
			reply := &accumulator{Reply: wire.Reply{Call: call}}
			call.Ended = func() bool { return reply.Stop != "" } // the end event alone may be cut off
			return wire.Attempt{Call: call, Add: reply.add, Done: reply.done}
		},
		Kind: kindOf,
	})
	return p
}

// kinds are the API's error types that decide the kind whatever the status.
var kinds = map[string]llm.Kind{
	"overloaded_error":     llm.Overloaded,
	"rate_limit_error":     llm.RateLimited,
	"authentication_error": llm.Auth,
	"permission_error":     llm.Auth,
	"request_too_large":    llm.ContextOverflow,
	"timeout_error":        llm.Server,
}

// kindOf classifies by the API's own error type, and by status where the type does
// not decide. An error event in a stream has a type and no status.
func kindOf(status int, typ, message string) llm.Kind {
	switch kind, known := kinds[typ]; {
	case known:
		return kind
	case status >= 400:
		return wire.KindOfStatus(status, message)
	case typ == "invalid_request_error":
		return wire.KindOfStatus(http.StatusBadRequest, message)
	case typ == "not_found_error", typ == "billing_error":
		return llm.Invalid
	case typ == "api_error", status == 0:
		return llm.Server
	}
	return wire.KindOfStatus(status, message)
}

// Name is the provider's name.
const Name = "anthropic"

// Options configure a Provider. Models without an effort get a share of their output limit as budget for thinking. A
// request that continues a tool call made without thinking asks for none: the API would refuse it, and such histories
// come from other models or modes.
type Options = wire.Options

// Provider implements llm.Provider.
type Provider struct{ *wire.Provider }

var _ llm.Provider = (*Provider)(nil)

// shares are the shares of a reply's tokens, in percent, that models without an effort parameter may use for
// thinking.
var shares = map[string]int{"minimal": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 90, "max": 95}

// generationOf returns the number after a Claude's family, 4.5 as 45; ok is false for older names and those of other
// models.
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

// effort returns how much thinking the user wants: the member output_config for a model that takes an effort, else a
// budget of tokens, 0 for none. Anthropic documents for each model whether it takes one, as it does for adaptive
// thinking; a model newer than those known here is treated like the newest known one.
func (p *Provider) effort(model string, maxTokens int) (config []byte, budget int) {
	word := p.Effort
	family, n, known := generationOf(model)
	switch {
	case word == "" || word == "none":
		return nil, 0
	case !known || n < 46 && (family != "opus" || n != 45):
		return nil, maxTokens * shares[word] / 100
	case word == "minimal":
		word = "low" // the least that there is
	}
	return esjson.ObjectOf("effort", word), 0
}

// Locate implements llm.Locator: messages and blocks are sent one by one, so the API numbers them as we do.
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

const (
	// fallbackMaxTokens is for models that the catalogue does not know: every model of the Messages API accepts it.
	fallbackMaxTokens = 8192

	minBudget = 1024 // the API's own lower limit
)

// body builds the request body. It neither copies nor decodes the messages; it scans
// only the last two user messages, for the position of the cache mark. Content must
// be valid JSON and valid for sending.
func (p *Provider) body(req llm.Request) *wire.Body {
	model, version := req.Model, ""
	// What is known of a model goes by its maker's name for it.
	_, req.Model = catalogue.Maker(p.Name(), req.Model)
	stream := []byte("true")
	if p.Door != nil {
		if model, version = "", p.Door.Version; p.Door.Events != nil {
			stream = nil // the address asks for it
		}
	}
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
	head := esjson.ObjectOf("anthropic_version", esjson.Given(version), "model", esjson.Given(model),
		"max_tokens", maxTokens, "stream", stream, "output_config", effort,
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

// maxTokens returns how long a reply may get. The API counts the requested length towards the context window from the
// start: if a model could write all that it is able to, a third of a small window would be closed to the history. Roo
// also leaves a fifth of the window for a reply.
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

// thinking returns the member that asks a model to think: adaptively, if the model decides itself how long it thinks,
// which may be not at all, else with a budget, which counts towards the output limit. nil: the request asks for no
// thinking.
func (p *Provider) thinking(req llm.Request, maxTokens, budget int) []byte {
	if _, n, ok := generationOf(req.Model); p.Effort != "" && p.Effort != "none" && ok && n >= 46 {
		return esjson.ObjectOf("type", "adaptive")
	}
	if budget <= 0 || max(budget, minBudget) >= maxTokens || !mayThink(req.Messages) {
		return nil
	}
	return esjson.ObjectOf("type", "enabled", "budget_tokens", max(budget, minBudget))
}

// mayThink reports whether thinking can be requested with a budget. To the API a tool loop is one turn, and its first
// message decides whether the whole turn thinks. A message in the middle of the loop may have skipped thinking.
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

// withMark returns content with a cache mark on its last block that can carry one, in pieces: content is not copied.
// A string becomes an array of one text block, because a string cannot carry a mark. All other bytes stay.
func withMark(content []byte) [][]byte {
	trimmed := bytes.TrimSpace(content)
	if len(trimmed) < 2 || string(trimmed) == `""` { // an empty text cannot be marked
		return [][]byte{content}
	}
	if trimmed[0] == '"' {
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

// markPosition returns the index of the closing brace of the last block that can be marked, or -1. Empty texts and
// thinking cannot be marked; a block with a mark needs no other one.
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

// markedMessages returns the indexes of the last two user messages, -1 for none. The second one is the end of the
// previous request: it makes the cache hit even when the new turn adds more blocks than the API looks back over.
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

// done returns the complete reply in Roo's stored order.
func (a *accumulator) done() llm.Done {
	var thoughts, other []json.RawMessage
	for _, b := range a.blocks {
		switch b.typ {
		case "thinking":
			text, signature := string(b.text), string(b.signature) // unchanged
			thoughts = append(thoughts, esjson.ObjectOf("type", "thinking", "thinking", text, "signature", signature))
		case "redacted_thinking":
			thoughts = append(thoughts, compact(b.raw))
		case "text":
			a.Text = append(a.Text, b.text...)
		case "tool_use": // behind all others
		default:
			if raw := b.unknown(); raw != nil {
				other = append(other, raw)
			}
		}
	}
	if a.Stop == "model_context_window_exceeded" { // the reply is cut all the same
		a.Stop = "max_tokens"
	}
	return a.Done(a.Stop, thoughts, other...)
}

// unknown returns a block of a kind that this package does not know, raw, with the input that was streamed for it. It
// drops a block that is no JSON object: such a block could never be sent back.
func (b *block) unknown() json.RawMessage {
	raw := compact(b.raw)
	if len(raw) == 0 || raw[0] != '{' || b.typ == "" {
		return nil
	}
	if input := compact(b.text); len(input) > 0 && input[0] == '{' {
		raw = esjson.Set(raw, "input", input)
	}
	return raw
}

// compact removes blanks between tokens; nil when raw is not JSON.
func compact(raw []byte) json.RawMessage {
	out, _ := esjson.Compact(nil, raw) // nil with an error
	return out
}

// countUsage takes the counts of a usage object into t. message_delta repeats only some of them; the others keep
// their values.
func countUsage(t *llm.Usage, usage []byte) (changed bool) {
	before := *t
	for _, count := range []struct {
		key string
		to  *int64
	}{
		{"input_tokens", &t.Input}, {"output_tokens", &t.Output},
		{"cache_read_input_tokens", &t.CacheRead}, {"cache_creation_input_tokens", &t.CacheWrite},
	} {
		if n, ok := esjson.GetInt(usage, count.key); ok && n >= 0 {
			*count.to = n
		}
	}
	return *t != before
}

// block is one content block while it grows.
type block struct {
	typ       string
	raw       json.RawMessage // as it began
	text      []byte          // text, thinking or input JSON so far
	signature []byte
}

// grow adds the text or thinking of an event. It returns the chunk to show, nil unless the block is of that type.
func (b *block) grow(typ string, event []byte) llm.Chunk {
	text := esjson.TextOf(event, typ)
	b.text = append(b.text, text...)
	switch {
	case text == "" || b.typ != typ:
		return nil
	case typ == "thinking":
		return llm.ReasoningDelta{Text: text}
	}
	return llm.TextDelta{Text: text}
}

// accumulator builds a reply from its events. It has no clock and no connection, and accepts any bytes: unreadable
// ones are an error, never a panic.
type accumulator struct {
	wire.Reply
	shown  bool // a chunk was returned
	blocks []*block
	open   map[int64]*block
}

// add adds the data of one event, and returns the chunks to show. done: the reply is complete.
//
// The counts of message_start are held back until a block begins or there is something else to show: an attempt that
// fails before that can still be repeated. A model may think for minutes and show nothing of it, which is paid all the same.
func (a *accumulator) add(data []byte) (chunks []llm.Chunk, done bool, err error) {
	chunk, done, err := a.addEvent(data)
	if err == nil && !a.shown && (chunk != nil || len(a.blocks) > 0) {
		a.shown = true
		chunks = append(chunks, llm.UsageReport{Usage: a.Usage})
	}
	if chunk != nil {
		chunks = append(chunks, chunk)
	}
	return chunks, done, err
}

// addEvent adds the data of one event. chunk is the chunk to show, nil for none.
func (a *accumulator) addEvent(data []byte) (chunk llm.Chunk, done bool, err error) {
	if !esjson.Valid(data) || esjson.TypeOf(data) != esjson.TypeObject {
		return nil, false, wire.UnreadableEvent(a.Call.Name(), data)
	}
	switch esjson.TextOf(data, "type") {
	case "message_start":
		message, _ := esjson.Get(data, "message")
		a.Note(message, "id", "model")
		countUsage(&a.Usage, esjson.Member(message, "usage"))
	case "content_block_start":
		return a.startBlock(esjson.IntOf(data, "index"), esjson.Member(data, "content_block")), false, nil
	case "content_block_delta":
		return a.extendBlock(esjson.IntOf(data, "index"), esjson.Member(data, "delta")), false, nil
	case "content_block_stop":
		delete(a.open, esjson.IntOf(data, "index"))
	case "message_delta":
		a.Stop = cmp.Or(esjson.TextOf(esjson.Member(data, "delta"), "stop_reason"), a.Stop)
		if countUsage(&a.Usage, esjson.Member(data, "usage")) {
			return llm.UsageReport{Usage: a.Usage}, false, nil
		}
	case "message_stop":
		return nil, true, nil
	case "error":
		return nil, false, a.Call.ErrorOf(0, data)
	}
	return nil, false, nil // pings and events of newer versions
}

func (a *accumulator) startBlock(index int64, raw []byte) llm.Chunk {
	typ, _ := esjson.GetString(raw, "type") // a block of another shape is kept raw
	b := &block{typ: typ, raw: append(json.RawMessage(nil), raw...)}
	if a.open == nil {
		a.open = map[int64]*block{}
	}
	a.open[index] = b
	a.blocks = append(a.blocks, b)
	switch typ {
	case "text":
		return b.grow("text", raw)
	case "thinking":
		b.signature = append(b.signature, esjson.TextOf(raw, "signature")...)
		return b.grow("thinking", raw)
	case "tool_use":
		input, _ := esjson.Get(raw, "input")
		return a.Calls.Begin(index, SafeID(esjson.TextOf(raw, "id")), esjson.TextOf(raw, "name"), bytes.Clone(input))
	}
	return nil
}

func (a *accumulator) extendBlock(index int64, delta []byte) llm.Chunk {
	b := a.open[index]
	if b == nil {
		return nil
	}
	switch esjson.TextOf(delta, "type") {
	case "text_delta":
		return b.grow("text", delta)
	case "thinking_delta":
		return b.grow("thinking", delta)
	case "signature_delta":
		b.signature = append(b.signature, esjson.TextOf(delta, "signature")...)
	case "input_json_delta":
		s, _ := esjson.GetString(delta, "partial_json")
		if b.typ == "tool_use" && s != "" {
			return a.Calls.Add(index, "", "", s)
		}
		b.text = append(b.text, s...)
	}
	return nil
}

// SafeID replaces every character that a tool call id must not have by an underscore, as Roo does (for each UTF-16
// unit, so that ids agree).
func SafeID(id string) string {
	var b strings.Builder
	for _, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r > 0xFFFF:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}
