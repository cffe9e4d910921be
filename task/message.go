package task

import (
	"encoding/json"

	"github.com/roost-dev/roost/esjson"
)

// Message is one element of a history, at its newest state.
type Message struct {
	ID      uint64
	History History
	Seq     uint64 // the commit that added it
	Hidden  string // why it is out of its history; "" while it is in it
	Missing bool   // its bytes are gone: the blob that held them is missing or damaged
	Foreign bool   // another program wrote it

	raw   json.RawMessage
	saved []byte // streamed text that raw does not hold yet
	text  []byte // all text that was saved for it; what Piece.TextOf means
}

// Raw is the message's JSON as Roo would store it. Do not modify it. Text that
// was streamed so far is put in on each call and not kept, so that reading a
// state never changes it.
func (m *Message) Raw() json.RawMessage {
	if len(m.saved) == 0 {
		return m.raw
	}
	have, _ := esjson.GetString(m.raw, "text")
	return esjson.Set(m.raw, "text", esjson.Quote(nil, have+string(m.saved)))
}

// TS is Roo's time stamp in Unix milliseconds, 0 when the message has none.
func (m *Message) TS() int64 { v, _ := esjson.GetInt(m.Raw(), "ts"); return v }

// Kind is "say:text", "ask:tool" and so on for UI messages, the role for API messages.
func (m *Message) Kind() string {
	raw := m.Raw()
	if m.History == API {
		role, _ := esjson.GetString(raw, "role")
		return role
	}
	typ, _ := esjson.GetString(raw, "type")
	kind, _ := esjson.GetString(raw, typ)
	return typ + ":" + kind
}

// Text is a UI message's text.
func (m *Message) Text() string { s, _ := esjson.GetString(m.Raw(), "text"); return s }

// Partial reports whether the message was still being streamed when it was
// written last.
func (m *Message) Partial() bool { v, _ := esjson.GetBool(m.Raw(), "partial"); return v }

func (m *Message) flag(key string) bool { v, _ := esjson.GetBool(m.Raw(), key); return v }

// toolUses are the tool calls in an assistant message, in order.
func toolUses(raw json.RawMessage) []Call {
	var calls []Call
	eachBlock(raw, func(typ string, block []byte) {
		if typ != "tool_use" {
			return
		}
		id, _ := esjson.GetString(block, "id")
		name, _ := esjson.GetString(block, "name")
		input, _ := esjson.Get(block, "input")
		calls = append(calls, Call{ID: id, Name: name, Input: input})
	})
	return calls
}

// toolResults are the ids of the calls that a user message answers.
func toolResults(raw json.RawMessage) []string {
	var ids []string
	eachBlock(raw, func(typ string, block []byte) {
		if typ == "tool_result" {
			id, _ := esjson.GetString(block, "tool_use_id")
			ids = append(ids, id)
		}
	})
	return ids
}

func eachBlock(raw json.RawMessage, visit func(typ string, block []byte)) {
	content, ok := esjson.Get(raw, "content")
	if !ok || esjson.TypeOf(content) != esjson.TypeArray {
		return
	}
	for block := range esjson.Array(content) {
		typ, _ := esjson.GetString(block, "type")
		visit(typ, block)
	}
}
