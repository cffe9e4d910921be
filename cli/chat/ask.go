package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// ask is a question that the person is asked. It is shown, and its answer read, as
// roost run does both.
type ask struct {
	id     string // as answers name it
	task   string
	q      task.QuestionOpened
	seen   string // the event that opened it, "" when it stood before the chat
	cancel context.CancelFunc
	done   chan struct{}
	said   atomic.Bool // the person answered
}

// opened begins to ask, where somebody is here to be asked; else the question is shown.
func (t *talk) opened(in incoming) {
	var q task.QuestionOpened
	if json.Unmarshal(in.Data, &q) != nil || q.Question == "" {
		return
	}
	t.put(in.task, q, in.ID)
}

func (t *talk) put(of string, q task.QuestionOpened, seen string) {
	id := of + "." + q.Question
	if t.closed[id] || t.ask != nil && t.ask.id == id {
		return
	}
	d := t.screen(of)
	d.Flush()
	if !t.s.o.Ask {
		lines := []view.Line{{Style: view.Asked, Text: "? " + q.Text}}
		for i, c := range q.Choices {
			lines = append(lines, view.Line{Style: view.Asked, Text: fmt.Sprintf("  %d. %s%s", i+1, c, term.InMode(q, i))})
		}
		d.Lines(lines)
		t.s.change(func(st *state) { st.Waiting = true })
		return
	}
	ctx, cancel := context.WithCancel(t.ctx)
	a := &ask{id: id, task: of, q: q, seen: seen, cancel: cancel, done: make(chan struct{})}
	t.ask = a
	for len(t.s.answer) > 0 {
		<-t.s.answer // what was typed before it was asked answers nothing
	}
	t.s.change(func(st *state) { st.Asking, t.s.asks = true, id })
	go func() {
		defer close(a.done)
		defer cancel()
		r, err := term.LinePrompter(d, t.s.answer).Ask(ctx, q)
		t.s.change(func(st *state) { st.Asking, t.s.asks = false, "" })
		if err == nil {
			a.said.Store(true)
			t.give(a, r)
		}
		t.asked <- a
	}()
}

// give gives the answer. One that comes too late is no failure: somebody else was faster.
func (t *talk) give(a *ask, r term.Reply) {
	s := t.s
	if r.Stop {
		s.tell("· stopping and saving")
		s.stop(t.ctx, t.id)
		return
	}
	answer := report.Answer{Text: r.Text, Approve: r.Approve, Always: r.Always, Seen: a.seen}
	if _, err := s.desk.Answer(t.ctx, a.id, answer); err != nil && t.ctx.Err() == nil {
		s.complain(fmt.Errorf("answer: %w", err))
		return
	}
	s.change(func(st *state) { st.Waiting, st.Working = false, true })
}

// answered goes on behind a question.
func (t *talk) answered(a *ask) {
	<-a.done
	t.ask = nil
	t.closed[a.id] = true
	t.release()
}

// ends reports whether an event ends the question that is asked: somebody else answered
// it, or the run is over. Nobody is asked any more then.
func (t *talk) ends(in incoming) bool {
	a := t.ask
	if a.said.Load() {
		return false
	}
	e := in.read()
	elsewhere := in.Type == "question.closed" && in.task+"."+e.Question == a.id
	if !elsewhere && (in.Type != "run.ended" || in.task != t.id && in.task != a.task) {
		return false
	}
	a.cancel()
	<-a.done
	<-t.asked
	t.ask = nil
	t.s.mu.Lock()
	ours := t.s.own == a.id
	t.s.mu.Unlock()
	if elsewhere && !ours && !a.said.Load() {
		text := "· answered elsewhere"
		if e.By != "" {
			text = "· answered by " + e.By + " elsewhere"
		}
		if e.Reason != "" {
			text = "· the question is closed: " + e.Reason
		}
		t.s.tell("%s", text)
	}
	held := t.held
	t.held = nil
	for i, h := range held { // what came before
		t.show(h)
		if t.ask != nil {
			t.held = append(t.held, held[i+1:]...)
			t.held = append(t.held, in)
			return false
		}
	}
	return true
}

// open asks what was open before the chat came to the task.
func (s *Session) open(ctx context.Context, id string) error {
	list, err := s.desk.Questions(ctx, id)
	if err != nil {
		return fmt.Errorf("look for open questions: %w", err)
	}
	s.mu.Lock()
	t := s.talk
	s.mu.Unlock()
	for _, q := range list {
		data, err := json.Marshal(q.QuestionOpened)
		if err != nil {
			return errors.Join(errors.New("read a question"), err)
		}
		in := incoming{task: q.Task}
		in.Type, in.ID, in.Data = "question.opened", q.Event, data
		select {
		case t.in <- in:
		case <-t.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
