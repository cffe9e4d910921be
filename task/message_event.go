package task

import (
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/esjson"
)

// MessageAdded appends a message to one history, or puts it before one that is
// visible there.
type MessageAdded struct {
	History History `json:"history"`
	Message uint64  `json:"message"`          // its number in this task: both histories count together, never reused
	Before  uint64  `json:"before,omitempty"` // the message that follows it; 0 = at the end
	Body
}

// MessageChanged gives a message its new content, in its old place.
type MessageChanged struct {
	Message uint64 `json:"message"`
	Body
}

// MessageTextSaved checkpoints streamed text: it is appended to the message's
// text. The final MessageChanged refers to it instead of repeating it.
type MessageTextSaved struct {
	Message uint64 `json:"message"`
	Text    string `json:"text"`
}

// MessageHidden takes messages out of their histories. Their bytes stay.
type MessageHidden struct {
	Messages []uint64 `json:"messages"`
	Reason   string   `json:"reason"`
}

// Body is a message's JSON: spelled out, in a blob, or composed of pieces that
// the journal already holds. Exactly one of Raw, Blob and Compose is set.
type Body struct {
	Raw     json.RawMessage `json:"raw,omitempty"`
	Blob    string          `json:"blob,omitempty"`
	Compose []Piece         `json:"compose,omitempty"`
}

// Piece is a part of a composed message: literal JSON text, spelled out or in a blob, the
// saved text of a message as a JSON string, or a finished call's tool_result block.
type Piece struct {
	Literal string `json:"literal,omitempty"`
	Blob    string `json:"blob,omitempty"`
	TextOf  uint64 `json:"text_of,omitempty"`
	Result  string `json:"result,omitempty"`
}

// EventType is the name in the journal and in the event stream.
func (MessageAdded) EventType() string     { return "message.added" }
func (MessageChanged) EventType() string   { return "message.changed" }
func (MessageTextSaved) EventType() string { return "message.text_saved" }
func (MessageHidden) EventType() string    { return "message.hidden" }

func (e MessageAdded) encode() (json.RawMessage, error) {
	var o esjson.Object
	o.Grow(e.Body.room())
	o.String("type", e.EventType())
	o.String("history", string(e.History))
	o.Int("message", int64(e.Message))
	if e.Before != 0 {
		o.Int("before", int64(e.Before))
	}
	if err := e.Body.encodeInto(&o); err != nil {
		return nil, fmt.Errorf("encode message %d: %w", e.Message, err)
	}
	return o.Take(), nil
}

func (e MessageChanged) encode() (json.RawMessage, error) {
	var o esjson.Object
	o.Grow(e.Body.room())
	o.String("type", e.EventType())
	o.Int("message", int64(e.Message))
	if err := e.Body.encodeInto(&o); err != nil {
		return nil, fmt.Errorf("encode message %d: %w", e.Message, err)
	}
	return o.Take(), nil
}

func (e MessageTextSaved) encode() (json.RawMessage, error) {
	var o esjson.Object
	o.String("type", e.EventType())
	o.Int("message", int64(e.Message))
	o.String("text", e.Text)
	return o.Bytes(), nil
}

// encode keeps the result block's own bytes.
func (e ToolFinished) encode() (json.RawMessage, error) {
	result := e.Result
	e.Result = json.RawMessage("null")
	body, err := encodePlain(e)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.EventType(), err)
	}
	if len(result) == 0 {
		return withType(e.EventType(), body), nil
	}
	const placeholder = "null}" // result is the last member
	body = body[1 : len(body)-len(placeholder)]
	out := make([]byte, 0, len(e.EventType())+len(body)+len(result)+16)
	out = append(append(append(out, `{"type":"`...), e.EventType()...), `",`...)
	out = append(append(out, body...), result...)
	return append(out, '}'), nil
}

// room is about what an event with the body takes: it is written once and kept.
func (b Body) room() int {
	n := 96 + len(b.Raw)
	for _, p := range b.Compose {
		n += 32 + len(p.Literal) + len(p.Literal)/8
	}
	return n
}

func (b Body) encodeInto(o *esjson.Object) error {
	switch {
	case len(b.Raw) > 0:
		o.Raw("raw", b.Raw)
	case b.Blob != "":
		o.String("blob", b.Blob)
	case len(b.Compose) > 0:
		pieces, err := encodePieces(b.Compose)
		if err != nil {
			return err
		}
		o.Raw("compose", pieces)
	default:
		return fmt.Errorf("a message needs content")
	}
	return nil
}

func encodePieces(pieces []Piece) ([]byte, error) {
	out := []byte{'['}
	for i, p := range pieces {
		if i > 0 {
			out = append(out, ',')
		}
		var o esjson.Object
		switch {
		case p.TextOf != 0:
			o.Int("text_of", int64(p.TextOf))
		case p.Result != "":
			o.String("result", p.Result)
		case p.Blob != "":
			o.String("blob", p.Blob)
		default:
			o.String("literal", p.Literal)
		}
		out = append(out, o.Bytes()...)
	}
	return append(out, ']'), nil
}
