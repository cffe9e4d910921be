package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/engine/scheduler"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Submit starts or continues a task like Start, and puts it into the queue when there is no free slot. The input is on
// disk when Submit returns. A request whose RunID is in the task's journal was accepted before: it gets the same ticket,
// and Submit does nothing. The same holds for a request whose NewTask exists and had a run. A run that waits, or is
// queued and in no process's queue, continues under its own id unless the request names another one.
func (e *Engine) Submit(ctx context.Context, r Request) (Ticket, error) {
	if r.Task == "" {
		return e.submitNew(ctx, r)
	}
	ref, unlock, err := e.lockLatest(ctx, r.Task)
	if err != nil {
		return Ticket{}, err
	}
	defer unlock()
	return e.submit(ctx, ref, r)
}

func (e *Engine) submitNew(ctx context.Context, r Request) (Ticket, error) {
	r.NewTask = cmp.Or(r.NewTask, uuid.Must(uuid.NewV7()).String()) // it never fails
	own := store.OwnSource + ":" + r.NewTask
	done, err := e.scheduler.LockTask(ctx, own)
	if err != nil {
		return Ticket{}, err
	}
	defer done()
	ref, err := e.store.Find(ctx, own)
	if err == nil && ref.ID == r.NewTask {
		return e.submitKnown(ctx, ref, r)
	}
	var trashed *store.TrashedError
	if err != nil && (errors.As(err, &trashed) || !errors.Is(err, store.ErrNotFound)) {
		return Ticket{}, err
	}
	if err := e.admits(); err != nil {
		return Ticket{}, err
	}
	r.RunID = cmp.Or(r.RunID, runID(r.NewTask))
	return e.startOrQueue(ctx, r, false)
}

// submitKnown is Submit for a new task that exists: the request was accepted before, or was interrupted between creating
// the task and starting its run, and continues.
func (e *Engine) submitKnown(ctx context.Context, ref store.Ref, r Request) (Ticket, error) {
	err := e.withRuns(ctx, ref, func(s *task.State) {
		if runs := s.Runs.All; len(runs) > 0 && s.Runs.Find(r.RunID) == nil {
			r.RunID = runs[0].ID
		}
	})
	if err != nil {
		return Ticket{}, err
	}
	r.Task, r.NewTask = keyOf(ref), ""
	return e.submit(ctx, ref, r)
}

// submit is Submit for an existing task; the caller holds its lock. ref is the latest of the task that r names: a foreign
// task may continue as a task of Roost's own, which then takes in what changed in the original.
func (e *Engine) submit(ctx context.Context, ref store.Ref, r Request) (Ticket, error) {
	if e.working(keyOf(ref)) == nil {
		if err := e.Receive(ctx, r); err != nil {
			return Ticket{}, err
		}
	}
	if _, err := e.atWork(ctx, keyOf(ref)); err != nil {
		return Ticket{}, err
	}
	var same *task.Run
	var waits, queued, asks bool
	newest := ""
	if err := e.withRuns(ctx, ref, func(s *task.State) {
		same = s.Runs.Find(r.RunID)
		if run := s.Run; run != nil {
			newest = run.ID
			waits = run.Rests()
			queued = run.Outcome == "" && run.Started == 0
			asks = waits && (r.Text != "" || len(r.Images) > 0 || r.Yes)
		}
	}); err != nil {
		return Ticket{}, err
	}
	if same != nil {
		info, err := e.infoOf(ctx, ref, same.ID)
		return Ticket{RunInfo: info, From: events.Cursor{Position: same.Before}, Same: true}, err
	}
	if e.working(keyOf(ref)) != nil {
		return Ticket{}, fmt.Errorf("task %s: %w", ref.ID, ErrRunning)
	}
	if err := e.admits(); err != nil {
		return Ticket{}, err
	}
	if queued && e.scheduler.Position(newest) > 0 {
		return Ticket{}, fmt.Errorf("task %s: run %s is in the queue: %w", ref.ID, newest, ErrRunning)
	}
	if (waits || queued) && r.RunID == "" {
		r.RunID = newest
	}
	// A run that continues with an answer does not wait for a slot: it had one.
	return e.startOrQueue(ctx, r, asks)
}

// startOrQueue starts a run, or puts it into the queue when there is no slot for it. With now it does not wait for a slot.
func (e *Engine) startOrQueue(ctx context.Context, r Request, now bool) (Ticket, error) {
	if r.Interactive && r.Hold == 0 {
		r.Hold = e.hold()
	}
	acquire := e.scheduler.TryAcquire
	if now {
		acquire = e.scheduler.Acquire
	}
	at, err := acquire()
	if err != nil {
		return Ticket{}, err
	}
	defer at.Release()
	placed := at != nil
	if !placed && e.scheduler.Full() {
		return Ticket{}, fmt.Errorf("start a run: %w", ErrQueueFull)
	}
	var from events.Cursor
	if r.Task != "" {
		ref, err := e.store.FindLatest(ctx, r.Task)
		if err != nil {
			return Ticket{}, err
		}
		if from, _, err = events.Newest(ctx, e.store, ref); err != nil {
			return Ticket{}, err
		}
	}
	run, err := e.prepare(ctx, r)
	if err != nil {
		return Ticket{}, err
	}
	failpoint.Hit("engine.made")
	ref := run.task.Ref
	if !placed && (run.words.child.Text != "" || len(run.words.child.Images) > 0) {
		if at, err = e.scheduler.Acquire(); err != nil {
			return Ticket{}, errors.Join(err, run.abandon())
		}
		defer at.Release()
		placed = true
	}
	run.held.slot = at
	if err := e.commitInputs(ctx, run, !placed); err != nil {
		return Ticket{}, errors.Join(err, run.abandon())
	}
	if placed {
		if err := e.launch(run); err != nil {
			return Ticket{}, err
		}
		if err := run.Accepted(ctx); err != nil {
			return Ticket{}, err
		}
		failpoint.Hit("engine.started")
	} else {
		if err := run.abandon(); err != nil {
			return Ticket{}, err
		}
		failpoint.Hit("engine.queued")
		e.enqueue(ref, run.ID, r)
	}
	info, err := e.infoOf(ctx, ref, run.ID)
	if err != nil {
		return Ticket{}, err
	}
	return Ticket{RunInfo: info, From: from, run: run}, nil
}

// commitInputs makes the text of a run durable before it begins: text with an id of its own, and that of a run that has
// to wait in the queue.
func (e *Engine) commitInputs(ctx context.Context, run *Run, queue bool) error {
	words, input := &run.words.own, run.req.input
	var events []task.Event
	if (input != "" || queue) && (words.Text != "" || len(words.Images) > 0) {
		input = cmp.Or(input, uuid.NewString()) // not the run's id: a queued run may get more words
		by := cmp.Or(run.req.Origin, "api")
		events = append(events, task.InputQueued{Input: input, Text: words.Text, Images: words.Images, By: by})
		words.Text, words.Images = "", nil
	}
	if queue {
		events = append(events, task.RunQueued{Run: run.ID, Settings: run.agent.Task.Settings, Yes: words.Yes, RunChoice: run.agent.Task.Choice})
	}
	if len(events) == 0 {
		return nil
	}
	if err := run.task.Commit(ctx, events...); err != nil {
		return err
	}
	return run.task.Barrier(ctx)
}

// enqueue puts a run into the queue. Its task's journal holds what it is to do; r adds who may be asked.
func (e *Engine) enqueue(ref store.Ref, run string, r Request) {
	q := &scheduler.Queued{Task: keyOf(ref), Run: run}
	r = r.toContinue(ref, run)
	q.Start = func(slot *scheduler.Slot) { e.startQueued(q, r, slot) }
	e.scheduler.Enqueue(q, false)
}

// toContinue is a request that no caller makes: it continues a task as the task is.
func (r Request) toContinue(ref store.Ref, run string) Request {
	return Request{
		Task: keyOf(ref), RunID: run, Origin: r.Origin, Interactive: r.Interactive, Hold: r.Hold, automatic: true,
	}
}

// busyRetry is how long a queued run waits for a task that another process holds at the moment: that process may be
// changing its title, or adding to its queue, which takes milliseconds.
const busyRetry = 200 * time.Millisecond

// startQueued starts a run out of the queue. A run that its task's journal no longer has as queued is dropped: another
// process, or the user, has continued it.
func (e *Engine) startQueued(q *scheduler.Queued, r Request, slot *scheduler.Slot) {
	ctx := context.Background()
	unlock, err := e.scheduler.LockTask(ctx, q.Task)
	if err != nil {
		return
	}
	defer unlock()
	ref, err := e.store.FindLatest(ctx, q.Task)
	queued := false
	if err == nil {
		err = e.withRuns(ctx, ref, func(s *task.State) { queued = s.Run.Waits() && s.Run.ID == q.Run })
	}
	retry := func() { e.scheduler.EnqueueLater(q, func() { time.Sleep(busyRetry) }) }
	if err != nil && !errors.Is(err, store.ErrNotFound) { // it cannot be read now; a task that is not found was deleted
		retry()
	}
	if err != nil || !queued {
		return
	}
	_, err = e.start(ctx, r, slot)
	switch {
	case err == nil, errors.Is(err, ErrClosed): // after a close it stays in the queue of its journal
	case errors.As(err, new(*UntrustedError)): // it stays there until its user confirms
	case errors.Is(err, ErrDraining):
		e.scheduler.Enqueue(q, true) // for Admit, or for the next process
	case isBusy(err):
		retry()
	default:
		// The run would never start, so it has failed. Its input waits for the next run.
		code := "internal"
		if config := (*setup.Error)(nil); errors.As(err, &config) {
			code = "configuration"
		}
		_ = e.changeIdle(ctx, ref, func(t *store.Task) error {
			return t.Commit(ctx, task.RunEnded{Run: q.Run, Outcome: "failed", Code: code, Reason: err.Error()})
		})
	}
}

// Start starts or continues a task. It returns once the run is prepared, or with the reason why the run cannot begin. ctx
// bounds only the start; the run continues after it.
func (e *Engine) Start(ctx context.Context, r Request) (*Run, error) {
	slot, err := e.scheduler.Acquire()
	if err != nil {
		return nil, err
	}
	defer slot.Release()
	return e.start(ctx, r, slot)
}

// start is Start for a run that has a slot.
func (e *Engine) start(ctx context.Context, r Request, slot *scheduler.Slot) (*Run, error) {
	if err := e.admits(); err != nil {
		return nil, err
	}
	run, err := e.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	run.held.slot = slot
	if err := e.launch(run); err != nil {
		return nil, err
	}
	return run, nil
}

// launch starts a prepared run, unless the engine is closed.
func (e *Engine) launch(run *Run) error {
	if !e.register(run) {
		return errors.Join(ErrClosed, run.abandon())
	}
	go func() {
		defer e.wait.Done()
		alone := run.parent.Load() == nil
		run.work(run.words.own)
		e.mu.Lock()
		delete(e.runs, run.ID)
		e.ending[run.ID] = run
		e.mu.Unlock()
		e.scheduler.Dispatch()
		if alone && !e.again(run) {
			e.wake(run)
		}
		e.mu.Lock()
		if e.ending[run.ID] == run {
			delete(e.ending, run.ID)
		}
		e.mu.Unlock()
		close(run.after.settled) // those who waited for it now find the run that follows, and not this one
	}()
	return nil
}

// again continues a task whose run completed while input arrived that the run could not use any more: the input was
// acknowledged.
func (e *Engine) again(done *Run) bool {
	fromDoor := func(q task.InputQueued) bool { return q.By != "" }
	if done.life.outcome.State != "completed" || done.life.outcome.Err != nil || !slices.ContainsFunc(done.task.State().Queue, fromDoor) {
		return false
	}
	ctx, ref := context.WithoutCancel(done.life.ctx), done.task.Ref
	next, err := e.Start(ctx, done.req.toContinue(ref, ""))
	if errors.Is(err, ErrDraining) { // for Admit, or for the next process
		id := runID(ref.ID)
		if err = e.changeIdle(ctx, ref, func(t *store.Task) error {
			return t.Commit(ctx, task.RunQueued{Run: id, Settings: t.State().Settings, RunChoice: t.State().Run.RunChoice})
		}); err == nil {
			e.enqueue(ref, id, done.req)
		}
	}
	if err != nil {
		done.after.nextErr = fmt.Errorf("words came after the run had ended; they wait in the queue of task %s: %w", done.TaskID, err)
	}
	done.after.next = next
	return true
}

// wake starts the parent that waits for a task that a user resumed alone and that completed. A failure loses nothing:
// the parent finds the result when it is resumed.
func (e *Engine) wake(done *Run) {
	if done.life.outcome.State != "completed" || done.life.outcome.Err != nil {
		return
	}
	failpoint.Hit("subtask.waking")
	ctx := context.WithoutCancel(done.life.ctx)
	run := ""
	parent, err := e.waitingParent(ctx, done.task.Ref)
	if err == nil && parent != nil {
		err = e.withRuns(ctx, *parent, func(s *task.State) {
			if s.Run.Rests() {
				run = s.Run.ID
			}
			if s.Run != nil && s.Run.Code == task.CodeReceived {
				parent = nil // it came from elsewhere, and no user continued it here
			}
		})
	}
	if err != nil || parent == nil {
		return
	}
	r := done.req.toContinue(*parent, run)
	r.MaxDayMicros, r.StandIn = done.req.MaxDayMicros, done.req.StandIn
	next, err := e.Start(ctx, r)
	if err != nil {
		done.after.nextErr = fmt.Errorf("the subtask is completed, but task %s, which waits for it, could not go on: %w", parent.ID, err)
		return
	}
	done.after.next = next
}
