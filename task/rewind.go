package task

import (
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
)

// moves reports whether an event adds to the histories, so that an earlier move of the head cannot be undone any
// more.
func moves(e Event) bool {
	switch e.(type) {
	case MessageAdded, MessageChanged, MessageTextSaved, MessageHidden, ForeignImported,
		ToolStarted, ToolFinished, api.QuestionOpened, api.QuestionClosed, InputQueued, InputTaken, FileChanged:
		return true
	}
	return false
}

func (s *State) rewind(e Rewound, c journal.Commit) error {
	for i, r := range e.Hide {
		if r[0] == 0 || r[1] < r[0] || i > 0 && r[0] <= e.Hide[i-1][1] {
			return fmt.Errorf("rewind that hides messages %d to %d out of order", r[0], r[1])
		}
	}
	if s.Branch(c.Seq) != nil {
		return fmt.Errorf("a second rewind in commit %d", c.Seq)
	}
	var to *Branch
	if e.Branch != 0 {
		if to = s.Branch(e.Branch); to == nil {
			return fmt.Errorf("branch %d does not exist", e.Branch)
		}
	}
	if e.Why == "fork" { // what the fork leaves out belongs to the other task
		s.filed = slices.Clone(s.Files)
		s.fileAt = upTo(len(s.filed))
		s.cut(e)
		return nil
	}
	before := Gone{len(s.ui), len(s.api)}
	s.touch(s.callsNamed(e.Calls))
	s.leave(c.Seq, c.At, e.Why, e.By)
	if to != nil {
		s.enter(s.Branch(e.Branch).Leaf)
	} else {
		s.cut(e)
	}
	s.Actions.Do(Action{Kind: e.Why, Seq: c.Seq, At: c.At, Move: true, By: e.By,
		Gone: Gone{before.UI - len(s.ui), before.API - len(s.api)}})
	return nil
}

// cut hides what a rewind names.
func (s *State) cut(e Rewound) {
	for _, r := range e.Hide {
		for id := r[0]; id <= r[1] && id < s.NextMessage(); id++ {
			if m := s.messages[id-1]; m.Hidden == "" && !m.lost() {
				m.Hidden = e.Why
			}
		}
	}
	last := s.lastReply()
	gone := func(m *Message) bool { return m.Hidden != "" }
	s.ui = slices.DeleteFunc(slices.Clone(s.ui), gone)
	s.api = slices.DeleteFunc(slices.Clone(s.api), gone)
	lift := map[string]bool{}
	for _, id := range e.Lift {
		lift[id] = true
	}
	if len(lift) > 0 {
		for _, m := range s.api {
			m.lift(lift)
		}
	}
	for _, c := range s.callsNamed(e.Calls) {
		c.Finished, c.finished, c.away, c.Rewound = nil, place{}, false, true
	}
	s.Questions = slices.DeleteFunc(s.Questions, func(q *Question) bool { return slices.Contains(e.Questions, q.Question) })
	s.Answered = slices.DeleteFunc(s.Answered, func(a Answered) bool { return slices.Contains(e.Questions, a.Question) })
	s.Queue = slices.DeleteFunc(s.Queue, func(q InputQueued) bool { return slices.Contains(e.Inputs, q.Input) })
	for _, id := range e.Inputs {
		delete(s.QueuedAt, id)
	}
	if e.Files != 0 {
		s.showFiles(slices.DeleteFunc(slices.Clone(s.fileAt), func(i int) bool { return s.filed[i].Seq >= e.Files }))
	}
	s.reindex(last)
	if s.Run != nil {
		s.Run.Rewound = true
		if s.Question(s.Run.Waiting) == nil {
			s.Run.Waiting = ""
		}
	}
}

func (s *State) callsNamed(ids []string) []*Call {
	var out []*Call
	for _, id := range ids {
		if c := s.calls[id]; c != nil {
			out = append(out, c)
		}
	}
	return out
}

func (m *Message) lost() bool { return m.History == "" }

func (s *State) undone(e Undone, c journal.Commit) error {
	seq := max(e.Undoes, e.Redoes)
	if e.Undoes != 0 && e.Redoes != 0 || !s.swap(seq) {
		return fmt.Errorf("commit %d holds no event that moved the head", seq)
	}
	if e.Undoes != 0 {
		s.Actions.Undo(seq, c.Seq, 0)
	} else {
		s.Actions.Redo(seq, c.Seq, 0)
	}
	return nil
}
