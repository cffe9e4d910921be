package task

import (
	"encoding/json"
	"slices"
)

// Call is one tool call of the model and what became of it.
type Call struct {
	ID       string
	Name     string
	Input    json.RawMessage
	Message  uint64 // the assistant message that made it
	Started  bool
	Replay   string
	Before   map[string]string // hashes of the files it was to replace
	UI       uint64            // its row for the person
	Process  *ToolProcess
	Finished *ToolFinished
	Answered bool // the API history holds its result
	Foreign  bool // another program's run made it: whether it started is not known
}

// Outcome is what a restart may do with a call.
type Outcome string

// The three outcomes of DESIGN's fifth law.
const (
	OutcomeFinished   Outcome = "finished"    // its result is used
	OutcomeNotStarted Outcome = "not_started" // it may run
	OutcomeUnknown    Outcome = "unknown"     // never run again by itself
)

// Outcome tells which of the three a call is.
func (c *Call) Outcome() Outcome {
	switch {
	case c.Finished != nil || c.Answered:
		return OutcomeFinished
	case c.Started, c.Foreign:
		return OutcomeUnknown
	}
	return OutcomeNotStarted
}

// OpenCalls are the calls of the last assistant message that the API history
// has no result for, in order.
func (s *State) OpenCalls() []*Call {
	if len(s.api) == 0 {
		return nil
	}
	var last *Message
	for i := len(s.api) - 1; i >= 0 && last == nil; i-- {
		if s.api[i].Kind() == "assistant" {
			last = s.api[i]
		}
	}
	if last == nil {
		return nil
	}
	var open []*Call
	for _, use := range toolUses(last.raw) {
		c := s.calls[use.ID]
		if c != nil && c.Message == last.ID && !c.Answered && !slices.Contains(open, c) {
			open = append(open, c)
		}
	}
	return open
}
