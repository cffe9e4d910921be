package store

import (
	"github.com/roost-dev/roost/task"
)

func received(s *task.State) *Received {
	r := s.Received
	if r == nil || r.Kept {
		return nil
	}
	return &Received{
		From: r.From, At: Timestamp(r.At), Approve: r.Had.Approve, Allow: r.Had.Allow, AllowTools: r.Had.Tools, BaseURL: r.Had.BaseURL,
		Queue: len(r.Queue), Questions: r.Questions, Answers: r.Answers, Notes: r.Notes(s.Settings),
	}
}
