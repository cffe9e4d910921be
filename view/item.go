package view

import (
	"github.com/roost-dev/roost/esjson"
)

// Class says what an item is to its reader.
type Class string

// The classes of items.
const (
	User      Class = "user"      // the person's words
	Model     Class = "model"     // the model's words
	Reasoning Class = "reasoning" // the model's thinking
	Tool      Class = "tool"      // a tool call, asked for or done
	Output    Class = "output"    // what a command or a tool gave back
	Question  Class = "question"  // something only the person can decide
	Result    Class = "result"    // the task's result
	Request   Class = "request"   // a request to the model and what it cost
	Note      Class = "note"      // housekeeping: resumed, condensed, checkpoint
	Failure   Class = "failure"   // something went wrong
	Aside     Class = "aside"     // what the program told the model beside the words
	Unknown   Class = "unknown"   // a kind this version does not know
)

// Item is one message, or one block of a message, as a person reads it.
type Item struct {
	Number  int    // place in its visible history, from 1; 0 for parts
	TS      int64  // Unix milliseconds, 0 when the message has none
	Kind    string // "say:text", "ask:tool", "assistant", "tool_use", ...
	Class   Class
	Title   string // one line; may be empty when Body says it all
	Body    string // any number of lines
	Diff    bool   // Body is a unified diff
	Choices []string
	Images  int
	// Pictures says of each image what it is and how large, as far as that is known.
	Pictures []string
	// Data are their data: addresses, "" for one whose bytes are not there; nil when none are.
	Data    []string
	Partial bool // it was being streamed when it was written last
	Call    string
	Parts   []Item // blocks of a model message, or the result of a tool call
}

// UI reads one element of the history that the person sees. number is its place,
// from 1: the first row of Roo's is the person's own.
func UI(raw []byte, number int) Item {
	it := Item{Number: number, Class: Unknown}
	if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
		it.Kind, it.Title, it.Body = "invalid", "not a message", string(raw)
		return it
	}
	it.TS, _ = esjson.GetInt(raw, "ts")
	it.Partial, _ = esjson.GetBool(raw, "partial")
	text, _ := esjson.GetString(raw, "text")
	it.Pictures = pictures(raw)
	it.Images = len(it.Pictures)
	it.Data = whole(addresses(raw))
	typ, _ := esjson.GetString(raw, "type")
	kind, _ := esjson.GetString(raw, typ)
	it.Kind = typ + ":" + kind
	known := false
	switch typ {
	case "ask":
		known = ask(&it, kind, text)
	case "say":
		known = say(&it, kind, text, raw)
	}
	if !known {
		it.Title, it.Body = it.Kind, text
		payload(&it, "", text)
	}
	return it
}

// object reports whether text holds a JSON object; the JSON inside messages need
// not parse.
func object(text string) ([]byte, bool) {
	raw := []byte(text)
	if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
		return nil, false
	}
	return raw, true
}

func str(raw []byte, key string) string { s, _ := esjson.GetString(raw, key); return s }
