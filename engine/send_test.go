package engine_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
)

func (b *bench) send(id string, m engine.Message) api.Sent {
	b.t.Helper()
	sent, err := b.engine.Send(b.t.Context(), id, m)
	if err != nil {
		b.t.Fatal(err)
	}
	return sent
}

func TestWhatBecomesOfWords(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	on := engine.Request{Interactive: true}

	// To one that works: into its queue, once, and with its next turn.
	r := b.ask(waitsForGo)
	works := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	m := engine.Message{ID: "m-1", Text: "mind the gap", By: "test", Request: on}
	first, second := b.send(works.Ref.ID, m), b.send(works.Ref.ID, m)
	if first.Delivered != "queued" || first.Run != works.ID || first.Input != "m-1" || first != second {
		t.Errorf("%+v, again %+v", first, second)
	}

	// To one whose run is in the queue: they go along.
	queued := b.submit(b.ask(completesAtOnce))
	if sent := b.send(queued.Ref.ID, engine.Message{Text: "and this", By: "test", Request: on}); sent.Delivered != "queued" || sent.Run != queued.ID {
		t.Errorf("got %+v, want sent.Delivered = \"queued\" and sent.Run = queued.ID", sent)
	}
	if words, err := b.engine.Inputs(t.Context(), queued.Ref.ID); err != nil || len(words) != 2 {
		t.Errorf("got %+v %v, want no error and len(words) = 2", words, err)
	}

	touch(t, r.Workspace, "go")
	b.waitForState(works.ID, "completed")
	b.waitForState(queued.ID, "completed")
	if s := b.state(works.Ref.ID); rowsOf(s, "say:user_feedback", "mind the gap") != 1 {
		t.Errorf(`got %v, want rowsOf(s, "say:user_feedback", "mind the gap") = 1`, kinds(s))
	}
	if s := b.state(queued.Ref.ID); rowsOf(s, "say:user_feedback", "and this") != 1 || len(s.Runs.All) != 1 {
		t.Errorf(`got %v, want rowsOf(s, "say:user_feedback", "and this") = 1 and len(s.Runs.All) = 1`, kinds(s))
	}

	// To one that rests: a run.
	sent := b.send(queued.Ref.ID, engine.Message{ID: "m-2", Text: "once more", By: "test", Request: on})
	if sent.Delivered != "started" || sent.Run == queued.ID {
		t.Errorf("got %+v, want sent.Delivered = \"started\" and sent.Run != queued.ID", sent)
	}
	b.waitForState(sent.Run, "completed")
	again := b.send(queued.Ref.ID, engine.Message{ID: "m-2", Text: "once more", By: "test", Request: on})
	if again.Run != sent.Run {
		t.Errorf("%+v, again %+v", sent, again)
	}
	s := b.state(queued.Ref.ID)
	if len(s.Runs.All) != 2 || rowsOf(s, "say:user_feedback", "once more") != 1 {
		t.Errorf("%d runs: %v", len(s.Runs.All), kinds(s))
	}
	checkHistory(t, s, true)
}

func TestWordsAnswerAQuestionUnlessTheyAreForTheQueue(t *testing.T) {
	for _, hold := range []time.Duration{time.Hour, time.Millisecond} {
		b := newLimitedBench(t, engine.Options{})
		r := b.ask(asksWhich)
		r.Hold = hold
		ticket := b.submit(r)
		q := b.asked(ticket.Ref.ID)
		if hold == time.Millisecond {
			settledStatus(b, ticket.Ref.ID)
		}
		later := b.send(ticket.Ref.ID, engine.Message{Text: "for later", Delivery: "queue", By: "test"})
		if later.Delivered != "queued" || b.waitForState(ticket.ID, "waiting").Question != q.ID {
			t.Errorf(`got %+v, want later.Delivered = "queued" and b.waitForState(ticket.ID, "waiting").Question = q.ID`, later)
		}
		now := engine.Message{ID: "m", Text: "that", Delivery: "interrupt", By: "test", Request: engine.Request{Interactive: true}}
		sent := b.send(ticket.Ref.ID, now)
		if sent.Delivered != "answered" || sent.Question != q.ID || sent.Run != ticket.ID {
			t.Errorf("got %+v, want sent.Delivered = \"answered\" and sent.Question = q.ID and sent.Run = ticket.ID", sent)
		}
		b.waitForState(ticket.ID, "completed")
		if again := b.send(ticket.Ref.ID, now); again.Delivered != "answered" || again.Question != q.ID {
			t.Errorf("again: %+v", again)
		}
		s := b.state(ticket.Ref.ID)
		checkAnswers(t, s)
		if rowsOf(s, "say:user_feedback", "for later") != 1 || len(s.Queue) != 0 || len(s.Runs.All) != 1 {
			t.Errorf("%d runs, %d wait: %v", len(s.Runs.All), len(s.Queue), kinds(s))
		}
	}
}

func TestWordsThatInterrupt(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	r := b.ask(waitsForGo)
	ticket := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	begun := time.Now()
	sent := b.send(ticket.Ref.ID, engine.Message{Text: "stop that", Delivery: "interrupt", By: "test", Request: engine.Request{Interactive: true}})
	if sent.Delivered != "started" || sent.Run == ticket.ID {
		t.Errorf("got %+v, want sent.Delivered = \"started\" and sent.Run != ticket.ID", sent)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	was := b.waitForState(ticket.ID, "interrupted")
	if was.Code != "drained" {
		t.Errorf("got %+v, want was.Code = \"drained\"", was)
	}
	b.waitForState(sent.Run, "completed")
	s := b.state(ticket.Ref.ID)
	checkHistory(t, s, true)
	if rowsOf(s, "say:user_feedback", "stop that") != 1 || len(s.Queue) != 0 {
		t.Errorf(`got %v, want rowsOf(s, "say:user_feedback", "stop that") = 1 and len(s.Queue) = 0`, kinds(s))
	}
}

func TestWordsInTheQueueAreChanged(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	r := b.ask(waitsForGo)
	works := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	rests := b.submit(b.ask(completesAtOnce))
	other := "other words"
	for _, id := range []string{works.Ref.ID, rests.Ref.ID} {
		for _, m := range []string{"m-1", "m-2"} {
			b.send(id, engine.Message{ID: m, Text: "words " + m, By: "test", Request: engine.Request{Interactive: true}})
		}
		if err := b.engine.EditInput(t.Context(), id, "m-1", &other); err != nil {
			t.Error(err)
		}
		if err := b.engine.EditInput(t.Context(), id, "m-2", nil); err != nil {
			t.Error(err)
		}
		if err := b.engine.EditInput(t.Context(), id, "m-2", &other); !errors.Is(err, engine.ErrInput) {
			t.Errorf("one that was taken out: %v", err)
		}
		if err := b.engine.EditInput(t.Context(), id, "m-3", nil); !errors.Is(err, engine.ErrInput) {
			t.Errorf("one that never was: %v", err)
		}
	}
	touch(t, r.Workspace, "go")
	b.waitForState(works.ID, "completed")
	b.waitForState(rests.ID, "completed")
	for _, id := range []string{works.Ref.ID, rests.Ref.ID} {
		s := b.state(id)
		if rowsOf(s, "say:user_feedback", other) != 1 || rowsOf(s, "say:user_feedback", "words m-") != 0 || len(s.Queue) != 0 {
			t.Errorf(`got %v, want rowsOf(s, "say:user_feedback", other) = 1 and rowsOf(s, "say:user_feedback", "words m-") = 0 and len(s.Queue) = 0`,
				kinds(s))
		}
		if err := b.engine.EditInput(t.Context(), id, "m-1", nil); !errors.Is(err, engine.ErrInput) {
			t.Errorf("one that the model has: %v", err)
		}
	}
}
