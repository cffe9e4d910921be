package roofmt

import (
	"iter"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// UIMessage is the raw JSON of one row of ui_messages.json. Its methods read what they need; nothing is decoded
// before, and unknown fields stay. The bytes must be valid JSON.
type UIMessage []byte

// Text returns the text (WTF-8); ok is false when the row has none, which is not the same as an empty one.
func (m UIMessage) Text() (s string, ok bool) { return esjson.GetString(m, "text") }

// APIMessage is the raw JSON of one element of api_conversation_history.json. The bytes must be valid JSON.
type APIMessage []byte

// Role returns "user" or "assistant"; "" for stand-alone reasoning items of 2025.
func (m APIMessage) Role() string { return text(m, "role") }

// Block is the raw JSON of one content block.
type Block []byte

// Type returns the block's type: text, image, tool_use, tool_result, thinking, ...
func (b Block) Type() string { return text(b, "type") }

// Blocks yields the content blocks. Content that is a plain string comes as one text block made from it.
func (m APIMessage) Blocks() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		content, ok := esjson.Get(m, "content")
		if !ok {
			return
		}
		if esjson.TypeOf(content) == esjson.TypeString {
			var o esjson.Object
			o.String("type", "text")
			o.Raw("text", content)
			yield(o.Bytes())
			return
		}
		for b := range esjson.Array(content) {
			if !yield(b) {
				return
			}
		}
	}
}

// Text returns the texts of the text blocks, joined by newlines.
func (m APIMessage) Text() string {
	var parts []string
	for b := range m.Blocks() {
		if b.Type() == "text" {
			parts = append(parts, text(b, "text"))
		}
	}
	return strings.Join(parts, "\n")
}

// ToolUse is a call the model made.
type ToolUse struct {
	ID, Name string
	Input    []byte // raw JSON; nil when absent
}

// ToolUses returns the calls in their order.
func (m APIMessage) ToolUses() []ToolUse {
	var list []ToolUse
	for b := range m.Blocks() {
		if b.Type() == "tool_use" {
			input, _ := esjson.Get(b, "input")
			list = append(list, ToolUse{text(b, "id"), text(b, "name"), input})
		}
	}
	return list
}

// ToolResults returns the ids of the calls whose results the message holds, in order.
func (m APIMessage) ToolResults() []string {
	var list []string
	for b := range m.Blocks() {
		if b.Type() == "tool_result" {
			list = append(list, text(b, "tool_use_id"))
		}
	}
	return list
}

func text(obj []byte, key string) string {
	s, _ := esjson.GetString(obj, key)
	return s
}

// millis reads ts. Fractions, which no writer produces but a file may hold, are cut off.
func millis(obj []byte) (int64, bool) {
	if n, ok := esjson.GetInt(obj, "ts"); ok {
		return n, true
	}
	f, ok := esjson.GetFloat(obj, "ts")
	if !ok || f < -(1<<62) || f > 1<<62 {
		return 0, false
	}
	return int64(f), true
}
