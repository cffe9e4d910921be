package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/scheduler"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// idleEngine is an engine without a disk, and a run that could begin in it.
func idleEngine(o Options) (*Engine, *Run) {
	o.Config = setup.Config{Keys: map[string]string{}}
	run := asks(true)
	run.ID = "r"
	run.life.released = make(chan struct{})
	run.life.cancel = func(error) {}
	run.task = &store.Task{Ref: store.Ref{Source: "roost", ID: "t"}}
	return New(&store.Store{}, o), run
}

// A run has one place, from the moment it is kept until the run ends: in the middle of its
// start it has neither two, which would keep another one waiting for nothing, nor none.
func TestAPlaceIsCountedOnce(t *testing.T) {
	e, run := idleEngine(Options{MaxRuns: 2})
	load := func(what string, want int) {
		t.Helper()
		if running, waiting, queued := e.Load(); running != want || waiting+queued != 0 {
			t.Errorf("%s: %d run, %d wait, %d are queued", what, running, waiting, queued)
		}
	}
	reserve := func() *scheduler.Slot {
		t.Helper()
		at, err := e.scheduler.TryAcquire()
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	run.held.slot = reserve()
	load("kept", 1)
	if !e.register(run) {
		t.Fatal("it is not let in")
	}
	load("filled, and not given back yet", 1)
	second := reserve()
	if second == nil {
		t.Fatal("there is no place for a second run of two")
	}
	if reserve() != nil {
		t.Error("there is a place for a third")
	}
	run.held.slot.Release()
	load("with the second", 2)
	second.Release()
	second.Release()
	load("without it again", 1)
	for range 3 { // an answer is not kept waiting, however many work
		if at, err := e.scheduler.Acquire(); err != nil || at == nil {
			t.Errorf("no place for who is not kept waiting: %v", err)
		}
	}
	load("with three beyond all places", 4)
	if reserve() != nil {
		t.Error("there is a place behind those")
	}
}

// A drain is over when nothing is left: not while a run is about to start, has ended and may
// be followed by another one, or starts between two looks. What comes behind its end is
// refused, also what asked whether it may before.
func TestADrainWaitsForWhatIsAboutToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, run := idleEngine(Options{})
		at, err := e.scheduler.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		run.held.slot = at
		drained := make(chan error, 1)
		go func() { drained <- e.Drain(context.Background()) }()
		goesOn := func(while string) {
			t.Helper()
			time.Sleep(time.Hour)
			select {
			case err := <-drained:
				t.Fatalf("the drain was over while %s: %v", while, err)
			default:
			}
		}
		goesOn("a run was about to start")
		if !e.register(run) {
			t.Fatal("it is not let in")
		}
		at.Release()
		goesOn("it worked")
		e.mu.Lock()
		e.ending = map[string]*Run{run.ID: run}
		delete(e.runs, run.ID)
		e.mu.Unlock()
		goesOn("nobody knew what follows it")
		e.mu.Lock()
		delete(e.ending, run.ID)
		e.mu.Unlock()
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
		if _, err := e.scheduler.Acquire(); !errors.Is(err, ErrDraining) {
			t.Errorf("a place behind the drain: %v", err)
		}
		if _, err := e.scheduler.TryAcquire(); !errors.Is(err, ErrDraining) {
			t.Errorf("a place that was asked for before: %v", err)
		}
		e.Admit()
		e.Refuse()
		if _, err := e.scheduler.Acquire(); err != nil { // an answer: it had its place
			t.Errorf("an answer while nothing more is started: %v", err)
		}
	})
}

// Between two commits of a run's end and the look at who works on it a run may have come to
// its end: what it was is read then, and it is not said to be interrupted.
func TestARunThatEndsWhileItIsLookedAtIsNotInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		then []task.Event
		want string
	}{
		"it completes":       {[]task.Event{task.RunEnded{Run: "r", Outcome: "completed"}}, "completed"},
		"it begins to wait":  {[]task.Event{api.QuestionOpened{Question: "q", Kind: "followup"}, task.RunWaiting{Run: "r", Question: "q"}}, "waiting"},
		"another one begins": {[]task.Event{task.RunEnded{Run: "r", Outcome: "failed"}, task.RunStarted{Run: "r2"}}, "failed"},
		"it was killed":      {nil, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			s, ref := startedTask(t)
			e := New(s, Options{Config: setup.Config{Keys: map[string]string{}}})
			err := e.withRuns(t.Context(), ref, func(state *task.State) {
				if err := e.changeIdle(t.Context(), ref, func(t *store.Task) error { return t.Commit(context.Background(), c.then...) }); err != nil && c.then != nil {
					t.Fatal(err)
				}
				if info := e.currentRun(t.Context(), ref, state, *state.Run); info.ID != "r" || info.State != c.want {
					t.Errorf("got %+v, want info.ID = \"r\" and info.State = %v", info, c.want)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// startedTask is a task whose run began, and that nobody works on.
func startedTask(t *testing.T) (*store.Store, store.Ref) {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(store.Options{Root: dir + "/root", Cache: dir + "/cache", Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	owned, err := s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(owned.Commit(t.Context(), task.RunStarted{Run: "r"}), owned.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s, owned.Ref
}

// However far behind its events are when a run ends, all of them are observed, and none of the run that takes the task
// next.
func TestTheEndOfARunShowsAllItsEvents(t *testing.T) {
	s, ref := startedTask(t)
	e := New(s, Options{Config: setup.Config{Keys: map[string]string{}}})
	var last uint64
	for range 3 {
		if err := e.changeIdle(t.Context(), ref, func(t *store.Task) error {
			last = t.State().Seq
			return t.Commit(context.Background(), task.Changed{})
		}); err != nil {
			t.Fatal(err)
		}
	}
	topic, release, err := e.Events().Task(ref)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	run := asks(true)
	run.engine = e
	run.stream.last.Store(last)
	over := make(chan struct{})
	close(over)
	var newest uint64
	run.follow(t.Context(), topic.Subscribe(events.Cursor{}), over, func(i events.Item) bool {
		newest = i.Seq
		return true
	})
	if newest != last {
		t.Errorf("the newest event is of commit %d, want %d", newest, last)
	}
}

// Words for a task whose run has just ended wait until it is known what follows that one,
// and are not told that the task is busy.
func TestARunThatHasJustEndedIsWaitedFor(t *testing.T) {
	e, run := idleEngine(Options{})
	run.life.done, run.after.settled = make(chan struct{}), make(chan struct{})
	close(run.life.done)
	e.ending = map[string]*Run{run.ID: run}
	at := e.working(keyOf(run.task.Ref))
	if at != run || !at.isEnding() {
		t.Fatalf("%v works", at)
	}
}

// An engine that was closed opens no topics.
func TestAClosedEngineHasNoEvents(t *testing.T) {
	e, _ := idleEngine(Options{})
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Events().All(); !errors.Is(err, events.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// A cancel is of the task: where its run was at its end already, and words that came at the
// last moment began the next one, it is that one's.
func TestACancelAtTheEndOfARunIsOfTheNextOne(t *testing.T) {
	s, ref := startedTask(t)
	e := New(s, Options{Config: setup.Config{Keys: map[string]string{}}})
	at := func(id string) *Run {
		run := asks(true)
		run.ID, run.TaskID, run.after.settled, run.life.done = id, ref.ID, make(chan struct{}), make(chan struct{})
		run.task = &store.Task{Ref: ref}
		run.life.cancel = func(error) {}
		return run
	}
	over, next := at("before"), at("r")
	over.after.next = next
	close(over.after.settled)
	next.life.cancel = func(error) {
		if err := e.changeIdle(t.Context(), ref, func(k *store.Task) error {
			return k.Commit(context.Background(), task.RunEnded{Run: "r", Outcome: "cancelled"})
		}); err != nil {
			t.Error(err)
		}
		close(next.after.settled)
	}
	e.ending = map[string]*Run{over.ID: over}
	if _, _, err := e.cancelRun(t.Context(), ref, over.ID); !errors.Is(err, ErrNoRun) || isClosed(next.after.settled) {
		t.Errorf("a cancel of the one at its end: got %v, next one cancelled %v, want ErrNoRun: its journal lacks it",
			err, isClosed(next.after.settled))
	}
	info, ok, err := e.cancelRun(t.Context(), ref, "")
	if err != nil || !ok || info.ID != "r" || info.State != "cancelled" {
		t.Errorf(`got %+v %v %v, want no error and ok and info.ID = "r" and info.State = "cancelled"`, info, ok, err)
	}
}

// A task is free when its run has let it go: one that works does not, and one that has ended
// is waited for.
func TestWhetherATaskIsFree(t *testing.T) {
	s, ref := startedTask(t)
	e := New(s, Options{Config: setup.Config{Keys: map[string]string{}}})
	free := func(want bool) {
		t.Helper()
		if got, err := e.WaitForRelease(t.Context(), keyOf(ref)); err != nil || got != want {
			t.Errorf("free: %v, %v", got, err)
		}
	}
	free(true)
	run := asks(true)
	run.life.done, run.life.accepted, run.after.settled = make(chan struct{}), make(chan struct{}), make(chan struct{})
	run.task = &store.Task{Ref: ref}
	e.runs["r"] = run
	free(false)
	close(run.life.done)
	delete(e.runs, "r")
	e.ending = map[string]*Run{"r": run}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.WaitForRelease(gone, keyOf(ref)); !errors.Is(err, context.Canceled) {
		t.Errorf("while it ends: %v", err)
	}
	delete(e.ending, "r")
	close(run.after.settled)
	free(true)
}
