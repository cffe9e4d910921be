package term

import (
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// fields are the members of all events that a display reads. One struct serves all types: the payloads are small and
// their names do not clash.
type fields struct {
	At         int64 // Unix milliseconds; 0 = not known
	Message    uint64
	History    string
	Content    []byte // the message itself
	Text       string
	Offset     int64
	Call       string
	Name       string
	Outcome    string
	Exit       *int64 // nil when there is none
	Result     []byte
	Approval   []byte
	Input      int64 // tokens, like the next three
	CacheRead  int64
	CacheWrite int64
	Output     int64
	Cost       *int64 // micro-dollars; nil when unknown
	Reason     string
	Child      string
	Mode       string
	Title      string
	Kind       string // of a notice
}

// readFields reads an event, and leaves out members of a wrong kind. It returns false when there is nothing to show:
// the event is not an object, or is about a message of the model's history.
func readFields(data []byte) (f fields, ok bool) {
	if esjson.TypeOf(data) != esjson.TypeObject || !esjson.Valid(data) {
		return f, false
	}
	_, _ = esjson.Take(data, "message", &f.Message, "history", &f.History, "content", &f.Content, "text", &f.Text,
		"offset", &f.Offset, "call", &f.Call, "name", &f.Name, "outcome", &f.Outcome, "exit", &f.Exit, "result", &f.Result,
		"approval", &f.Approval, "input", &f.Input, "cache_read", &f.CacheRead, "cache_write", &f.CacheWrite,
		"output", &f.Output, "cost_micros", &f.Cost, "reason", &f.Reason, "child", &f.Child, "mode", &f.Mode, "title", &f.Title,
		"kind", &f.Kind)
	at := esjson.TextOf(data, "at")
	f.At = api.Millis(&at)
	for _, text := range []*string{&f.Text, &f.Name, &f.Reason, &f.Title} {
		*text = strings.ToValidUTF8(*text, "\uFFFD")
	}
	return f, f.History == "" || f.History == api.UI
}
