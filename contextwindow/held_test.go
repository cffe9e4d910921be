package contextwindow

import (
	"encoding/json"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/rewind"
)

// What is hidden, and shown again, is decided here and done in a task's state. These
// tests go through both, as the program does.

type fatal interface {
	Helper()
	Fatal(...any)
}

// then folds one commit.
func then(t fatal, s *task.State, events ...task.Event) {
	t.Helper()
	c := journal.Commit{Seq: s.Seq + 1, Epoch: 1, At: 1}
	for _, e := range events {
		raw, err := task.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		c.Events = append(c.Events, raw)
	}
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
}

// held is a task whose model's side is these messages.
func held(t fatal, messages [][]byte) *task.State {
	t.Helper()
	s := task.New(nil)
	var events []task.Event
	for i, m := range messages {
		events = append(events, task.MessageAdded{History: task.API, Message: uint64(i + 1), Body: task.Body{Raw: json.RawMessage(m)}})
	}
	if len(events) > 0 {
		then(t, s, events...)
	}
	return s
}

// side is the model's side of a task, as its file holds it.
func side(t fatal, s *task.State) [][]byte {
	t.Helper()
	out, err := s.RawAPI()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// truncate hides what CutOldest chose. The commit that did it is the state's last one.
func truncate(t fatal, s *task.State, messages [][]byte, fraction float64, id string, now int64) (removed int) {
	t.Helper()
	cut := CutOldest(messages, fraction, id, now)
	if len(cut.Hide) == 0 {
		return 0
	}
	marker := task.MessageAdded{History: task.API, Message: s.NextMessage(), Body: task.Body{Raw: cut.Marker}}
	if cut.At < len(s.API()) {
		marker.Before = s.API()[cut.At].ID
	}
	var hidden []*task.Message
	for _, i := range cut.Hide {
		hidden = append(hidden, s.API()[i])
	}
	then(t, s, marker, task.HistoryTruncated{Truncation: cut.ID, Marker: marker.Message, Covers: s.RunsOf(hidden), Messages: len(hidden)})
	return len(hidden)
}

// Truncated is a history of which a fraction was hidden.
func Truncated(t fatal, messages [][]byte, fraction float64, id string, now int64) (out [][]byte, removed int) {
	t.Helper()
	s := held(t, messages)
	removed = truncate(t, s, messages, fraction, id, now)
	return side(t, s), removed
}

// Cleaned is a history after a rewind that took nothing of it: the tags of what is gone
// go with a rewind.
func Cleaned(t fatal, messages [][]byte) [][]byte {
	t.Helper()
	s := held(t, messages)
	then(t, s, task.MessageAdded{History: task.UI, Message: s.NextMessage(), Body: task.Body{Raw: []byte(`{"ts":1,"type":"say","say":"text"}`)}})
	e, err := rewind.At(s, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	then(t, s, e)
	return side(t, s)
}
