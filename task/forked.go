package task

import "github.com/roost-dev/roost/journal"

// fork makes the state that of a new task. Cost, runs and open questions belong to the other task. Both have the
// checkpoints: those record what files held.
func (s *State) fork(e Forked, c journal.Commit) {
	s.Fork = &e
	s.ID, s.Title, s.Tags, s.Pinned = e.Task, e.Title, nil, false
	s.Origin, s.Number, s.Parent, s.RootTask = e.Origin, 1, "", ""
	s.CreatedAt, s.UpdatedAt, s.Settings = e.CreatedAt, c.At, e.Settings
	s.Adopted, s.Actions, s.Run, s.Runs, s.Turns = nil, Actions{}, nil, RunHistory{}, 0
	s.WaitingUntil, s.Questions, s.Answered, s.Queue, s.QueuedAt = 0, nil, nil, nil, nil
	s.Children, s.Usage, s.Refused, s.Restoring = nil, UsageTotals{}, nil, nil
	if e.Branch != 0 {
		if b := s.Branch(e.Branch); b != nil {
			l := b.Leaf
			l.Questions, l.Answered, l.Queue, l.QueuedAt = nil, nil, nil, nil
			s.enter(l)
		}
	}
	s.Branches, s.Touched, s.Moved = nil, nil, c.Seq
	s.Received, s.Begins = nil, c.Seq
}

// Own reports whether a message was added by this task, and not by the one that it is
// a fork of.
func (s *State) Own(m *Message) bool { return s.Fork == nil || m.Seq > s.Fork.Seq }
