package engine_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
)

// releasedWaiting is a task that waits for an answer and was let go.
func (b *bench) releasedWaiting() (engine.Ticket, engine.Asked) {
	b.t.Helper()
	r := b.ask(asksWhich)
	r.Hold = time.Millisecond
	ticket := b.submit(r)
	b.waitForState(ticket.ID, "waiting")
	q := b.asked(ticket.Ref.ID)
	settledStatus(b, ticket.Ref.ID)
	return ticket, q
}

// While an engine refuses runs an answer goes on with the run that asked, also where that
// let its task go; new runs are refused.
func TestAnswersAreTakenWhileRunsAreRefused(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	ticket, q := b.releasedWaiting()
	b.engine.Refuse()
	if _, err := b.engine.Submit(t.Context(), b.ask(completesAtOnce)); !errors.Is(err, engine.ErrDraining) {
		t.Errorf("a new run: %v", err)
	}
	if got := b.reply(q.ID, engine.Reply{Choice: 1}); got.Run != ticket.ID {
		t.Errorf("got %+v, want got.Run.ID = ticket.ID", got.Run)
	}
	b.waitForState(ticket.ID, "completed")
}

// While an engine refuses runs, no message stops a run: the one that would take the message could not begin.
func TestNoRunIsInterruptedWhileRunsAreRefused(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(waitsForGo)
	works := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	b.engine.Refuse()
	m := engine.Message{Text: "stop that", Delivery: "interrupt", Request: engine.Request{Interactive: true}}
	if sent, err := b.engine.Send(t.Context(), works.Ref.ID, m); !errors.Is(err, engine.ErrDraining) {
		t.Errorf("got %+v %v, want ErrDraining", sent, err)
	}
	if left, err := b.engine.Inputs(t.Context(), works.Ref.ID); err != nil || len(left) != 0 {
		t.Errorf("got %+v %v, want an empty queue", left, err)
	}
	touch(t, r.Workspace, "go")
	b.waitForState(works.ID, "completed")
}

// Behind a drain a question stays as it is, for the next process, or until runs are admitted.
func TestAnswersOfRunsThatWereLetGoAreLeftToTheNextProcess(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	ticket, q := b.releasedWaiting()
	if err := b.engine.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Reply(t.Context(), q.ID, engine.Reply{Choice: 1}); !errors.Is(err, engine.ErrDraining) {
		t.Errorf("got %v, want errors.Is(err, engine.ErrDraining)", err)
	}
	if again := b.asked(ticket.Ref.ID); again.ID != q.ID {
		t.Errorf("got %+v, want again.ID = q.ID", again)
	}
	b.engine.Admit()
	b.reply(q.ID, engine.Reply{Choice: 1})
	b.waitForState(ticket.ID, "completed")
}

// A question is listed as long as its task says that it is open, however its run ended, and
// an answer goes on with the task.
func TestOpenQuestionsAreListedHoweverTheRunEnded(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	waits := b.submit(b.ask(asksWhich))
	b.waitForState(waits.ID, "waiting")
	q := b.asked(waits.Ref.ID)
	if _, err := b.engine.CancelTask(t.Context(), waits.Ref.ID, ""); err != nil {
		t.Fatal(err)
	}
	parked, p := b.releasedWaiting()
	if _, err := b.engine.CancelTask(t.Context(), parked.Ref.ID, ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ticket engine.Ticket
		asked  string
	}{{waits, q.ID}, {parked, p.ID}} {
		row := b.summary(c.ticket.Ref.ID)
		listed := 0
		all, err := b.engine.Questions(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one.ID == c.asked {
				listed++
			}
		}
		if row.Status != "cancelled" || row.OpenQuestions != listed {
			t.Errorf("the task is %s and says %d, listed are %d", row.Status, row.OpenQuestions, listed)
		}
		if listed == 0 {
			continue
		}
		got := b.reply(c.asked, engine.Reply{Choice: 1, Request: engine.Request{Interactive: true}})
		b.waitForState(got.Run, "completed")
	}
}
