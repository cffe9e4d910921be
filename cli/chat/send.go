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
	return s.deliver(ctx, st.Task, text, func(ctx context.Context, words string) error {
		if st.Working {
			return s.queue(ctx, st.Task, words)
		}
		s.echo(text)
		if st.Task == "" {
			return s.begin(ctx, words)
		}
		return s.goOn(ctx, st.Task, words)
	})
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
	var again api.NewRun
	s.locked(func() { again = s.again })
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
	if busy, is := errors.AsType[*client.Problem](err); is && busy.Status == http.StatusConflict && busy.Code == "task_busy" {
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
	s.locked(func() { s.again = api.NewRun{} })
	return run.ID, nil
}

// queue gives words to the run that works: it takes them with its next request.
func (s *Session) queue(ctx context.Context, id, text string) error {
	sent, err := s.backend.Send(ctx, id, api.Message{Text: text, Delivery: "queue"})
	if err == nil && sent.Delivered == "started" { // the run had ended
		s.started(sent.Run)
	}
	return err
}

// deliver sends what a person typed, and with it the outputs that go along. Those that came since wait for the next
// words.
func (s *Session) deliver(ctx context.Context, task, text string, send func(ctx context.Context, words string) error) error {
	words, n := text, 0
	s.locked(func() {
		for _, c := range s.carried {
			words += "\n\n" + c.text
		}
		if n = len(s.carried); n > 0 {
			s.brief[words] = text
		}
	})
	err := s.once(ctx, task, words, func(ctx context.Context) error { return send(ctx, words) })
	if err == nil {
		s.locked(func() { s.carried = s.carried[min(n, len(s.carried)):] })
	}
	return err
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
	if st := s.state(); !st.Working {
		if st.Asking || st.Waiting {
			return errors.New("no run works on the task: it waits for an answer (/answer WORDS, /reject WHY)")
		}
		return s.prompt(ctx, rest)
	}
	return s.deliver(ctx, id, rest, func(ctx context.Context, words string) error { return s.queue(ctx, id, words) })
}

// interject saves and interrupts the run's present step, and continues with words at once.
func (s *Session) interject(ctx context.Context, id, rest string) error {
	st := s.state()
	switch {
	case st.Asking || st.Waiting:
		return errors.New("a question is open: /reject WHY or /answer WORDS")
	case !st.Working:
		return s.prompt(ctx, rest)
	}
	return s.deliver(ctx, id, rest, func(ctx context.Context, words string) error {
		sent, err := s.backend.Send(ctx, id, api.Message{Text: words, Delivery: "interrupt"})
		if err == nil {
			s.started(sent.Run)
		}
		return err
	})
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
	return s.decide(ctx, q, api.Answer{Approve: new(false), Text: rest, Seen: q.Event})
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
	now := ""
	s.locked(func() { now = s.asks })
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
	s.locked(func() { s.own = q.ID })
	ends := s.over()
	done, err := s.backend.Answer(ctx, q.ID, a)
	if err != nil {
		s.locked(func() { s.own = "" })
		return fmt.Errorf("answer: %w", err)
	}
	s.goesOn(q.ID, done.Run, ends)
	return nil
}
