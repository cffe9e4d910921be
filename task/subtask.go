package task

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// SubtaskTool is the tool that starts a child, in Roo's words.
const SubtaskTool = "new_task"

// child finds a child, or notes one: its start may be lost, its end is not.
func (s *State) child(id string) *Child {
	for i := range s.Children {
		if s.Children[i].ID == id {
			return &s.Children[i]
		}
	}
	s.Children = append(s.Children, Child{ID: id})
	return &s.Children[len(s.Children)-1]
}

// ChildID is the id of the child that a call of a task starts. It follows from the task and the call alone, so that a
// run after a crash finds the same child. It is a UUID of version 7, like the ids of all tasks: its time is that of
// the reply that made the call, and a digest takes the place of the random bits.
func ChildID(s *State, c *Call) string {
	at := int64(0)
	if m := s.Message(c.Message); m != nil {
		at = max(m.TS(), 0)
	}
	sum := sha256.Sum256([]byte(s.ID + "\x00" + strconv.FormatUint(c.Message, 10) + "\x00" + c.ID))
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(at)<<16)
	copy(id[6:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Awaited is the child that the task waits for: the call that started it is still
// open in the visible history. nil when it waits for none. So a rewind to before the
// call ends the waiting without a word in the log.
func (s *State) Awaited() *Child {
	if !slices.ContainsFunc(s.Children, func(c Child) bool { return !c.Ended }) {
		return nil
	}
	for _, call := range s.OpenCalls() {
		if child := s.ChildOf(call); child != nil && call.Finished == nil {
			return child
		}
	}
	_, child := s.HandedOver()
	return child
}

// HandedOver returns the call and the child of the other shape in which Roo waits. When other tools ran in the reply
// that delegated, Roo has stored their results already, in a user turn with a placeholder for the missing result. It
// returns nil when the visible history does not end in such a turn.
func (s *State) HandedOver() (*Call, *Child) {
	n := len(s.api)
	i := slices.IndexFunc(s.Children, func(c Child) bool { return !c.Ended && c.Call == "" })
	if i < 0 || n < 2 || s.api[n-1].Kind() != "user" || !s.api[n-1].Foreign || s.api[n-2].Kind() != "assistant" {
		return nil, nil
	}
	for _, id := range s.api[n-1].Facts.Results {
		if c := s.calls[id]; c != nil && c.Message == s.api[n-2].ID && c.Name == SubtaskTool && c.Foreign && c.Finished == nil {
			return c, &s.Children[i]
		}
	}
	return nil, nil
}

// interrupted is Roo's placeholder for a result that is not there yet.
const interrupted = "Tool execution was interrupted before completion."

// ResultsSoFar is the user turn that Roo stores before a task waits for its subtask: the results of the reply's other
// calls, after a placeholder for each call that has none. It is derived: the log gets the turn when all results are
// there. Without it, Roo would report to the model that calls which ran did not run. It is nil when the task waits
// for no subtask of its own, or no other call ran.
func (s *State) ResultsSoFar() (json.RawMessage, error) {
	child := s.Awaited()
	n := len(s.api)
	if child == nil || child.Call == "" || n == 0 || s.api[n-1].ID != child.Message {
		return nil, nil
	}
	var missing, results [][]byte
	for _, c := range s.OpenCalls() {
		result, err := c.Result()
		switch {
		case err != nil:
			return nil, err
		case result != nil:
			results = append(results, result)
		default:
			missing = append(missing, esjson.ObjectOf("type", "tool_result", "tool_use_id", c.ID,
				"content", interrupted))
		}
	}
	if len(results) == 0 {
		return nil, nil
	}
	content := bytes.Join(append(missing, results...), []byte(","))
	return fmt.Appendf(nil, `{"role":"user","content":[%s],"ts":%d}`, content, s.api[n-1].TS()+1), nil
}

// ChildOf is the child that a call started and that has not ended; nil when there is
// none. Another program's history names the child it waits for and not the call: there
// it is the call of that tool which has no result.
func (s *State) ChildOf(call *Call) *Child {
	for i := range slices.Backward(s.Children) {
		switch c := &s.Children[i]; {
		case c.Ended:
		case c.Call == call.ID && c.Message == call.Message && call.Message != 0,
			c.Call == "" && call.Foreign && call.Name == SubtaskTool:
			return c
		}
	}
	return nil
}

// adoptChildren takes the children from another program's history item: all have ended but the one that the task
// waits for.
func (s *State) adoptChildren(item []byte) {
	list, _ := esjson.Get(item, "childIds")
	if esjson.TypeOf(list) == esjson.TypeArray {
		for el := range esjson.Array(list) {
			if id, err := esjson.Unquote(el); err == nil && id != "" && len(s.Children) < maxChildren {
				c := s.child(id)
				c.Ended = true
			}
		}
	}
	if id, _ := esjson.GetString(item, "completedByChildId"); id != "" {
		c := s.child(id)
		c.Ended, c.Outcome = true, "completed"
		c.Result, _ = esjson.GetString(item, "completionResultSummary")
	}
	if id, _ := esjson.GetString(item, "awaitingChildId"); id != "" {
		c := s.child(id)
		c.Ended, c.Outcome, c.Result = false, "", ""
	}
}

// maxChildren bounds what a damaged or hostile item can make us keep; looking for one
// is linear.
const maxChildren = 10_000
