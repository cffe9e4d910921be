package task

import (
	"encoding/json"
	"fmt"
	"slices"
)

// FinishedSeq is the commit with the call's outcome, 0 when it has none.
func (c *Call) FinishedSeq() uint64 { return c.finished.Seq }

// Input is the call's input as the model wrote it; nil when no message holds the call any more.
func (c *Call) Input() json.RawMessage {
	m := c.state.Message(c.Message)
	if m == nil {
		return nil
	}
	return toolUse(m.Raw(), c.ID)
}

// Result is the tool_result block of a finished call, nil before.
func (c *Call) Result() (json.RawMessage, error) {
	switch {
	case c.Finished == nil:
		return nil, nil
	case !c.away && c.Finished.Result != nil:
		return c.Finished.Result, nil
	case c.Finished.Blob != "":
		return c.Finished.result(c.state.blobs)
	case !c.away:
		return nil, nil
	}
	at := []place{c.finished}
	events, err := c.state.fetch(eventsAt(at))
	if err != nil {
		return nil, fmt.Errorf("read the result of call %s: %w", c.ID, err)
	}
	return c.state.result(at, events)
}

// Outcome is what a restart may do with a call.
type Outcome string

// The three outcomes of DESIGN's fifth law.
const (
	OutcomeFinished   Outcome = "finished"    // its result is used
	OutcomeNotStarted Outcome = "not_started" // it may run
	OutcomeUnknown    Outcome = "unknown"     // never run again by itself
)

// Outcome returns which of the three a call is.
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
	for _, u := range last.facts.Uses {
		c := s.calls[u.ID]
		if c != nil && c.Message == last.ID && !c.Answered && !slices.Contains(open, c) {
			open = append(open, c)
		}
	}
	return open
}
