package task

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task/facts"
)

// Apply folds one commit. The state after an error is the state before it plus the events before the one that failed.
// A reader reports the error and continues.
func (s *State) Apply(c journal.Commit) error {
	return s.apply(c, func(i int) (Event, error) { return Decode(c.Events[i]) })
}

// ApplyOwn does what Apply does, for the writer of the commit: events are what its lines were encoded from, so they
// need no decoding. Where a line does not hold exactly what the event held, the line counts, as it does for every
// reader.
func (s *State) ApplyOwn(c journal.Commit, events []Event) error {
	return s.apply(c, func(i int) (Event, error) {
		if i < len(events) && sameAsLine(events[i], c.Events[i]) {
			return events[i], nil
		}
		return Decode(c.Events[i])
	})
}

// sameAsLine reports whether decoding the line would give the event. It would not where a text holds characters that
// JSON cannot, or where raw JSON in a plain event is respelled.
func sameAsLine(e Event, line []byte) bool {
	switch e := e.(type) {
	case Adopted, ForeignImported, EpochOpened, Unknown:
		return false
	case MessageAdded:
		return e.Body.tight()
	case MessageChanged:
		return e.Body.tight()
	case MessageTextSaved: // half characters are kept, bytes that are none are not
		return !bytes.Contains(line, []byte("\ufffd"))
	case ToolFinished:
		if !tight(e.Result) {
			return false
		}
	case RestoreBegun:
		if len(e.Rewind) > 0 {
			return false
		}
	}
	return !bytes.Contains(line, []byte(`\ufffd`))
}

// tight reports whether decoding would drop nothing around the value.
func (b Body) tight() bool { return len(b.Compose) == 0 && b.Blob == "" && tight(b.Raw) }

func tight(raw []byte) bool {
	return len(raw) > 1 && raw[0] == '{' && raw[len(raw)-1] == '}'
}

func (s *State) apply(c journal.Commit, event func(i int) (Event, error)) error {
	if c.Seq <= s.Seq {
		return fmt.Errorf("fold commit %d: the state is already at %d", c.Seq, s.Seq)
	}
	s.Seq, s.Epoch = c.Seq, c.Epoch
	var first error
	for i := range c.Events {
		if s.runsOnly && !aboutRuns(c.Events[i]) {
			s.last = Position{Epoch: c.Epoch, Seq: c.Seq, Index: i}
			continue
		}
		e, err := event(i)
		if err == nil {
			err = s.fold(e, c, place{Seq: c.Seq, Event: i})
		}
		if err == nil && moves(e) {
			s.Moved = c.Seq
		}
		if err != nil {
			err = fmt.Errorf("fold commit %d, event %d: %w", c.Seq, i, err)
			s.Problems = append(s.Problems, Problem{Seq: c.Seq, Reason: err.Error()})
			var path *fs.PathError
			s.doubtful = s.doubtful || errors.As(err, &path)
			first = cmp.Or(first, err)
		}
		s.last = Position{Epoch: c.Epoch, Seq: c.Seq, Index: i}
	}
	s.trim()
	return first
}

// Lost notes a commit that the log could not give.
func (s *State) Lost(d journal.Damage) {
	s.Seq = max(s.Seq, d.Seq)
	s.Problems = append(s.Problems, Problem{Seq: d.Seq, Reason: d.Reason})
}

func (s *State) fold(e Event, c journal.Commit, at place) error {
	switch e.(type) {
	case EpochOpened, Received: // nothing happened to the task
	default:
		s.UpdatedAt = max(s.UpdatedAt, c.At)
	}
	switch e := e.(type) {
	case Created:
		s.ID, s.Title, s.Origin, s.Number = e.Task, e.Title, e.Origin, e.Number
		s.Parent, s.RootTask, s.CreatedAt, s.Settings = e.Parent, e.RootTask, e.CreatedAt, e.Settings
	case Adopted:
		if s.runsOnly {
			s.ID, s.Settings = e.Task, e.Settings
			return nil
		}
		return s.adopt(e, c, nil)
	case ForeignImported:
		return s.importForeign(e, c)
	case ForeignRefused:
		s.Refused = append(s.Refused, e)
	case Rewound:
		return s.rewind(e, c)
	case Undone:
		return s.undone(e, c)
	case Forked:
		s.fork(e, c)
	case Received:
		s.receive(e, c)
	case Changed:
		s.note(e, c.Seq, c.At)
		if e.Title != nil {
			s.Title = *e.Title
		}
		if e.Tags != nil {
			s.Tags = slices.Clone(*e.Tags)
		}
		if e.Pinned != nil {
			s.Pinned = *e.Pinned
		}
		if e.Settings != nil {
			s.Settings = *e.Settings
		}
	case MessageAdded:
		return s.addMessage(e, c, at)
	case MessageChanged:
		return s.changeMessage(e, at)
	case MessageTextSaved:
		m := s.Message(e.Message)
		if m == nil {
			return fmt.Errorf("text for message %d, which does not exist", e.Message)
		}
		before := m.size()
		m.save(e.Text, at)
		s.grew(m, before)
	case MessageHidden:
		s.hide(e)
	case RunQueued:
		s.queueRun(e, c.At)
	case RunStarted:
		s.begin(e, c.At)
	case RunWaiting:
		s.waitRun(e)
	case RunEnded:
		s.endRun(e, c, positionOf(c, at))
	case TurnStarted:
		s.Turns = max(s.Turns, e.Turn)
		s.WaitingUntil = 0
	case TurnEnded:
		s.returnReasoning(e.ReasoningFrom)
		s.Run.endTurn(e)
	case TurnFailed:
		s.Failures++
		s.WaitingUntil = e.Until
		s.returnReasoning(e.ReasoningTo)
	case HistoryCondensed:
		if e.Undoes != 0 || e.Redoes != 0 {
			s.uncover(e.Undoes, e.Redoes, c.Seq)
			break
		}
		s.cover(Cover{
			Kind: api.ActionCondense, ID: e.Condense, Message: e.Summary, Row: e.Row, Seq: c.Seq, At: c.At,
			Messages: e.Messages, Before: e.Before, After: e.After,
		}, e.Covers)
	case HistoryTruncated:
		switch {
		case e.Undoes != 0 || e.Redoes != 0:
			s.uncover(e.Undoes, e.Redoes, c.Seq)
		case e.Marker != 0:
			s.cover(Cover{
				Kind: api.ActionTruncate, ID: e.Truncation, Message: e.Marker, Row: e.Row, Seq: c.Seq, At: c.At,
				Messages: e.Messages, Before: e.Before, After: e.After,
			}, e.Covers)
		}
	case MessageWithheld:
		s.Withheld = append(s.Withheld, e)
	case ToolStarted:
		call := s.call(e.Call, e.Name)
		call.Started, call.Replay, call.Before, call.Rewound = true, e.Replay, e.Before, false
		if e.Message != 0 {
			call.UI = e.Message
		}
	case ToolProcess:
		s.call(e.Call, "").Process = &e
	case ToolFinished:
		return s.finishCall(e, at)
	case api.QuestionOpened:
		s.openQuestion(e, c, positionOf(c, at))
	case api.QuestionClosed:
		s.closeQuestion(e, c, positionOf(c, at))
	case InputQueued:
		if i := slices.IndexFunc(s.Queue, func(q InputQueued) bool { return q.Input == e.Input }); i >= 0 {
			s.Queue[i] = e // other words in its place
		} else {
			s.Queue = append(s.Queue, e)
		}
		if s.QueuedAt == nil {
			s.QueuedAt = map[string]uint64{}
		}
		s.QueuedAt[e.Input] = c.Seq
		s.Runs.queue(e.Input, s.Run)
	case InputTaken:
		delete(s.QueuedAt, e.Input)
		s.Queue = slices.DeleteFunc(s.Queue, func(q InputQueued) bool { return q.Input == e.Input })
	case UsageChanged:
		s.Usage.Add(e)
		s.Run.spend(e)
	case FileChanged:
		s.addFile(e, c.Seq, c.At)
	case CheckpointSaved:
		return s.saveCheckpoint(e, c)
	case RestoreBegun:
		s.Restoring = &Restoring{RestoreBegun: e, Seq: c.Seq, At: c.At} // it replaces one without an end in the log
	case RestoreEnded:
		s.endRestore(e, c)
	case SubtaskStarted:
		child := s.child(e.Child)
		child.Call, child.Message, child.Mode, child.Remark, child.Pending = e.Call, e.Message, e.Mode, e.Remark, len(s.Queue)
	case SubtaskEnded:
		child := s.child(e.Child)
		child.Ended, child.Outcome, child.Result = true, e.Outcome, e.Result
	}
	return nil
}

// note records a change of labels as an action, before the change is folded.
func (s *State) note(e Changed, seq uint64, at int64) {
	switch {
	case e.Undoes != 0 || e.Redoes != 0:
		s.Actions.turn(e.Undoes, e.Redoes, seq)
	case e.Kind() != "":
		after := e
		after.Settings = nil
		s.Actions.Do(Action{Kind: e.Kind(), Seq: seq, At: at, Before: e.Against(s.Title, s.Tags, s.Pinned), After: after})
	}
}

// call finds a call, or notes one that the API history does not hold (its
// message may be damaged).
func (s *State) call(id, name string) *Call {
	if c := s.calls[id]; c != nil {
		return c
	}
	c := &Call{ID: id, Name: name, state: s}
	s.calls[id] = c
	s.order = append(s.order, c)
	return c
}

func (s *State) finishCall(e ToolFinished, at place) error {
	call := s.call(e.Call, e.Name)
	call.Finished, call.At, call.away = &e, at, false
	s.Answered = slices.DeleteFunc(s.Answered, func(a Answered) bool { return a.Call == e.Call })
	var err error
	if e.Result, err = e.result(s.blobs); err != nil {
		return fmt.Errorf("result of call %s: %w", e.Call, err)
	}
	s.hold(heldResult(call))
	return nil
}

// returnReasoning notes a server that is sent the reasoning of earlier replies.
func (s *State) returnReasoning(server string) {
	if server != "" && !slices.Contains(s.ReasoningTo, server) {
		s.ReasoningTo = append(s.ReasoningTo, server)
	}
}

// maxGap is how many messages lost commits may have held. A number further away
// is damage, and must not make us allocate.
const maxGap = 1 << 20

func (s *State) addMessage(e MessageAdded, c journal.Commit, at place) error {
	if e.History != UI && e.History != API {
		return fmt.Errorf("message %d is of the history %q, which does not exist", e.Message, e.History)
	}
	if err := s.skipTo(e.Message, c); err != nil {
		return err
	}
	if e.Message < s.NextMessage() {
		return fmt.Errorf("message %d comes twice", e.Message)
	}
	raw, pieces, err := s.body(e.Body)
	m := s.newMessage(e.History, c.Seq)
	m.set(raw, at, pieces)
	if err != nil {
		m.Missing = true
		m.blank()
	}
	s.attach(m)
	if e.Before != 0 {
		s.moveBefore(m, e.Before)
	}
	return err
}

// moveBefore puts the newest message of a history before another one. When that one does not exist any more, the
// message stays at the end: no added message is lost. The calls and replies of the history do not change: only
// messages without calls and replies have a place other than the end.
func (s *State) moveBefore(m *Message, before uint64) {
	list := s.visible(m.History)
	l := *list
	at := slices.IndexFunc(l, func(o *Message) bool { return o.ID == before })
	if at >= 0 && l[len(l)-1] == m {
		*list = slices.Insert(slices.Clone(l[:len(l)-1]), at, m)
	}
}

// visible is the list of a history's visible messages.
func (s *State) visible(h History) *[]*Message {
	if h == UI {
		return &s.ui
	}
	return &s.api
}

// skipTo leaves the numbers before next free: a lost commit took their messages.
func (s *State) skipTo(next uint64, c journal.Commit) error {
	if next > s.NextMessage()+maxGap {
		return fmt.Errorf("message %d comes after message %d: too many are missing", next, s.NextMessage()-1)
	}
	for s.NextMessage() < next {
		lost := s.newMessage("", c.Seq)
		lost.Seq, lost.Hidden, lost.Missing = 0, "lost", true
		lost.blank()
		s.messages = append(s.messages, lost)
	}
	return nil
}

// newMessage is the next message; it is not part of the task yet.
func (s *State) newMessage(h History, seq uint64) *Message {
	return &Message{ID: s.NextMessage(), History: h, Seq: seq, state: s}
}

func (s *State) attach(m *Message) {
	s.messages = append(s.messages, m)
	s.hold(heldMessage(m))
	list := s.visible(m.History)
	*list = append(*list, m)
	if m.History == API {
		s.index(m)
	}
}

// index records the tool calls and replies of an API message.
func (s *State) index(m *Message) {
	switch m.Kind() {
	case "assistant":
		for _, u := range m.Facts.Uses {
			if old := s.calls[u.ID]; old != nil && old.Message != 0 && old.Message != m.ID {
				if s.made(old) {
					continue // a provider used an id twice: the first call counts
				}
				// The call that had this id is rewound: its outcome does not apply to the new call.
				s.calls[u.ID] = s.callOf(m, u)
			}
			call := s.calls[u.ID]
			if call == nil {
				call = s.call(u.ID, u.Name)
				// Another program may also have put it into a reply of ours.
				call.Foreign = m.Foreign || m.Body.Blob != ""
			}
			call.Name, call.Message = u.Name, m.ID
			call.Answered = false // a result before it is another call's
		}
		if !m.Facts.Summary {
			s.Replies++
			s.Failures = 0
		}
	case "user":
		for _, id := range m.Facts.Results {
			if c := s.calls[id]; c != nil {
				c.Answered = true
			}
		}
	}
}

// made reports whether the visible history still has the reply that made a call.
func (s *State) made(c *Call) bool {
	m := s.Message(c.Message)
	return m != nil && m.Hidden == "" && slices.ContainsFunc(m.Facts.Uses, func(u facts.Use) bool { return u.ID == c.ID })
}

// callOf is the call that a reply made before it went out of the history, nil when
// it made none: what that did is still true when the reply comes back.
func (s *State) callOf(m *Message, u facts.Use) *Call {
	for _, c := range slices.Backward(s.order) {
		if c.ID == u.ID && c.Message == m.ID {
			return c
		}
	}
	return nil
}

func (s *State) changeMessage(e MessageChanged, at place) error {
	m := s.Message(e.Message)
	if m == nil {
		return fmt.Errorf("change of message %d, which does not exist", e.Message)
	}
	raw, pieces, err := s.body(e.Body)
	if err != nil {
		return err
	}
	before, last := m.Facts, (*Message)(nil)
	if m.History == API {
		last = s.lastReply()
	}
	size := m.size()
	m.set(raw, at, pieces)
	m.Missing = false
	s.grew(m, size)
	if m.History == API && !m.Facts.SameCalls(before) {
		s.reindex(last)
	}
	return nil
}

// hide takes messages out of their histories, all in one go: one at a time, a
// rewind of a long task would take the square of its length.
func (s *State) hide(e MessageHidden) {
	last, reindex := s.lastReply(), false
	for _, id := range e.Messages {
		if m := s.Message(id); m != nil && m.Hidden == "" {
			m.Hidden = cmp.Or(e.Reason, "hidden")
			reindex = reindex || m.History == API
		}
	}
	s.dropHidden()
	if reindex {
		s.reindex(last)
	}
}

// dropHidden takes the hidden messages out of the visible ones. A reader may still hold the old lists.
func (s *State) dropHidden() {
	hidden := func(m *Message) bool { return m.Hidden != "" }
	s.ui = slices.DeleteFunc(slices.Clone(s.ui), hidden)
	s.api = slices.DeleteFunc(slices.Clone(s.api), hidden)
}

// reindex computes the calls and replies of the visible API history again. When the last reply is another one than
// before, the failures since start over: a script plays its turns again after a rewind.
func (s *State) reindex(before *Message) {
	for _, c := range s.order {
		c.Answered = false
	}
	failures := s.Failures
	s.Replies = 0
	for _, m := range s.api {
		s.index(m)
	}
	s.Failures = 0
	if s.lastReply() == before {
		s.Failures = failures
	}
}

// lastReply is the newest complete reply in the visible API history, nil when
// there is none.
func (s *State) lastReply() *Message {
	for _, m := range slices.Backward(s.api) {
		if m.Kind() == "assistant" && !m.Facts.Summary {
			return m
		}
	}
	return nil
}
