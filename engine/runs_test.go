package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/rootkey"
)

func TestRunsAreFoundByTheirNames(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	one := b.submit(b.ask(completesAtOnce))
	b.waitForState(one.ID, "completed")
	two := b.submit(engine.Request{Task: one.Ref.ID, Text: "again", Interactive: true})
	b.waitForState(two.ID, "completed")
	waits := b.submit(b.ask(asksWhich))
	b.waitForState(waits.ID, "waiting")
	for _, id := range []string{"", "x", "no-such-run-of-any-task", one.ID[:len(one.ID)-1] + "x"} {
		if info, err := b.engine.RunByID(t.Context(), id); !errors.Is(err, engine.ErrNoRun) {
			t.Errorf("%q: got %+v %v, want errors.Is(err, engine.ErrNoRun)", id, info, err)
		}
	}
	look := func() (of, all, active []string, first engine.RunInfo) {
		runs, err := b.engine.RunsOf(t.Context(), one.Ref.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			of = append(of, r.ID+" "+r.State)
		}
		every, next, err := b.engine.AllRuns(t.Context(), engine.RunFilter{})
		if err != nil || next != "" {
			t.Fatal(next, err)
		}
		for _, r := range every {
			all = append(all, r.ID)
		}
		waiting, _, err := b.engine.AllRuns(t.Context(), engine.RunFilter{State: "waiting"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range waiting {
			active = append(active, r.ID)
		}
		first, err = b.engine.RunByID(t.Context(), one.ID)
		if err != nil {
			t.Fatal(err)
		}
		return of, all, active, first
	}
	of, all, active, first := look()
	if d := cmp.Diff([]string{two.ID + " completed", one.ID + " completed"}, of); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{waits.ID, two.ID}, all); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{waits.ID}, active); d != "" {
		t.Error(d)
	}
	// Another process is told the same, of its own reading.
	if err := b.engine.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.restart(engine.Options{})
	of2, all2, active2, first2 := look()
	if d := cmp.Diff([]any{of, all, active, first}, []any{of2, all2, active2, first2}); d != "" {
		t.Error(d)
	}
	// In pages each comes once.
	var paged []string
	for cursor := ""; ; {
		page, next, err := b.engine.AllRuns(t.Context(), engine.RunFilter{Limit: 1, Cursor: cursor})
		if err != nil || len(page) > 1 {
			t.Fatal(page, err)
		}
		for _, r := range page {
			paged = append(paged, r.ID)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if d := cmp.Diff(all, paged); d != "" {
		t.Error(d)
	}
	if _, _, err := b.engine.AllRuns(t.Context(), engine.RunFilter{Cursor: "x"}); err == nil {
		t.Error("a cursor that no list gave was taken")
	}
}

func TestATaskIsCancelledWhateverItDoes(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	r := b.ask(`
- tools: [{name: execute_command, input: {command: "touch here; sleep 600"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	works := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	queued := b.submit(b.ask(completesAtOnce))
	asks := b.ask(asksWhich)
	asks.Hold = time.Millisecond

	for _, ticket := range []engine.Ticket{queued, works} {
		begun := time.Now()
		info, err := b.engine.CancelTask(t.Context(), ticket.Ref.ID, "")
		if err != nil || info.State != "cancelled" || info.ID != ticket.ID || info.Here {
			t.Errorf("got %+v %v, want no error and info.State = \"cancelled\" and info.ID = ticket.ID and not info.Here",
				info, err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		again, err := b.engine.CancelTask(t.Context(), ticket.Ref.ID, "")
		if err != nil || again.ID != ticket.ID || again.State != "cancelled" {
			t.Errorf("again: %+v %v", again, err)
		}
	}
	parked := b.submit(asks)
	b.waitForState(parked.ID, "waiting")
	settledStatus(b, parked.Ref.ID)
	if info, err := b.engine.CancelTask(t.Context(), parked.Ref.ID, ""); err != nil || info.State != "cancelled" {
		t.Errorf("one that was let go: %+v %v", info, err)
	}
	if running, waiting, left := b.engine.Load(); running+waiting+left != 0 {
		t.Errorf("left: %d %d %d", running, waiting, left)
	}
	// What was said to the queued one is not lost: it begins with that.
	next := b.submit(engine.Request{Task: queued.Ref.ID, Interactive: true})
	b.waitForState(next.ID, "completed")
	if s := b.state(queued.Ref.ID); rowsOf(s, "say:text", "go") != 1 {
		t.Errorf(`got %v, want rowsOf(s, "say:text", "go") = 1`, kinds(s))
	}
	ref, err := b.engine.Create(t.Context(), engine.Request{Choice: setup.Choice{Workspace: b.workspace, Provider: "script", Model: r.Model}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.CancelTask(t.Context(), ref.ID, ""); !errors.Is(err, engine.ErrNoRun) {
		t.Errorf("a task that never ran: %v", err)
	}
}

// newSharedBench is a bench whose tasks are in a database.
func newSharedBench(t *testing.T) *bench {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
	j := postgres.Open(context.Background(), db, postgres.Options{})
	t.Cleanup(func() { j.Close(); db.Close() })
	b := newBench(t)
	fixture.NoError(t, b.engine.Close(t.Context()))
	keys := fixture.Must[*rootkey.Ring](t)(rootkey.Join(t.Context(), db, filepath.Join(b.root, "group-key.json")))
	b.store = fixture.Must[*store.Store](t)(store.Open(store.Options{Root: b.root, Shared: j, Keys: keys, Program: "test"}))
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	return b
}

// The list of all runs is the same where the tasks are in a database: it also has runs that have ended.
func TestAllRunsOfADatabase(t *testing.T) {
	b := newSharedBench(t)
	var want []string
	for range 3 {
		one := b.submit(b.ask(completesAtOnce))
		b.waitForState(one.ID, "completed")
		want = append([]string{one.ID}, want...)
	}
	asks := b.submit(b.ask(asksWhich))
	b.waitForState(asks.ID, "waiting")
	again := b.submit(engine.Request{Task: fixture.Must[engine.RunInfo](t)(b.engine.RunByID(t.Context(), want[2])).Ref.ID, Text: "again", Interactive: true})
	b.waitForState(again.ID, "completed")
	want = []string{asks.ID, again.ID, want[0], want[1]}
	all, _, err := b.engine.AllRuns(t.Context(), engine.RunFilter{})
	if got := api.Each(all, func(r engine.RunInfo) string { return r.ID }); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
}

// A caller that cancels a run means that run, and not the one that the task has by then.
func TestACancelOfARunStopsNoOther(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	first := b.submit(b.ask(completesAtOnce + asksWhich))
	b.waitForState(first.ID, "completed")
	blocks := b.ask(waitsForGo)
	b.submit(blocks)
	second := b.submit(engine.Request{Task: first.Ref.ID, Text: "again", Interactive: true})
	for _, state := range []string{"queued", "waiting"} {
		if got := b.waitForState(second.ID, state); got.State != state {
			t.Fatalf("the next run: got %s, want %s", got.State, state)
		}
		got, err := b.engine.CancelTask(t.Context(), first.Ref.ID, first.ID)
		if err != nil || got.ID != first.ID || got.State != "completed" {
			t.Errorf("got %+v %v, want the first run, completed", got, err)
		}
		if now, err := b.engine.RunByID(t.Context(), second.ID); err != nil || now.State != state {
			t.Errorf("the next run: got %s %v, want %s", now.State, err, state)
		}
		touch(t, blocks.Workspace, "go")
	}
	if got, err := b.engine.CancelTask(t.Context(), first.Ref.ID, second.ID); err != nil || got.State != "cancelled" {
		t.Errorf("its own cancel: got %+v %v, want it cancelled", got, err)
	}
}

// A cancel that cannot be recorded leaves the run in the queue, which starts it.
func TestACancelThatFailsLeavesTheRunInTheQueue(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	blocks := b.ask(waitsForGo)
	b.submit(blocks)
	queued := b.submit(b.ask(completesAtOnce))
	held, err := b.store.Own(t.Context(), queued.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.engine.CancelTask(t.Context(), queued.Ref.ID, ""); err == nil {
		t.Errorf("got %+v, want an error: the task is held", got)
	}
	if err := held.Task.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	touch(t, blocks.Workspace, "go")
	b.waitForState(queued.ID, "completed")
}

// Who stops a task stops the subtask that it waits for.
func TestCancellingATaskStopsItsSubtask(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	ticket := b.submit(b.ask(asksBelow))
	b.waitForState(ticket.ID, "waiting")
	child := b.onlyChild(ticket.Ref.ID).ID
	b.asked(child)
	info, err := b.engine.CancelTask(t.Context(), ticket.Ref.ID, "")
	if err != nil || info.State != "cancelled" {
		t.Fatalf("got %+v %v, want no error and info.State = \"cancelled\"", info, err)
	}
	below, err := b.engine.RunsOf(t.Context(), child)
	if err != nil || len(below) != 1 || below[0].State != "interrupted" || below[0].Code != "parent" {
		t.Errorf(`got %+v %v, want no error and len(below) = 1 and below[0].State = "interrupted" and below[0].Code = "parent"`,
			below, err)
	}
	for _, id := range []string{ticket.Ref.ID, child} { // the engine forgets a run just after its end
		if free, err := b.engine.WaitForRelease(t.Context(), id); err != nil || !free {
			t.Errorf("task %s: got free = %v, %v, want true", id, free, err)
		}
	}
	if len(b.engine.Runs()) != 0 {
		t.Error("something still runs")
	}
}

func TestADrainLosesNothing(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 2})
	slow, quick := b.ask(waitsForGo), b.ask(waitsForGo)
	asks := b.submit(b.ask(asksWhich))
	b.waitForState(asks.ID, "waiting")
	stuck, works := b.submit(slow), b.submit(quick)
	waitForFile(t, filepath.Join(slow.Workspace, "here"))
	waitForFile(t, filepath.Join(quick.Workspace, "here"))
	queued := b.submit(b.ask(completesAtOnce))
	if queued.State != "queued" {
		t.Fatalf("got %+v, want queued.State = \"queued\"", queued)
	}
	patience, stop := context.WithCancel(t.Context())
	defer stop()
	drained := make(chan error, 1)
	go func() { drained <- b.engine.Drain(patience) }()
	for !b.engine.Draining() {
		time.Sleep(time.Millisecond)
	}
	touch(t, quick.Workspace, "go") // and its place is given to nobody
	b.waitForState(works.ID, "completed")
	if _, err := b.engine.Submit(t.Context(), b.ask(completesAtOnce)); !errors.Is(err, engine.ErrDraining) {
		t.Errorf("a new task: %v", err)
	}
	if _, err := b.engine.Submit(t.Context(), engine.Request{Task: works.Ref.ID, RunID: works.ID}); err != nil {
		t.Errorf("a request that was taken before: %v", err)
	}
	stop()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if info := b.waitForState(stuck.ID, "interrupted"); info.Code != "drained" {
		t.Errorf("got %+v, want info.Code = \"drained\"", info)
	}
	b.waitForState(queued.ID, "queued")
	b.waitForState(asks.ID, "waiting")
	touch(t, slow.Workspace, "go")

	b.restart(engine.Options{})
	if err := b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}); err != nil {
		t.Fatal(err)
	}
	b.waitForState(queued.ID, "completed")
	runs, err := b.engine.RunsOf(t.Context(), stuck.Ref.ID)
	if err != nil || len(runs) != 2 {
		t.Fatalf("got %+v %v, want no error and len(runs) = 2", runs, err)
	}
	b.waitForState(runs[0].ID, "completed")
	q := b.asked(asks.Ref.ID)
	b.reply(q.ID, engine.Reply{Text: "this", Request: engine.Request{Interactive: true}})
	b.waitForState(asks.ID, "completed")
	for _, ticket := range []engine.Ticket{asks, stuck, works, queued} {
		checkHistory(t, b.state(ticket.Ref.ID), true)
	}
}

// A drain can be taken back: the queue goes on.
func TestADrainIsTakenBack(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	r := b.ask(waitsForGo)
	works := b.submit(r)
	queued := b.submit(b.ask(completesAtOnce))
	drained := make(chan error, 1)
	go func() { drained <- b.engine.Drain(context.Background()) }()
	for !b.engine.Draining() {
		time.Sleep(time.Millisecond)
	}
	b.engine.Admit()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	touch(t, r.Workspace, "go")
	b.waitForState(works.ID, "completed")
	b.waitForState(queued.ID, "completed")
}

// An interrupted task is gone on with so often and not more.
func TestRecoveryHasABound(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(`
- tools: [{name: execute_command, input: {command: "touch here; sleep 600"}}]
- tools: [{name: execute_command, input: {command: "touch here; sleep 600"}}]
- tools: [{name: execute_command, input: {command: "touch here; sleep 600"}}]
- tools: [{name: execute_command, input: {command: "touch here; sleep 600"}}]
`)
	ticket := b.submit(r)
	began := 1
	for range 4 {
		if len(b.engine.Runs()) == 0 {
			break
		}
		over, stop := context.WithCancel(t.Context())
		stop()
		if err := b.engine.Drain(over); err != nil {
			t.Fatal(err)
		}
		b.restart(engine.Options{})
		if err := b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true, MaxAttempts: 2}); err != nil {
			t.Fatal(err)
		}
		began += len(b.engine.Runs())
	}
	runs, err := b.engine.RunsOf(t.Context(), ticket.Ref.ID)
	if err != nil || began != 3 || len(runs) != 3 {
		t.Errorf("%d began, %d are told: %v", began, len(runs), err)
	}
}

// Recover does not continue a run whose task the user rewound: the rewind removed what the run worked on.
func TestRecoveryLeavesRewoundTasks(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	asks, stuck := b.submit(b.ask(asksWhich)), b.submit(b.ask(waitsForGo))
	b.waitForState(asks.ID, "waiting")
	over, stop := context.WithCancel(t.Context())
	stop()
	fixture.NoError(t, b.engine.Drain(over))
	b.waitForState(stuck.ID, "interrupted")
	b.restart(engine.Options{})
	for _, one := range []engine.Ticket{asks, stuck} {
		_, finish, err := history.Rewind(t.Context(), b.store, one.Ref, history.RewindOptions{To: "#1", Keep: true})
		fixture.NoError(t, err)
		fixture.NoError(t, finish(t.Context()))
	}
	b.restart(engine.Options{})
	fixture.NoError(t, b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}))
	for name, one := range map[string]engine.Ticket{"waited for an answer": asks, "was drained": stuck} {
		runs, err := b.engine.RunsOf(t.Context(), one.Ref.ID)
		if err != nil || len(runs) != 1 {
			t.Errorf("the run %s: got %+v %v, want no other run", name, runs, err)
		}
	}
}

func TestATopicHasTextThatIsNotDurableYet(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	all, release, err := b.engine.Events().All()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	from, err := all.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ticket := b.submit(b.ask(`
- text: some words that are streamed
  tools: [{name: attempt_completion, input: {result: done}}]
`))
	sub := all.Subscribe(from)
	var types []string
	for ended := false; !ended; {
		if err := sub.Read(t.Context(), func(i events.Item) error {
			if i.Task != ticket.Ref.ID {
				t.Errorf("an event of task %s, want %s", i.Task, ticket.Ref.ID)
			}
			if i.Live {
				types = append(types, i.Type)
			}
			ended = ended || i.Type == "run.ended"
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !ended {
			<-sub.Changed()
		}
	}
	if !slices.Contains(types, "message.delta") {
		t.Errorf("live events %q, want message.delta", types)
	}
}
