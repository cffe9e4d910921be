package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// So many words wait for a task and not one more, whether a run works on it or is queued.
func TestTheWordsThatWaitAreBounded(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	r := b.ask(waitsForGo)
	works := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	queued := b.submit(b.ask(completesAtOnce))
	var wait sync.WaitGroup
	for i := range 256 {
		wait.Go(func() {
			if err := b.engine.Runs()[0].Enqueue(t.Context(), task.InputQueued{Input: fmt.Sprint("m", i), Text: "x", By: "api"}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	b.commits(queued.Ref, func(n int) task.Event {
		return task.InputQueued{Input: fmt.Sprint("m", n), Text: "x", By: "api"}
	}, 255) // beside those that it begins with
	for _, id := range []string{works.Ref.ID, queued.Ref.ID} {
		if _, err := b.engine.Send(t.Context(), id, engine.Message{Text: "too much", By: "api"}); !errors.Is(err, engine.ErrQueueFull) {
			t.Errorf("words beyond the bound: %v", err)
		}
		if words, err := b.engine.Inputs(t.Context(), id); err != nil || len(words) != 256 {
			t.Errorf("%d wait, %v", len(words), err)
		}
	}
	for _, id := range []string{queued.Ref.ID, works.Ref.ID} {
		if _, err := b.engine.CancelTask(t.Context(), id, ""); err != nil {
			t.Error(err)
		}
	}
}

// commits adds so many events to a task that nobody works on, as one commit.
func (b *bench) commits(ref store.Ref, event func(int) task.Event, n int) {
	b.t.Helper()
	owned, err := b.store.Own(b.t.Context(), ref)
	if err != nil {
		b.t.Fatal(err)
	}
	var events []task.Event
	for i := range n {
		events = append(events, event(i))
	}
	if err := errors.Join(owned.Task.Commit(b.t.Context(), events...), owned.Task.Close(context.Background())); err != nil {
		b.t.Fatal(err)
	}
}

// The words that a task begins with are no person's to change.
func TestTheWordsOfATasksOwnAreNotChanged(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	ticket := b.submit(b.ask(completesAtOnce))
	b.waitForState(ticket.ID, "completed")
	settledStatus(b, ticket.Ref.ID)
	b.commits(ticket.Ref, func(int) task.Event { return task.InputQueued{Input: "new_task", Text: "do part one"} }, 1)
	other := "do nothing"
	for _, text := range []*string{&other, nil} {
		if err := b.engine.EditInput(t.Context(), ticket.Ref.ID, "new_task", text); !errors.Is(err, engine.ErrInput) {
			t.Error(err)
		}
	}
	if words, err := b.engine.Inputs(t.Context(), ticket.Ref.ID); err != nil || len(words) != 1 || words[0].Text != "do part one" {
		t.Errorf("got %+v %v, want no error and len(words) = 1 and words[0].Text = \"do part one\"", words, err)
	}
}

// Words for a task that answered its subtask are taken once, under their name: also when that
// one has gone on, and ended, since.
func TestWordsThatAnsweredASubtaskAreTakenOnce(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(`
- tools: [{name: new_task, input: {mode: code, message: "do part ONE", todos: null}}]
- tools: [{name: attempt_completion, input: {result: "All is done."}}]
- task: part ONE
- tools: [{name: ask_followup_question, input: {question: "Which one?", follow_up: []}}]
- tools: [{name: attempt_completion, input: {result: "One is done."}}]
`)
	ticket := b.submit(r)
	b.waitForState(ticket.ID, "waiting")
	m := engine.Message{ID: "m", Text: "this one", By: "test", Request: engine.Request{Interactive: true}}
	first := b.send(ticket.Ref.ID, m)
	if first.Delivered != "answered" {
		t.Fatalf("got %+v, want first.Delivered = \"answered\"", first)
	}
	b.waitForState(ticket.ID, "completed")
	settledStatus(b, ticket.Ref.ID)
	again := b.send(ticket.Ref.ID, m)
	if again != first {
		t.Errorf("%+v, again %+v", first, again)
	}
	if s := b.state(ticket.Ref.ID); len(s.Runs.All) != 1 || rowsOf(s, "say:user_feedback", "this one") != 0 {
		t.Errorf("%d runs: %v", len(s.Runs.All), kinds(s))
	}
}

// A queued run whose task somebody else holds just then is not lost: it starts when that one
// has let go.
func TestAQueuedRunWhoseTaskIsHeldStartsLater(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	r := b.ask(waitsForGo)
	works := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	queued := b.submit(b.ask(completesAtOnce))
	held, err := b.store.Own(t.Context(), queued.Ref)
	if err != nil {
		t.Fatal(err)
	}
	touch(t, r.Workspace, "go")
	b.waitForState(works.ID, "completed")
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, _, waits := b.engine.Load(); waits == 0 {
			break // its turn has come
		} else if time.Now().After(end) {
			t.Fatal("its turn never came")
		}
	}
	if err := held.Task.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.waitForState(queued.ID, "completed")
}

// Words for a run that waits in the queue of an earlier process do not replace the words that it was queued with, whether
// there is a slot for it now or not.
func TestWordsForAQueuedRunJoinItsOwn(t *testing.T) {
	for _, slots := range []int{1, 2} {
		b := newLimitedBench(t, engine.Options{MaxRuns: 1})
		task := b.ask(completesAtOnce + completesAtOnce)
		ticket := b.submit(task)
		b.waitForState(ticket.ID, "completed")
		settledStatus(b, ticket.Ref.ID)
		busy := func() engine.Request {
			r := b.ask(waitsForGo)
			b.submit(r)
			waitForFile(t, filepath.Join(r.Workspace, "here"))
			return r
		}
		busy()
		more := engine.Request{Task: ticket.Ref.ID, Text: "part two", Interactive: true, Origin: "api"}
		queued := b.submit(more)
		b.restart(engine.Options{MaxRuns: slots})
		other := busy()
		more.Text = "part three"
		if again := b.submit(more); again.ID != queued.ID {
			t.Errorf("with %d slots: got the run %s, want %s", slots, again.ID, queued.ID)
		}
		touch(t, other.Workspace, "go")
		b.waitForState(queued.ID, "completed")
		s := b.state(ticket.Ref.ID)
		if two, three := rowsOf(s, "say:user_feedback", "part two"), rowsOf(s, "say:user_feedback", "part three"); two != 1 || three != 1 {
			t.Errorf("with %d slots: got the first words %d times and the second %d times, want each once: %v", slots, two, three, kinds(s))
		}
	}
}

// A queued run whose task cannot be read just then is not lost: it starts when the task can be read again.
func TestAQueuedRunWhoseTaskCannotBeReadStartsLater(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	r := b.ask(waitsForGo)
	works := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	queued := b.submit(b.ask(completesAtOnce))
	log := filepath.Join(queued.Ref.Log, "journal.jsonl")
	if err := errors.Join(os.Rename(log, log+".away"), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	touch(t, r.Workspace, "go")
	b.waitForState(works.ID, "completed")
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, _, waits := b.engine.Load(); waits == 0 {
			break // its turn has come
		} else if time.Now().After(end) {
			t.Fatal("its turn never came")
		}
	}
	if err := errors.Join(os.Remove(log), os.Rename(log+".away", log)); err != nil {
		t.Fatal(err)
	}
	b.waitForState(queued.ID, "completed")
}
