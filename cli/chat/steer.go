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
