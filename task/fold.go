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
)

// Apply folds one commit. The state after an error is the state before it plus the events before the one that failed.
// A reader reports the error and continues.
func (s *State) Apply(c journal.Commit) error {
	return s.apply(c, func(i int) (Event, error) { return Decode(c.Events[i]) })
}

// ApplyOwn is Apply for the writer of the commit: its lines were encoded from events, so they need no decoding. Where
// a line does not hold exactly what the event held, the line counts, as it does for every reader.
func (s *State) ApplyOwn(c journal.Commit, events []Event) error {
	return s.apply(c, func(i int) (Event, error) {
		if i < len(events) && sameAsLine(events[i], c.Events[i]) {
			return events[i], nil
		}
		return Decode(c.Events[i])
	})
}

// sameAsLine reports whether decoding the line would give the event. It does not if a text holds characters that JSON
// cannot represent, or if raw JSON in a plain event is spelled differently in the line.
func sameAsLine(e Event, line []byte) bool {
	switch e := e.(type) {
	case Adopted, ForeignImported, EpochOpened, Unknown:
		return false
	case MessageAdded:
		return e.Body.tight()
	case MessageChanged:
		return e.Body.tight()
	case MessageTextSaved: // the line keeps half characters, and replaces bytes that are no characters
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

// tight reports whether decoding the body would change none of its bytes.
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

// Lost records a commit that the log lost.
func (s *State) Lost(d journal.Damage) {
	s.Seq = max(s.Seq, d.Seq)
	s.Problems = append(s.Problems, Problem{Seq: d.Seq, Reason: d.Reason})
}

func (s *State) fold(e Event, c journal.Commit, at place) error {
	switch e.(type) {
	case EpochOpened, Received: // these do not change what a user sees of the task
	default:
		s.UpdatedAt = max(s.UpdatedAt, c.At)
	}
	switch e := e.(type) {
	case Created:
		s.ID, s.Title, s.Origin, s.Number = e.Task, e.Title, e.Origin, e.Number
		s.Parent, s.RootTask, s.CreatedAt, s.Settings = e.Parent, e.RootTask, e.CreatedAt, e.Settings
		s.Access, s.Person = e.Access, cmp.Or(e.Person, e.Access.Owner)
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
		if e.Access != nil {
			s.Access = *e.Access
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
			s.Queue[i] = e // the user edited the words
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
		child.Call, child.Message, child.Mode, child.Remark = e.Call, e.Message, e.Mode, e.Remark
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
		s.Actions.Do(Action{Kind: e.Kind(), Seq: seq, At: at, Before: e.Against(s.Title, s.Tags, s.Pinned, s.Access), After: after})
	}
}
