package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// done is the complete reply in Roo's stored order.
func (a *accumulator) done() llm.Done {
	var thoughts, other []json.RawMessage
	for _, b := range a.blocks {
		switch b.typ {
		case "thinking":
			thoughts = append(thoughts, b.thinking())
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
	return a.Done(a.Stop, thoughts, other...)
}

// thinking is rebuilt from its deltas; text and signature are as they came.
func (b *block) thinking() json.RawMessage {
	return esjson.ObjectOf("type", "thinking", "thinking", string(b.text), "signature", string(b.signature))
}

// unknown is a block of a kind this package does not know, raw, with the input
// that was streamed for it. A block that is no JSON object is dropped: it could
// never be sent back.
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
	var buf bytes.Buffer
	if len(raw) == 0 || json.Compact(&buf, raw) != nil {
		return nil
	}
	return buf.Bytes()
}

// countUsage takes over the counts of a usage object. message_delta repeats only
// some of them; the others keep their values.
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

// block is one content block as it grows.
type block struct {
	typ       string
	raw       json.RawMessage // as it was started
	text      []byte          // text, thinking or input JSON so far
	signature []byte
}

// accumulator puts a reply together from its events. It has no clock and no
// connection, and takes any bytes: what it cannot read is an error, never a panic.
type accumulator struct {
	wire.Reply
	shown  bool // a chunk was handed out
	blocks []*block
	open   map[int64]*block
}

// add takes one event's data and returns what to show. done reports that the reply is complete.
//
// The counts of message_start are held back until there is something else to show:
// an attempt that fails before that can still be repeated.
func (a *accumulator) add(data []byte) (chunks []llm.Chunk, done bool, err error) {
	chunk, done, err := a.addEvent(data)
	if err != nil || chunk == nil {
		return nil, done, err
	}
	if !a.shown {
		a.shown = true
		chunks = append(chunks, llm.UsageReport{Usage: a.Usage})
	}
	return append(chunks, chunk), done, nil
}

// addEvent takes one event's data. chunk is what to show, nil for nothing.
func (a *accumulator) addEvent(data []byte) (chunk llm.Chunk, done bool, err error) {
	if !esjson.Valid(data) || esjson.TypeOf(data) != esjson.TypeObject {
		return nil, false, wire.UnreadableEvent(Name, data)
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
		if s, _ := esjson.GetString(raw, "text"); s != "" {
			b.text = append(b.text, s...)
			return llm.TextDelta{Text: s}
		}
	case "thinking":
		b.signature = append(b.signature, esjson.TextOf(raw, "signature")...)
		if s, _ := esjson.GetString(raw, "thinking"); s != "" {
			b.text = append(b.text, s...)
			return llm.ReasoningDelta{Text: s}
		}
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
		s, _ := esjson.GetString(delta, "text")
		b.text = append(b.text, s...)
		if s != "" && b.typ == "text" {
			return llm.TextDelta{Text: s}
		}
	case "thinking_delta":
		s, _ := esjson.GetString(delta, "thinking")
		b.text = append(b.text, s...)
		if s != "" && b.typ == "thinking" {
			return llm.ReasoningDelta{Text: s}
		}
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

// SafeID replaces every character that a tool call id may not have by an
// underscore, as Roo does (by UTF-16 unit, so that ids agree).
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
