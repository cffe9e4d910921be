package task

import (
	"encoding/json"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task/facts"
	"github.com/roost-dev/roost/usage"
)

// Raw is the message's JSON as Roo would store it. Do not modify it. Each call inserts the text that was streamed so
// far and does not keep the result, so that reading a state never changes it. A message that is not in memory is read
// from the log each time. State.Raws reads many in one pass and returns an error for what it cannot read; here the
// result is an empty object.
func (m *Message) Raw() json.RawMessage {
	if m.rawAway {
		raws, err := m.state.Raws([]*Message{m})
		if err != nil {
			return json.RawMessage("{}")
		}
		return raws[0]
	}
	return m.shown(bare(withText(m.raw, m.saved), m.lifted))
}

// withText is a message with the text that was streamed since.
func withText(raw json.RawMessage, saved []byte) json.RawMessage {
	if len(saved) == 0 {
		return raw
	}
	have, _ := esjson.GetString(raw, "text")
	return esjson.Set(raw, "text", esjson.Quote(nil, have+string(saved)))
}

// TS is Roo's time stamp in Unix milliseconds, 0 when the message has none.
func (m *Message) TS() int64 { return m.facts.TS }

// Kind is "say:text", "ask:tool" and so on for UI messages, the role for API messages.
func (m *Message) Kind() string { return m.facts.Kind }

// Text is a UI message's text.
func (m *Message) Text() string { s, _ := esjson.GetString(m.Raw(), "text"); return s }

// Summary reports whether the message is a summary of older ones and no reply.
func (m *Message) Summary() bool { return m.facts.Summary }

// Uses are the tool calls that the message makes, in order.
func (m *Message) Uses() []facts.Use { return m.facts.Uses }

// Results are the ids of the calls that the message answers, in order.
func (m *Message) Results() []string { return m.facts.Results }

// Partial reports whether the message was still being streamed when it was
// written last.
func (m *Message) Partial() bool { return m.facts.Partial }

// Spent is what a UI message adds to Roo's sums, if it does.
func (m *Message) Spent() (usage.Spent, bool) {
	if m.facts.Spent == nil {
		return usage.Spent{}, false
	}
	return *m.facts.Spent, true
}

// set gives a message its content.
func (m *Message) set(raw json.RawMessage, body place, pieces [][]place) {
	m.raw, m.saved, m.rawAway = raw, nil, false
	m.body, m.pieces, m.savedFrom = body, pieces, len(m.texts)
	m.lifted = 0
	m.facts = facts.Of(m.History == API, raw, m.state.kinds)
}

// blank replaces a message whose bytes are missing.
func (m *Message) blank() { m.set(nothing, place{}, nil) }

// nothing is one for all: a gap in the log may hold many messages.
var nothing = json.RawMessage("{}")

// save appends streamed text.
func (m *Message) save(text string, at place) {
	m.texts = append(m.texts, at)
	if !m.rawAway {
		m.saved = append(m.saved, text...)
	}
	if !m.textAway {
		m.text = append(m.text, text...)
	}
}

// drop lets go of the bytes.
func (m *Message) drop() {
	m.raw, m.saved, m.text = nil, nil, nil
	m.rawAway, m.textAway = true, true
}

func (m *Message) size() int {
	n := len(m.saved) + len(m.text)
	if len(m.raw) > 0 && &m.raw[0] != &nothing[0] {
		n += len(m.raw)
	}
	return n
}

// toolUse is the input of one tool call of an assistant message.
func toolUse(raw json.RawMessage, id string) (input json.RawMessage) {
	facts.Blocks(raw, func(typ string, block []byte) {
		if got, _ := esjson.GetString(block, "id"); input == nil && typ == "tool_use" && got == id {
			input, _ = esjson.Get(block, "input")
		}
	})
	return input
}

// LastTS is the newest time stamp of the visible histories, 0 when there is none.
func (s *State) LastTS() int64 {
	var last int64
	for _, list := range [][]*Message{s.ui, s.api} {
		if len(list) > 0 {
			last = max(last, list[len(list)-1].TS())
		}
	}
	return last
}
