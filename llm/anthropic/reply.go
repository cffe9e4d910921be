package anthropic

import (
	"bytes"
	"encoding/json"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// done is the complete reply in Roo's stored order.
func (a *accumulator) done() llm.Done {
	d := llm.Done{ID: a.id, Model: a.model, StopReason: a.stop, Usage: a.usage}
	var text []byte
	var other []json.RawMessage
	for _, b := range a.blocks {
		switch b.typ {
		case "thinking":
			d.Blocks = append(d.Blocks, b.thinking())
		case "redacted_thinking":
			d.Blocks = append(d.Blocks, compact(b.raw))
		case "text":
			text = append(text, b.text...)
		case "tool_use": // behind all others
		default:
			if raw := b.unknown(); raw != nil {
				other = append(other, raw)
			}
		}
	}
	if len(text) > 0 {
		d.Blocks = append(d.Blocks, wire.TextBlock(string(text)))
	}
	d.Blocks = append(d.Blocks, other...)
	a.calls.Finish(&d)
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
