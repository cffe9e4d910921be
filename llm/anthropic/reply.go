package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// done is the complete reply in Roo's stored order.
func (a *accumulator) done() llm.Done {
	d := llm.Done{ID: a.id, Model: a.model, StopReason: a.stop, Usage: a.usage}
	var text []byte
	var other, calls []json.RawMessage
	for _, b := range a.blocks {
		switch b.typ {
		case "thinking":
			d.Blocks = append(d.Blocks, b.thinking())
		case "redacted_thinking":
			d.Blocks = append(d.Blocks, compact(b.raw))
		case "text":
			text = append(text, b.text...)
		case "tool_use":
			raw, malformed := b.toolUse()
			if malformed {
				if d.Malformed == nil {
					d.Malformed = map[string]string{}
				}
				d.Malformed[b.id] = string(b.text)
			}
			calls = append(calls, raw)
		default:
			if raw := b.unknown(); raw != nil {
				other = append(other, raw)
			}
		}
	}
	if len(text) > 0 {
		var o esjson.Object
		o.String("type", "text")
		o.String("text", string(text))
		d.Blocks = append(d.Blocks, o.Bytes())
	}
	d.Blocks = append(append(d.Blocks, other...), calls...)
	return d
}

// thinking is rebuilt from its deltas; text and signature are as they came.
func (b *block) thinking() json.RawMessage {
	var o esjson.Object
	o.String("type", "thinking")
	o.String("thinking", string(b.text))
	o.String("signature", string(b.signature))
	return o.Bytes()
}

// toolUse is the call with its input as the model wrote it, without blanks between
// tokens. Input that is not a JSON object cannot be stored or sent back: it becomes {}
// and malformed is true.
func (b *block) toolUse() (raw json.RawMessage, malformed bool) {
	input := compact(b.text)
	if len(bytes.TrimSpace(b.text)) == 0 {
		// No deltas: the input came with the start, or there is none.
		input = compact(member(b.raw, "input"))
		if len(input) == 0 {
			input = []byte("{}")
		}
	}
	if len(input) == 0 || input[0] != '{' {
		input, malformed = []byte("{}"), true
	}
	var o esjson.Object
	o.String("type", "tool_use")
	o.String("id", b.id)
	o.String("name", b.name)
	o.Raw("input", input)
	return o.Bytes(), malformed
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
