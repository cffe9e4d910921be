package term

import (
	"encoding/json"

	"github.com/roost-dev/roost/task"
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
	Message  json.RawMessage `json:"message"` // a number
	History  string          `json:"history"`
	Raw      json.RawMessage `json:"content"` // the message itself
	Text     string          `json:"text"`
	Offset   int             `json:"offset"`
	Call     string          `json:"call"`
	Name     string          `json:"name"`
	Outcome  string          `json:"outcome"`
	Exit     *int            `json:"exit"`
	Result   json.RawMessage `json:"result"`
	Approval *task.Approval  `json:"approval"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"`
	Cost     *int64          `json:"cost_micros"`
	Reason   string          `json:"reason"`
	Error    string          `json:"error"`
}

func (f fields) number() uint64 {
	var n uint64
	_ = json.Unmarshal(f.Message, &n)
	return n
}

func tokens(raw json.RawMessage) int64 {
	var n int64
	_ = json.Unmarshal(raw, &n)
	return n
}
