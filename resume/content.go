package resume

import (
	"bytes"

	"github.com/roost-dev/roost/esjson"
)

// What the model is told of a call that was cut.
const (
	textGeneric    = "Task was interrupted before this tool call could be completed."
	textNotStarted = "The task was interrupted before this tool call was started. It had no effect."
	textUnknown    = "The task was interrupted while this tool call ran. Whether it took effect is not known: look before you repeat it."
)

// placeholders are results for the calls of an assistant message that have none
// in answer (nil = there is no answer).
func placeholders(assistant, answer []byte, o Options) [][]byte {
	answered := make(map[string]bool)
	for _, b := range contentBlocks(answer) {
		if member(b, "type") == "tool_result" {
			answered[member(b, "tool_use_id")] = true
		}
	}
	var out [][]byte
	for _, b := range contentBlocks(assistant) {
		if id := member(b, "id"); member(b, "type") == "tool_use" && !answered[id] {
			out = append(out, closing(id, o.Outcomes[id]))
		}
	}
	return out
}

func closing(id string, known Outcome) []byte {
	text := textGeneric
	switch known.State {
	case Finished:
		text = known.Text
	case NotStarted:
		text = textNotStarted
	case Unknown:
		text = textUnknown
	}
	var b esjson.Object
	b.String("type", "tool_result")
	b.String("tool_use_id", id)
	b.String("content", text)
	if known.State == Unknown || known.State == Finished && known.IsError {
		b.Bool("is_error", true)
	}
	return b.Bytes()
}

// contentBlocks are the blocks of a message; a string is one text block.
func contentBlocks(message []byte) [][]byte {
	if esjson.TypeOf(message) != esjson.TypeObject {
		return nil
	}
	content, _ := esjson.Get(message, "content")
	switch esjson.TypeOf(content) {
	case esjson.TypeString:
		s, _ := esjson.Unquote(content)
		return [][]byte{textBlock(s)}
	case esjson.TypeArray:
		var out [][]byte
		for b := range esjson.Array(content) {
			out = append(out, b)
		}
		return out
	}
	return nil
}

func textBlock(s string) []byte {
	var o esjson.Object
	o.String("type", "text")
	o.String("text", s)
	return o.Bytes()
}

func array(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// member is a string member of a value, "" when there is none.
func member(raw []byte, key string) string {
	if esjson.TypeOf(raw) != esjson.TypeObject {
		return ""
	}
	s, _ := esjson.GetString(raw, key)
	return s
}

func isKind(row []byte, typ, kind string) bool {
	return member(row, "type") == typ && member(row, typ) == kind
}

func isResume(row []byte) bool {
	ask := member(row, "ask")
	return ask == AskTask || ask == AskCompleted
}

func isSummary(message []byte) bool {
	if esjson.TypeOf(message) != esjson.TypeObject {
		return false
	}
	v, _ := esjson.GetBool(message, "isSummary")
	return v
}
