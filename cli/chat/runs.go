package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// started records that a run works on the task, unless its events have reported its state: it may be over already, or
// ask.
func (s *Session) started(run string) {
	s.change(func(st *state) {
		if !s.ended[run] && (s.run != run || run == "") {
			st.Working, st.Waiting = true, false
			s.run = run
		}
	})
}

// goesOn records that a question was answered and which run continues with it, unless later events, perhaps of
// another question, have reported the state. before is how many runs had ended when the answer was given.
func (s *Session) goesOn(question, run string, before int) {
	s.change(func(st *state) {
		if s.shut[question] {
			return
		}
		st.Waiting = false
		if s.ended[run] || s.ends != before {
			return
		}
		if st.Working = true; strings.HasPrefix(question, st.Task+".") { // else a subtask's: its task's run is another one
			s.run = run
		}
	})
}

// over is how many runs have ended.
func (s *Session) over() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends
}

// shown records words that are on the screen already, so that the chat does not show them again when the run takes
// them.
func (s *Session) shown(text string) {
	s.mu.Lock()
	s.said = append(s.said, text)
	s.mu.Unlock()
}

// unshown forgets such words, and reports whether there were some.
func (s *Session) unshown(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.said, text)
	if i >= 0 {
		s.said = slices.Delete(s.said, i, i+1)
	}
	return i >= 0
}

func (s *Session) stop(ctx context.Context, id string) {
	if _, err := s.backend.Cancel(ctx, id); err != nil && ctx.Err() == nil {
		s.complain(fmt.Errorf("stop the run: %w", err))
	}
}
