package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// prompt gives words to the task: as its first ones, into the queue of the run that
// works, or to a new run.
func (s *Session) prompt(ctx context.Context, text string) error {
	st := s.state()
	words, outputs := s.laden(text)
	if err := s.once(ctx, st.Task, words, func(ctx context.Context) error {
		switch {
		case st.Task == "":
			s.echo(text)
			return s.begin(ctx, words)
		case st.Working:
			return s.queue(ctx, st.Task, words)
		}
		s.echo(text)
		return s.goOn(ctx, st.Task, words)
	}); err != nil {
		return err
	}
	s.unladen(outputs)
	return nil
}

// begin starts a task.
func (s *Session) begin(ctx context.Context, text string) error {
	n := s.o.New
	n.Message = &api.Words{Text: text}
	s.shown(text)
	run, err := s.backend.Start(ctx, n)
	if err != nil {
		s.unshown(text)
		return err
	}
	s.came = true
	s.tell("task %s", run.Task)
	if err := s.follow(ctx, run.Task, "0"); err != nil {
		return err
	}
	s.started(run.ID)
	return nil
}

// goOn continues a task that nothing works on, with the settings that were changed.
func (s *Session) goOn(ctx context.Context, id, text string) error {
	s.mu.Lock()
	again := s.again
	s.mu.Unlock()
	s.shown(text)
	run, err := "", error(nil)
	if reflect.DeepEqual(again, api.NewRun{}) {
		var sent api.Sent
		sent, err = s.backend.Send(ctx, id, api.Message{Text: text})
		run = sent.Run
	} else {
		again.Message = &api.Words{Text: text}
		run, err = s.resume(ctx, id, again)
	}
	var busy *client.Problem
	if errors.As(err, &busy) && busy.Status == http.StatusConflict && busy.Code == "task_busy" {
		s.unshown(text)
		return s.queue(client.Keyed(ctx, client.KeyOf(ctx)+"-queued"), id, text) // another client was faster
	}
	if err != nil {
		s.unshown(text)
		return err
	}
	s.started(run)
	return nil
}

// resume starts a run with what was changed, which then is the task's.
func (s *Session) resume(ctx context.Context, id string, n api.NewRun) (string, error) {
	run, err := s.backend.Resume(ctx, id, n)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.again = api.NewRun{}
	s.mu.Unlock()
	return run.ID, nil
}

// queue gives words to the run that works: it takes them with its next request.
func (s *Session) queue(ctx context.Context, id, text string) error {
	sent, err := s.backend.Send(ctx, id, api.Message{Text: text, Delivery: "queue"})
	if err != nil {
		return err
	}
	if sent.Delivered == "started" { // the run had ended
		s.started(sent.Run)
		return nil
	}
	return nil
}

// once sends words that may be those that are owed. Other words, or another task, clear the debt: a user who types
// something else does not mean to repeat.
func (s *Session) once(ctx context.Context, task, words string, send func(context.Context) error) error {
	o := s.owed
	if o == nil || o.task != task || o.words != words {
		o = &owed{task: task, words: words, key: client.NewKey(), send: send}
	}
	err := o.send(client.Keyed(ctx, o.key))
	if s.owed = nil; client.Lost(err) {
		s.owed = o
	}
	return err
}

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
