package chat

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
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

// complain prints what went wrong and what helps.
func (s *Session) complain(err error) {
	text := display.OneLine(err.Error())
	if errors.Is(err, context.Canceled) {
		text = "stopped"
	}
	lines := s.style.Paint(view.Bad, "✗ "+text)
	var p *client.Problem
	if errors.As(err, &p) {
		for _, w := range p.Errors {
			lines += "\n" + s.style.Paint(view.Dim, "  "+display.OneLine(w.Parameter+": "+w.Detail))
		}
		for _, try := range p.Suggestions {
			lines += "\n" + s.style.Paint(view.Dim, "  "+display.OneLine(try))
		}
	}
	s.out.block(lines)
}
