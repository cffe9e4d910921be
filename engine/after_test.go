package engine_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/task"
)

// A process that started a run, and ends with it, goes on with the run that somebody's
// words began in its place, at whatever moment it looks.
func TestAfterARunThatWasInterruptedWithWords(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(waitsForGo)
	run := b.start(r)
	waitForFile(t, filepath.Join(b.workspace, "here"))
	var sent api.Sent
	var wait sync.WaitGroup
	wait.Go(func() {
		sent = b.send(run.TaskID, engine.Message{Text: "stop that", Delivery: "interrupt", By: "test", Request: engine.Request{Interactive: true}})
	})
	if o := b.end(run); o.State != "interrupted" {
		t.Errorf("the run ended %+v", o)
	}
	next := run.After(context.Background())
	wait.Wait()
	if next == nil || next.ID != sent.Run || next.TaskID != run.TaskID {
		t.Fatalf("after it comes %+v, and the words began run %s", next, sent.Run)
	}
	if o := b.end(next); o.State != "completed" {
		t.Errorf("the next one ended %+v", o)
	}
	if _, err := next.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	if late := run.After(context.Background()); late != next {
		t.Errorf("after the next run has ended, After gives %+v, want run %s", late, next.ID)
	}
	if last := next.After(context.Background()); last != nil {
		t.Errorf("and after that %s", last.ID)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if last := next.After(ended); last != nil {
		t.Errorf("without time to look: %s", last.ID)
	}
}

// The run that a message begins in the place of another one stays within the limit of the day that the other one was given.
func TestAnInterruptedRunsLimitOfTheDayHoldsForTheNextOne(t *testing.T) {
	first := llmtest.Call("toolu_1", "execute_command", `{"command": "touch here; while [ -e here ]; do sleep 0.01; done", "cwd": null}`)
	first.Input = 100_000
	b, server := newAPIBench(t, first, done)
	ticket := b.submit(engine.Request{Text: "go", Interactive: true, Choice: setup.Choice{
		Workspace: b.workspace, Approve: "all", Provider: "anthropic", Model: "claude-sonnet-4-5", RunChoice: task.RunChoice{MaxDayMicros: 1000},
	}})
	waitForFile(t, filepath.Join(b.workspace, "here"))
	sent := b.send(ticket.Ref.ID, engine.Message{Text: "stop that", Delivery: "interrupt", By: "test", Request: engine.Request{Interactive: true}})
	if sent.Delivered != "started" {
		t.Fatalf("got %+v, want a run that the message started", sent)
	}
	if got := b.waitForState(sent.Run, "interrupted"); got.Code != "cost_day" || len(server.Requests()) != 1 {
		t.Errorf("got the code %q after %d requests, want cost_day after 1", got.Code, len(server.Requests()))
	}
}

// The run that a message begins in the place of another one keeps nothing of files either.
func TestAnInterruptedRunWithoutCheckpointsIsFollowedByAnother(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(`
- tools: [{name: execute_command, input: {command: "touch here; sleep 600"}}]
- tools: [{name: write_to_file, input: {path: a.txt, content: "a"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	r.NoCheckpoints = true
	ticket := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	sent := b.send(ticket.Ref.ID, engine.Message{Text: "stop", Delivery: "interrupt", By: "test", Request: engine.Request{Interactive: true}})
	b.waitForState(sent.Run, "completed")
	list, err := b.engine.Checkpoints().List(t.Context(), ticket.Ref.ID)
	if err != nil || len(list.Checkpoints) != 0 {
		t.Errorf("got %+v %v, want no checkpoint", list, err)
	}
}

// What a caller chose for a run alone holds until the end of that run, over a wait for a person, a wait in the queue and a
// restart.
func TestWhatWasChosenForARunHoldsUntilItsEnd(t *testing.T) {
	const asks = `
- tools: [{name: ask_followup_question, input: {question: "Which one?", follow_up: []}}]
- tools: [{name: write_to_file, input: {path: a.txt, content: "a"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`
	one := engine.Options{MaxRuns: 1, Hold: time.Millisecond}
	for name, c := range map[string]struct{ queued, restarted bool }{
		"released":              {},
		"released, restarted":   {restarted: true},
		"queued":                {queued: true},
		"queued, and restarted": {queued: true, restarted: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimitedBench(t, one)
			busy, r := b.ask(waitsForGo), b.ask(asks)
			if c.queued {
				b.submit(busy)
				waitForFile(t, filepath.Join(busy.Workspace, "here"))
			}
			r.NoCheckpoints, r.MaxDayMicros, r.StandIn = true, 5e6, "mine"
			ticket := b.submit(r)
			if !c.queued {
				b.waitForState(ticket.ID, "waiting")
				settledStatus(b, ticket.Ref.ID)
			}
			if c.restarted {
				b.restart(one)
				if err := b.engine.Recover(t.Context(), engine.RecoverOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			touch(t, busy.Workspace, "go")
			b.waitForState(ticket.ID, "waiting")
			settledStatus(b, ticket.Ref.ID)
			b.send(ticket.Ref.ID, engine.Message{Text: "this", By: "test", Request: engine.Request{Interactive: true}})
			got := b.waitForState(ticket.ID, "completed").RunChoice
			if want := (task.RunChoice{MaxDayMicros: 5e6, StandIn: "mine", NoCheckpoints: true}); got != want {
				t.Errorf("the run has %+v, want %+v", got, want)
			}
			if list, err := b.engine.Checkpoints().List(t.Context(), ticket.Ref.ID); err != nil || len(list.Checkpoints) != 0 {
				t.Errorf("got %+v %v, want no checkpoint", list, err)
			}
		})
	}
}
