package task

import (
	"fmt"

	"github.com/roost-dev/roost/journal"
)

// Open reports whether anything is open that Received ends.
func (s *State) Open() bool {
	return len(s.Queue)+len(s.Questions)+len(s.Answered) > 0 || s.Run != nil && s.Run.Outcome == "" || s.Restoring != nil
}

func (s *State) receive(e Received, c journal.Commit) {
	r := Reception{From: e.From, At: c.At, Had: e.Had, Kept: e.Kept, Questions: len(s.Questions), Answers: len(s.Answered)}
	for _, q := range s.Queue {
		r.Queue = append(r.Queue, q.Text)
	}
	if run := s.Run; run != nil && run.Outcome == "" {
		r.Run = run.ID
	}
	s.Received, s.Begins = &r, c.Seq
	if e.Kept {
		return
	}
	s.Settings = e.Settings
	s.endUnfinished(c.At)
	s.Questions, s.Answered, s.Queue, s.QueuedAt = nil, nil, nil, nil
	s.WaitingUntil, s.Restoring = 0, nil
	for _, call := range s.order {
		if call.Finished == nil {
			call.Foreign = true // whether it started, and who allowed it, is not known
		}
	}
	for i := range s.Branches {
		l := &s.Branches[i].Leaf
		l.Questions, l.Answered, l.Queue, l.QueuedAt = nil, nil, nil, nil
	}
}

// Brings names what a log would bring along that is not proven: Powers, and what is open.
func (s *State) Brings() []string {
	out := s.Settings.Powers()
	count := func(n int, one, many string) {
		if n > 0 {
			if n > 1 {
				one = many
			}
			out = append(out, fmt.Sprintf("%d %s", n, one))
		}
	}
	count(len(s.Queue), "message in the queue", "messages in the queue")
	count(len(s.Answered), "recorded answer", "recorded answers")
	count(len(s.Questions), "open question", "open questions")
	if s.Run != nil && s.Run.Outcome == "" {
		out = append(out, "an unfinished run")
	}
	return out
}
