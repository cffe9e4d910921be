package chat

import (
	"context"
	"errors"
	"net/http"
	"reflect"

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
