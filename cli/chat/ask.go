package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

// opened begins to ask when a user is present; otherwise it only shows the question.
func (t *talk) opened(in incoming) {
	var q api.QuestionOpened
	if json.Unmarshal(in.Data, &q) != nil || q.Question == "" {
		return
	}
	t.put(in.task, q, in.ID)
}

func (t *talk) put(of string, q api.QuestionOpened, seen string) {
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
	t.s.change(func(st *state) {
		t.s.unread() // what was typed before it was asked answers nothing
		st.Asking, t.s.asks = true, id
	})
	go func() {
		defer close(a.done)
		defer cancel()
		r, err := term.LinePrompter(d, t.s.answer).Ask(ctx, q)
		t.s.change(func(st *state) {
			st.Asking, t.s.asks = false, ""
			for _, line := range t.s.unread() {
				if err == nil { // it was typed behind the answer, before it was taken
					st.keep(line)
				}
			}
		})
		if err == nil {
			a.said.Store(true)
			t.give(a, r)
		}
		t.asked <- a
	}()
}

// unread takes out the lines that were typed for a question and that it has not read. The
// caller holds the state.
func (s *Session) unread() (lines []string) {
	for len(s.answer) > 0 {
		lines = append(lines, <-s.answer)
	}
	return lines
}

// give sends the answer. An answer that comes too late is no failure: another client was faster. An answer that was
// not taken leaves the question open: the chat asks again, with the rejected words in the editor.
func (t *talk) give(a *ask, r term.Reply) {
	s := t.s
	if r.Stop {
		s.tell("· stopping and saving")
		s.stop(t.ctx, t.id)
		return
	}
	ends := s.over()
	done, err := s.backend.Answer(t.ctx, a.id, api.Answer{Text: r.Text, Approve: r.Approve, Always: r.Always, Seen: a.seen})
	switch {
	case err == nil:
		s.goesOn(a.id, done.Run, ends)
	case t.ctx.Err() == nil:
		s.complain(fmt.Errorf("answer: %w", err))
		if a.again = t.stillOpen(a, err); a.again {
			s.change(func(st *state) { st.Retype = retyped(r) })
		}
	}
}

// retyped is what a person had to type again for an answer. A letter alone is not: it
// would be given by Enter alone.
func retyped(r term.Reply) string {
	switch {
	case r.Approve == nil || r.Text == "":
		return r.Text
	case !*r.Approve:
		return "n " + r.Text
	case r.Always:
		return "a " + r.Text
	}
	return "y " + r.Text
}

// stillOpen reports whether a question is open whose answer was not taken. When that cannot be found out, it is:
// asking too much is better than not asking.
func (t *talk) stillOpen(a *ask, err error) bool {
	var p *client.Problem
	if !errors.As(err, &p) {
		return true
	}
	list, err := t.s.backend.Questions(t.ctx, a.task)
	return err != nil || slices.ContainsFunc(list, func(q api.Question) bool { return q.ID == a.id })
}

// open asks what was open before the chat came to the task.
func (s *Session) open(ctx context.Context, id string) error {
	list, err := s.backend.Questions(ctx, id)
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
