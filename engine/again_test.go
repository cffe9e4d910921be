//go:build unix

package engine_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/task"
)

// heldAtItsEnd is a bench whose runs, once they have ended, keep their task until end is called.
func heldAtItsEnd(t *testing.T) (b *bench, end func()) {
	t.Helper()
	dir := t.TempDir()
	b = newLimitedBench(t, engine.Options{})
	b.engine.Configure(setup.Config{Keys: map[string]string{}, Hooks: []setup.Hook{
		{Name: "last", On: "run_end", Command: "cd " + dir + "; touch here; while [ ! -e go ] && [ -e here ]; do sleep 0.01; done; rm go here"},
	}})
	return b, func() {
		t.Helper()
		waitForFile(t, filepath.Join(dir, "here"))
		touch(t, dir, "go")
	}
}

// lateWords gives words to the run at work when it has come to its end, and returns the run that takes them.
func (b *bench) lateWords(text string, end func()) {
	b.t.Helper()
	run := b.engine.Runs()[0]
	b.waitForState(run.ID, "completed")
	if err := run.Enqueue(b.t.Context(), task.InputQueued{Input: "m", Text: text, By: "test"}); err != nil {
		b.t.Fatal(err)
	}
	end()
	next, err := run.Next(b.t.Context())
	if err != nil || next == nil {
		b.t.Fatalf("got %v, %v, want the run that takes the words", next, err)
	}
	b.waitForState(next.ID, "completed")
	end()
	if s := b.state(run.TaskID); rowsOf(s, "say:user_feedback", text) != 1 || len(s.Queue) != 0 {
		b.t.Errorf("got %v with %d in the queue, want the words once and an empty queue", kinds(s), len(s.Queue))
	}
}

// The answer that continued a run is not given again to the run that takes its late words.
func TestLateWordsOfARunThatContinuedWithAnAnswer(t *testing.T) {
	b, end := heldAtItsEnd(t)
	r := b.ask(asksWhich + completesAtOnce)
	r.Hold = time.Millisecond
	ticket := b.submit(r)
	b.waitForState(ticket.ID, "waiting")
	q := b.asked(ticket.Ref.ID)
	end()
	settledStatus(b, ticket.Ref.ID)
	b.reply(q.ID, engine.Reply{Text: "this", By: "test", Request: engine.Request{Interactive: true}})
	b.lateWords("one more thing", end)
}

// The run that takes late words continues in the mode that the model changed to, and not in the one that the run began in.
func TestLateWordsKeepTheModeOfTheTask(t *testing.T) {
	b, end := heldAtItsEnd(t)
	r := b.ask(`
- tools: [{name: switch_mode, input: {mode_slug: code, reason: "it is planned"}}]
` + completesAtOnce + completesAtOnce)
	r.Mode = "architect"
	ticket := b.submit(r)
	b.lateWords("one more thing", end)
	if got := b.settings(ticket.Ref.ID).Mode; got != "code" {
		t.Errorf("got the mode %q, want code", got)
	}
}

// Late words that come while the process starts no more runs are for a queued run, which the next process starts.
func TestLateWordsDuringADrain(t *testing.T) {
	b, end := heldAtItsEnd(t)
	ticket := b.submit(b.ask(completesAtOnce + completesAtOnce))
	b.waitForState(ticket.ID, "completed")
	sent := task.InputQueued{Input: "m", Text: "one more thing", By: "test"}
	if err := b.engine.Runs()[0].Enqueue(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	b.engine.Refuse()
	end()
	if err := b.engine.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.restart(engine.Options{})
	if err := b.engine.Recover(context.Background(), engine.RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	runs, err := b.engine.RunsOf(t.Context(), ticket.Ref.ID)
	if err != nil || len(runs) != 2 {
		t.Fatalf("got %+v %v, want two runs", runs, err)
	}
	b.waitForState(runs[0].ID, "completed")
	if s := b.state(ticket.Ref.ID); rowsOf(s, "say:user_feedback", sent.Text) != 1 || len(s.Queue) != 0 {
		t.Errorf("got %v with %d in the queue, want the words once and an empty queue", kinds(s), len(s.Queue))
	}
}
