package term

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// Event is one event of a run as every stream shows it: a type, and the whole
// event as JSON.
type Event struct {
	Type string
	At   int64 // Unix milliseconds
	Data json.RawMessage
}

// fields are the members of all events that a display looks at. One struct for
// all: the payloads are small and their names do not clash.
type fields struct {
	Message uint64
	History string
	Content []byte // the message itself
	Text    string
	Offset  int
	Call    string
	Name    string
	Outcome string
	Exit    *int
	Result  []byte
	Rule    string // of the approval
	Input   int64  // tokens, those of the cache among them, as lists count them
	Output  int64
	Cost    *int64 // micro-dollars; nil when unknown
	Reason  string
	Child   string
	Mode    string
	Title   string
}

// names are the members of one type of event that a display reads.
type names []string

// members are the members that are read of each type that is shown. Events of other types may be large, and are not
// even parsed.
var members = map[string]names{
	"message.added":      {"history", "message", "content"},
	"message.changed":    {"history", "message", "content"},
	"message.text_saved": {"message", "text"},
	"message.delta":      {"message", "call", "offset", "text"},
	"reasoning.delta":    {"message", "offset", "text"},
	"tool.started":       {"call", "message"},
	"tool.finished":      {"call", "name", "outcome", "exit", "result", "approval"},
	"turn.started":       {},
	"usage.changed":      {"input", "cache_read", "cache_write", "output", "cost_micros"},
	"notice":             {"text"},
	"wait.delta":         {"text"},
	"subtask.started":    {"child", "mode", "title"},
	"history.condensed":  {"reason"},
	"foreign.imported":   {"reason"},
	"foreign.refused":    {"reason"},
}

// read takes the members out of an event. It reports false when there is nothing
// to show: the event is not an object, or a message of the model's history.
func (n names) read(data []byte) (f fields, ok bool) {
	if esjson.TypeOf(data) != esjson.TypeObject {
		return f, false
	}
	left, seen := len(n), false
	for key, val := range esjson.Members(data) {
		seen = true
		if left == 0 {
			break
		}
		if !slices.Contains(n, key) {
			continue
		}
		left--
		if key == "history" && string(val) != `"ui"` {
			return f, false
		}
		f.set(key, val)
	}
	return f, seen
}

func (f *fields) set(key string, val []byte) {
	switch key {
	case "message":
		f.Message, _ = strconv.ParseUint(string(val), 10, 64)
	case "history":
		f.History = text(val)
	case "content":
		f.Content = val
	case "text":
		f.Text = text(val)
	case "offset":
		f.Offset, _ = strconv.Atoi(string(val))
	case "call":
		f.Call = text(val)
	case "name":
		f.Name = text(val)
	case "outcome":
		f.Outcome = text(val)
	case "exit":
		if n, err := strconv.Atoi(string(val)); err == nil {
			f.Exit = &n
		}
	case "result":
		f.Result = val
	case "approval":
		f.Rule, _ = esjson.GetString(val, "rule")
	case "input", "cache_read", "cache_write":
		n, _ := strconv.ParseInt(string(val), 10, 64)
		f.Input += n
	case "output":
		f.Output, _ = strconv.ParseInt(string(val), 10, 64)
	case "cost_micros":
		if n, err := strconv.ParseInt(string(val), 10, 64); err == nil {
			f.Cost = &n
		}
	case "reason":
		f.Reason = text(val)
	case "child":
		f.Child = text(val)
	case "mode":
		f.Mode = text(val)
	case "title":
		f.Title = text(val)
	}
}

// text reads a JSON string; anything else is empty.
func text(val []byte) string {
	if len(val) == 0 || val[0] != '"' {
		return ""
	}
	s, _ := esjson.Unquote(val)
	return s
}
