package task_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// foldedLog folds events one commit after another, and keeps the log.
type foldedLog struct {
	*task.State
	t   testing.TB
	src memory
}

func tell(t testing.TB, events ...task.Event) *foldedLog {
	t.Helper()
	return tellWith(t, blobMap{}, events...)
}

// tellWith is a folded log whose payloads lie in blobs.
func tellWith(t testing.TB, blobs blobMap, events ...task.Event) *foldedLog {
	t.Helper()
	w := &foldedLog{State: task.New(blobs), t: t, src: memory{blobMap: blobs}}
	if len(events) > 0 {
		w.then(events...)
	}
	return w
}

// then folds one commit; it must fold without an error.
func (w *foldedLog) then(events ...task.Event) *foldedLog {
	w.t.Helper()
	if err := w.try(events...); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// try folds one commit and gives its error.
func (w *foldedLog) try(events ...task.Event) error {
	w.t.Helper()
	c := encode(w.t, w.Seq+1, events...)
	w.src.log = append(w.src.log, c)
	err := w.Apply(c)
	checkValid(w.t, w.State)
	return err
}

// line folds one commit with an event spelled as it stands in a log.
func (w *foldedLog) line(raw string) error {
	w.t.Helper()
	c := commit(w.Seq+1, json.RawMessage(raw))
	w.src.log = append(w.src.log, c)
	err := w.Apply(c)
	checkValid(w.t, w.State)
	return err
}

// lose is a commit that the log cannot give any more.
func (w *foldedLog) lose() *foldedLog {
	w.Lost(journal.Damage{Seq: w.Seq + 1, Reason: "checksum does not match"})
	return w
}

// again folds the same log into a state that holds room bytes. What is lost is
// left out, as a reader would leave it out.
func (w *foldedLog) again(room int) *task.State {
	w.t.Helper()
	s := task.New(nil).Lean(w.src, room)
	for _, c := range w.src.log {
		_ = s.Apply(c)
	}
	return s
}

// restored is the state out of its own snapshot.
func (w *foldedLog) restored(room int) *task.State {
	w.t.Helper()
	data, err := w.Snapshot()
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := task.Restore(data, w.src, room)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// ids are the numbers of messages, as one word.
func ids(list []*task.Message) string {
	out := ""
	for _, m := range list {
		out += fmt.Sprint(" ", m.ID)
	}
	if out == "" {
		return ""
	}
	return out[1:]
}

func hidden(reason string, messages ...uint64) task.Event {
	return task.MessageHidden{Messages: messages, Reason: reason}
}

// finished is a call's outcome with a result of its own.
func finished(call, text string) task.Event {
	return task.ToolFinished{Call: call, Name: "n", Outcome: "ok", Result: []byte(resultOf(call, text))}
}

func resultOf(call, text string) string {
	return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%q}`, call, text)
}

// answers is the user turn that sends the results of calls.
func answers(id uint64, calls ...string) task.Event {
	pieces := []task.Piece{{Literal: `{"role":"user","content":[`}}
	for i, c := range calls {
		if i > 0 {
			pieces = append(pieces, task.Piece{Literal: ","})
		}
		pieces = append(pieces, task.Piece{Result: c})
	}
	pieces = append(pieces, task.Piece{Literal: `],"ts":6}`})
	return task.MessageAdded{History: task.API, Message: id, Body: task.Body{Compose: pieces}}
}
