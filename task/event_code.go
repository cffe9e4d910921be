package task

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// Encode returns an event's line in the journal.
func Encode(e Event) (json.RawMessage, error) {
	switch e := e.(type) {
	case Unknown:
		return e.Raw, nil
	case interface {
		encode() (json.RawMessage, error)
	}:
		return e.encode()
	}
	body, err := encodePlain(e)
	if err != nil {
		return nil, err
	}
	return withType(e.EventType(), body), nil
}

// Decode reads an event. An unknown type is not an error.
func Decode(raw json.RawMessage) (Event, error) {
	name := leadingType(raw)
	decode, known := decoders[name]
	if !known {
		if err := take(raw, "type", &name); err != nil {
			return nil, fmt.Errorf("decode event: %w", err)
		}
		if decode, known = decoders[name]; !known {
			return Unknown{Type: name, Raw: raw}, nil
		}
	}
	e, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return e, nil
}

// leadingType returns the type from the place where withType puts it; "" when the type has another place or contains
// escapes. It saves reading a large event twice only to learn its type.
func leadingType(raw []byte) string {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"`))
	name, _, ended := bytes.Cut(rest[:min(len(rest), 64)], []byte{'"'})
	if !ok || !ended {
		return ""
	}
	return string(name)
}

var decoders = map[string]decoder{
	"message.added": decodeMessageAdded, "message.changed": decodeMessageChanged,
	"message.text_saved": decodeTextSaved, "tool.finished": decodeToolFinished,
}

func init() {
	for _, k := range []kind{
		of[Created](), of[Adopted](), of[Forked](), of[Received](), of[Changed](), of[EpochOpened](),
		of[ForeignImported](), of[ForeignRefused](),
		of[RunQueued](), of[RunStarted](), of[RunWaiting](), of[RunEnded](),
		of[TurnStarted](), of[TurnFailed](), of[TurnEnded](), of[UsageChanged](),
		of[MessageHidden](), of[MessageWithheld](),
		of[HistoryTruncated](), of[HistoryCondensed](), of[Rewound](), of[Undone](),
		of[ToolStarted](), of[ToolProcess](), of[FileChanged](), of[SubtaskStarted](), of[SubtaskEnded](),
		of[api.QuestionOpened](), of[api.QuestionClosed](), of[InputQueued](), of[InputTaken](),
		of[CheckpointSaved](), of[RestoreBegun](), of[RestoreEnded](),
	} {
		decoders[k.name] = k.decode
	}
}

// kind is a type of events: its name in JSON, and the function that decodes one.
type kind struct {
	name   string
	decode decoder
}

type decoder = func(json.RawMessage) (Event, error)

func of[E Event]() kind {
	var e E
	return kind{e.EventType(), into[E]}
}

func into[E Event](raw json.RawMessage) (Event, error) {
	var e E
	err := json.Unmarshal(raw, &e)
	return e, err
}

// MessageAdded appends a message to one history, or puts it before one that is
// visible there.
type MessageAdded struct {
	History History `json:"history"`
	Message uint64  `json:"message"`          // its number in this task: both histories count together, never reused
	Before  uint64  `json:"before,omitempty"` // the message that comes after it; 0 = it is at the end
	Body
}

// MessageChanged gives a message its new content, in its old place.
type MessageChanged struct {
	Message uint64 `json:"message"`
	Body
}

// MessageTextSaved saves a piece of streamed text: the piece is appended to the message's text. The final
// MessageChanged refers to the saved text instead of repeating it.
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

// EventType returns the name in the journal and in the event stream.
func (MessageAdded) EventType() string     { return "message.added" }
func (MessageChanged) EventType() string   { return "message.changed" }
func (MessageTextSaved) EventType() string { return "message.text_saved" }
func (MessageHidden) EventType() string    { return "message.hidden" }

func (e MessageAdded) encode() (json.RawMessage, error) {
	content, err := e.Body.members(e.Message)
	return esjson.ObjectOf(append([]any{"type", e.EventType(), "history", string(e.History),
		"message", int64(e.Message), "before", esjson.Given(int64(e.Before))}, content...)...), err
}

func (e MessageChanged) encode() (json.RawMessage, error) {
	content, err := e.Body.members(e.Message)
	return esjson.ObjectOf(append([]any{"type", e.EventType(), "message", int64(e.Message)}, content...)...), err
}

func (e MessageTextSaved) encode() (json.RawMessage, error) {
	return esjson.ObjectOf("type", e.EventType(), "message", int64(e.Message), "text", e.Text), nil
}

// encode keeps the bytes of the result block unchanged.
func (e ToolFinished) encode() (json.RawMessage, error) {
	result := e.Result
	e.Result = json.RawMessage("null")
	body, err := encodePlain(e)
	if err != nil {
		return nil, err
	}
	if len(result) > 0 {
		body = esjson.Set(body, "result", result)
	}
	return withType(e.EventType(), body), nil
}

// members returns the content in the form of an event's members.
func (b Body) members(message uint64) ([]any, error) {
	switch {
	case len(b.Raw) > 0:
		return []any{"raw", b.Raw}, nil
	case b.Blob != "":
		return []any{"blob", b.Blob}, nil
	case len(b.Compose) > 0:
		return []any{"compose", esjson.List(api.Each(b.Compose, Piece.encode))}, nil
	}
	return nil, fmt.Errorf("encode message %d: it has no content", message)
}

func (p Piece) encode() []byte {
	switch {
	case p.TextOf != 0:
		return esjson.ObjectOf("text_of", int64(p.TextOf))
	case p.Result != "":
		return esjson.ObjectOf("result", p.Result)
	case p.Blob != "":
		return esjson.ObjectOf("blob", p.Blob)
	}
	return esjson.ObjectOf("literal", p.Literal)
}

// The events that carry messages are most of a log's bytes. These decoders read them member by member, without copying
// and without encoding/json, which would also replace the half characters at which a stream may be cut. The bytes in an
// event share memory with its commit.

func decodeMessageAdded(raw json.RawMessage) (Event, error) {
	var e MessageAdded
	var pieces []byte
	err := take(raw, "history", (*string)(&e.History), "message", &e.Message, "before", &e.Before,
		"raw", &e.Raw, "blob", &e.Blob, "compose", &pieces)
	if err == nil && pieces != nil && esjson.TypeOf(pieces) != esjson.TypeArray {
		err = fmt.Errorf("member compose: %.40s is not a list of pieces", pieces)
	}
	for one := range esjson.Array(pieces) {
		var p Piece
		if err == nil {
			err = take(one, "literal", &p.Literal, "blob", &p.Blob, "text_of", &p.TextOf, "result", &p.Result)
		}
		e.Compose = append(e.Compose, p)
	}
	return e, err
}

func decodeMessageChanged(raw json.RawMessage) (Event, error) {
	e, err := decodeMessageAdded(raw)
	added, _ := e.(MessageAdded)
	return MessageChanged{added.Message, added.Body}, err
}

func decodeTextSaved(raw json.RawMessage) (Event, error) {
	var e MessageTextSaved
	err := take(raw, "message", &e.Message, "text", &e.Text)
	return e, err
}

// decodeToolFinished copies the big member unchanged and decodes the others with encoding/json.
func decodeToolFinished(raw json.RawMessage) (Event, error) {
	var e ToolFinished
	var result []byte
	if err := take(raw, "result", &result); err != nil {
		return nil, err
	}
	if result != nil {
		raw = esjson.Set(raw, "result", []byte("null"))
	}
	err := json.Unmarshal(raw, &e)
	e.Result = result
	return e, err
}

// take is esjson.Take for text that must be an object.
func take(raw []byte, places ...any) error {
	if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
		return fmt.Errorf("%.40s is no JSON object", raw)
	}
	_, err := esjson.Take(raw, places...)
	return err
}
