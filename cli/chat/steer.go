package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
)

// steer gives words to the run that works: the model gets them with its next request,
// also when a question is open, which they do not answer.
func (s *Session) steer(ctx context.Context, id, rest string) error {
	if rest == "" {
		return usage("/steer WORDS")
	}
	if st := s.state(); !st.Working {
		if st.Asking || st.Waiting {
			return errors.New("no run works on the task: it waits for an answer (/answer WORDS, /reject WHY)")
		}
		return s.prompt(ctx, rest)
	}
	words, outputs := s.laden(rest)
	if err := s.once(ctx, id, words, func(ctx context.Context) error { return s.queue(ctx, id, words) }); err != nil {
		return err
	}
	s.unladen(outputs)
	return nil
}

// interject saves and interrupts the run's present step, and continues with words at once.
func (s *Session) interject(ctx context.Context, id, rest string) error {
	if rest == "" {
		return usage("/now WORDS")
	}
	st := s.state()
	switch {
	case st.Asking || st.Waiting:
		return errors.New("a question is open: /reject WHY or /answer WORDS")
	case !st.Working:
		return s.prompt(ctx, rest)
	}
	words, outputs := s.laden(rest)
	err := s.once(ctx, id, words, func(ctx context.Context) error {
		sent, err := s.backend.Send(ctx, id, api.Message{Text: words, Delivery: "interrupt"})
		if err == nil {
			s.started(sent.Run)
		}
		return err
	})
	if err == nil {
		s.unladen(outputs)
	}
	return err
}

// reject refuses what a run asks for; the model gets the reason.
func (s *Session) reject(ctx context.Context, id, rest string) error {
	q, err := s.asked(ctx, id)
	if err != nil {
		return err
	}
	if !approves(q) {
		return errors.New("the open question wants words, not a yes: /answer WORDS")
	}
	no := false
	return s.decide(ctx, q, api.Answer{Approve: &no, Text: rest, Seen: q.Event})
}

// asked is the open question of the task: the one on the screen, or the newest.
func (s *Session) asked(ctx context.Context, id string) (api.Question, error) {
	list, err := s.backend.Questions(ctx, id)
	if err != nil {
		return api.Question{}, err
	}
	if len(list) == 0 {
		return api.Question{}, errors.New("no question is open")
	}
	s.mu.Lock()
	now := s.asks
	s.mu.Unlock()
	for _, q := range list {
		if q.ID == now {
			return q, nil
		}
	}
	return list[len(list)-1], nil
}

// approves reports whether a question is answered by yes or no.
func approves(q api.Question) bool {
	return slices.Contains([]string{"approval", "limit", "damage"}, q.Kind)
}

// decide gives an answer that was not typed at the question itself.
func (s *Session) decide(ctx context.Context, q api.Question, a api.Answer) error {
	s.mu.Lock()
	s.own = q.ID
	s.mu.Unlock()
	ends := s.over()
	done, err := s.backend.Answer(ctx, q.ID, a)
	if err != nil {
		s.mu.Lock()
		s.own = ""
		s.mu.Unlock()
		return fmt.Errorf("answer: %w", err)
	}
	s.goesOn(q.ID, done.Run, ends)
	return nil
}

// cycle is Shift+Tab: the next policy of approvals, for the next run. It reaches "all" only when the user named that
// before: one key too many must not allow everything.
func (s *Session) cycle() (note string) {
	st := s.state()
	list := policies
	if !st.Loose {
		list = policies[:len(policies)-1]
	}
	return s.allow(list[(slices.Index(list, st.Policy)+1)%len(list)])
}

// about describes what each policy leaves unasked.
var about = map[string]string{
	"ask":   "reading in the workspace",
	"read":  "reading everywhere",
	"edits": "reading everywhere and writing in the workspace",
	"all":   "every tool and command",
}

// allow sets the policy of the next run, and returns a line about it.
func (s *Session) allow(policy string) (note string) {
	note = "unasked: " + policy + ", " + about[policy]
	s.change(func(st *state) {
		if st.Task == "" {
			s.o.New.Approve = policy
		} else {
			s.again.Approve = policy
		}
		st.Policy = policy
		st.Loose = st.Loose || policy == "all"
		if st.Working {
			note += "; from the next run on"
		}
	})
	return note
}

// unasked is the row above the editor about the policy; "" when it is the usual one.
func (st state) unasked() string {
	if st.Policy == "" || st.Policy == policies[0] {
		return ""
	}
	return "· unasked: " + st.Policy + " (Shift+Tab changes it)"
}
