package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/engine/budget"
	"github.com/roost-dev/roost/engine/scheduler"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool/historytool"
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
	return e.submit(ctx, ref, r, "")
}

// lockLatest finds a task. The caller alone then starts, queues or answers for it, until unlock is called.
func (e *Engine) lockLatest(ctx context.Context, given string) (ref store.Ref, unlock func(), err error) {
	if ref, err = e.store.FindLatest(ctx, given); err == nil {
		unlock, err = e.scheduler.LockTask(ctx, keyOf(ref))
	}
	return ref, unlock, err
}

// keyOf is a task's key in the tables of this process, and a reference that Find takes.
func keyOf(ref store.Ref) string { return ref.Source + ":" + ref.ID }

func (e *Engine) submitNew(ctx context.Context, r Request) (Ticket, error) {
	if r.NewTask == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return Ticket{}, fmt.Errorf("make a task id: %w", err)
		}
		r.NewTask = id.String()
	}
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
	ticket, err := e.startOrQueue(ctx, r, "", false)
	ticket.Made = err == nil
	return ticket, err
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
	ticket, err := e.submit(ctx, ref, r, "")
	ticket.Made = err == nil && !ticket.Same
	return ticket, err
}

// submit is Submit for an existing task; the caller holds its lock. ref is the latest of the task that r names: a foreign
// task may continue as a task of Roost's own, which then takes in what changed in the original. input is the id of the
// text, where it has an id of its own.
func (e *Engine) submit(ctx context.Context, ref store.Ref, r Request, input string) (Ticket, error) {
	if e.working(keyOf(ref)) == nil {
		if _, err := e.Receive(ctx, r); err != nil {
			return Ticket{}, err
		}
	}
	for {
		var same *task.Run
		var waits, queued, asks bool
		newest := ""
		err := e.withRuns(ctx, ref, func(s *task.State) {
			same = s.Runs.Find(r.RunID)
			if run := s.Run; run != nil {
				newest = run.ID
				waits = run.Rests()
				queued = run.Outcome == "" && run.Started == 0
				asks = waits && (r.Text != "" || len(r.Images) > 0 || r.Yes)
			}
		})
		if err != nil {
			return Ticket{}, err
		}
		if same != nil {
			info, err := e.infoOf(ctx, ref, same.ID)
			return Ticket{RunInfo: info, From: events.Cursor{Position: same.Before}, Same: true}, err
		}
		if run := e.working(keyOf(ref)); run != nil {
			if !run.isEnding() {
				return Ticket{}, fmt.Errorf("task %s: %w", ref.ID, ErrRunning)
			}
			if err := run.settle(ctx); err != nil {
				return Ticket{}, err
			}
			continue
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
		return e.startOrQueue(ctx, r, input, asks)
	}
}

// isEnding reports whether a run has come to its end and only writes the task's files.
func (r *Run) isEnding() (over bool) {
	if isClosed(r.life.done) || !isClosed(r.life.accepted) {
		return isClosed(r.life.done)
	}
	r.task.View(func(s *task.State) {
		over = s.Run != nil && s.Run.ID == r.ID && (s.Run.Outcome != "" || s.Run.Waiting != "")
	})
	return over
}

// startOrQueue starts a run, or puts it into the queue when there is no slot for it. With now it does not wait for a slot.
func (e *Engine) startOrQueue(ctx context.Context, r Request, input string, now bool) (Ticket, error) {
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
	if err := e.commitInputs(ctx, run, input, !placed); err != nil {
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
	return Ticket{RunInfo: info, From: from}, nil
}

// commitInputs makes the text of a run durable before it begins: text with an id of its own, and that of a run that has
// to wait in the queue.
func (e *Engine) commitInputs(ctx context.Context, run *Run, input string, queue bool) error {
	words := &run.words.own
	var events []task.Event
	if (input != "" || queue) && (words.Text != "" || len(words.Images) > 0) {
		input = cmp.Or(input, run.ID)
		by := cmp.Or(run.req.Origin, "api")
		events = append(events, task.InputQueued{Input: input, Text: words.Text, Images: words.Images, By: by})
		words.Text, words.Images = "", nil
	}
	if queue {
		events = append(events, task.RunQueued{Run: run.ID, Settings: run.agent.Task.Settings, Yes: words.Yes})
	}
	if len(events) == 0 {
		return nil
	}
	if err := run.task.Commit(ctx, events...); err != nil {
		return err
	}
	return run.task.Barrier(ctx)
}

// enqueue puts a run into the queue. Its task's journal holds what it is to do; r adds what no task keeps.
func (e *Engine) enqueue(ref store.Ref, run string, r Request) {
	q := &scheduler.Queued{Task: keyOf(ref), Run: run}
	r = Request{
		Task:          keyOf(ref),
		RunID:         run,
		Origin:        r.Origin,
		Interactive:   r.Interactive,
		Hold:          r.Hold,
		Choice:        setup.Choice{MaxDayMicros: r.MaxDayMicros, StandIn: r.StandIn},
		NoCheckpoints: r.NoCheckpoints,
		automatic:     true,
	}
	q.Start = func(slot *scheduler.Slot) { e.startQueued(q, r, slot) }
	e.scheduler.Enqueue(q, false)
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
	if err != nil {
		return // it was deleted
	}
	queued := false
	if err := e.withRuns(ctx, ref, func(s *task.State) {
		run := s.Run
		queued = run != nil && run.ID == q.Run && run.Started == 0 && run.Outcome == ""
	}); err != nil || !queued {
		return
	}
	_, err = e.start(ctx, r, slot)
	var untrusted *UntrustedError
	switch {
	case err == nil, errors.Is(err, ErrClosed): // after a close it stays in the queue of its journal
	case errors.As(err, &untrusted): // it stays there until its user confirms
	case errors.Is(err, ErrDraining):
		e.scheduler.Enqueue(q, true) // for Admit, or for the next process
	case isBusy(err):
		e.scheduler.EnqueueLater(q, func() { time.Sleep(busyRetry) })
	default:
		// It would never start: it has failed, and its input waits for the next run.
		code := "internal"
		if config := (*setup.Error)(nil); errors.As(err, &config) {
			code = "configuration"
		}
		_ = e.changeIdle(ctx, ref, func(t *store.Task) error {
			return t.Commit(ctx, task.RunEnded{Run: q.Run, Outcome: "failed", Code: code, Reason: err.Error()})
		})
	}
}

// changeIdle lets f commit to a task that no run works on, durably.
func (e *Engine) changeIdle(ctx context.Context, ref store.Ref, f func(*store.Task) error) error {
	owned, err := e.store.Own(ctx, ref)
	if err != nil {
		return err
	}
	t := owned.Task
	err = f(t)
	if err == nil {
		err = t.Barrier(ctx)
	}
	return errors.Join(err, t.Close(context.WithoutCancel(ctx)))
}

// Start starts or continues a task and returns once its input is durable or the
// reason why not is known. ctx bounds only starting; the run lives on.
func (e *Engine) Start(ctx context.Context, r Request) (*Run, error) {
	if err := e.admits(); err != nil {
		return nil, err
	}
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

// prepare checks everything that can be checked before anything is written, then
// takes the task.
func (e *Engine) prepare(ctx context.Context, r Request) (*Run, error) {
	if r.Task == "" {
		return e.prepareNew(ctx, r)
	}
	if _, err := e.Receive(ctx, r); err != nil {
		return nil, err
	}
	ref, err := e.store.Find(ctx, r.Task)
	if err != nil {
		return nil, err
	}
	// Read first: a refusal must leave nothing behind.
	latest := e.store.Latest(ref)
	view, err := e.store.ReadToContinue(ctx, latest)
	if err != nil {
		return nil, err
	}
	if err := requireInput(view.State, r); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	has := view.State.Settings
	if queued := view.State.Run; queued.Waits() && queued.ID == r.RunID {
		has = queued.Settings // it was settled when it was queued
	}
	r.Choice = e.resolver.Defaults(has, r.Choice, false)
	var notices []string
	r.Choice, notices, err = e.resolver.ResolveProfile(ref.Source, ref.ID, has, r.Choice)
	var said words
	if err == nil {
		said, err = e.divert(ctx, latest, view, r)
	}
	if err != nil {
		return nil, errors.Join(err, view.Close())
	}
	was := view.Summary.Model // from the histories, where the settings name none
	r.Choice = e.resolver.KeepModel(has, was, r.Choice)
	settings, err := e.resolver.Settings(has, r.Choice)
	if errors.Is(err, setup.ErrNoWorkspace) {
		err = setup.NoWorkspace(ref.ID, view.Summary.Workspace)
	}
	if err == nil {
		err = e.resolver.CheckWorkspace(settings.Workspace)
	}
	if err == nil && has.Model == "" && was != "" && settings.Model != was {
		if !e.resolver.ModelNamed(r.Choice) {
			err = &setup.OtherModelError{Task: ref.ID, Was: was, Provider: settings.Provider, Model: settings.Model}
		}
		notices = append(notices, fmt.Sprintf("model: %s -> %s", was, settings.Model))
	}
	foreign := view.Log == nil
	if err := errors.Join(err, view.Close()); err != nil {
		return nil, err
	}
	settings, env, err := e.resolver.Prepare(has, settings, r.Choice, false)
	if err == nil && e.takesCheckpoints(r) {
		err = e.checkpoints.CheckFree(env.Workspace)
	}
	if err != nil {
		return nil, err
	}
	owned, err := e.store.Own(ctx, ref)
	if err != nil {
		return nil, err
	}
	finished := ""
	if origin := owned.Task.Standing(); origin != store.Ours {
		// Another process may have written to it since the first check, and nothing in it may be obeyed then.
		err = &UntrustedError{Task: owned.Task.Ref.ID, Standing: origin, Brings: owned.Task.State().Brings()}
	} else {
		finished, err = e.checkpoints.FinishOwned(ctx, owned.Task)
	}
	if err != nil {
		return nil, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
	}
	run := e.newRun(owned.Task, settings, env, r)
	run.words = said
	if finished != "" {
		run.found = append(run.found, finished)
	}
	run.found = append(append(append(run.found, describeOwned(owned, foreign)...), notices...),
		differences(owned.Task.State(), settings, run.agent.Task.Head)...)
	return run, nil
}

// requireInput refuses to continue a task that has no message when the request brings none: the program that began the
// task ended before its first step was saved.
func requireInput(s *task.State, r Request) error {
	if r.Text != "" || len(r.Images) > 0 || len(s.UI())+len(s.API())+len(s.Queue)+len(s.Problems) > 0 {
		return nil
	}
	resume := "roost resume " + r.Task
	if s.Settings.Workspace == "" {
		resume += " -C DIR"
	}
	return &setup.Error{
		What: "go on with task " + r.Task,
		Why:  "it holds no message yet: the program that began it was ended before the first one was saved",
		Try:  resume + ` "what to do"  # or start anew with roost run, and remove this one: roost delete ` + r.Task,
	}
}

func (e *Engine) prepareNew(ctx context.Context, r Request) (*Run, error) {
	if r.Text == "" && len(r.Images) == 0 {
		return nil, &setup.Error{What: "start a task", Why: "there is no prompt", Try: `roost run "what to do"`}
	}
	r.Choice = e.resolver.Defaults(task.Settings{}, r.Choice, true)
	settings, env, err := e.prepareSettings(task.Settings{}, r)
	if err == nil && e.takesCheckpoints(r) {
		err = e.checkpoints.CheckFree(env.Workspace)
	}
	if err != nil {
		return nil, err
	}
	owned, err := e.store.Create(ctx, task.Created{
		Task: r.NewTask, Title: r.Title, Origin: cmp.Or(r.Origin, "api"), Number: 1,
		CreatedAt: e.opt.Now(), Settings: settings,
	})
	if err != nil {
		return nil, err
	}
	run := e.newRun(owned, settings, env, r)
	run.words.own = agent.Input{Text: r.Text, Images: r.Images, Yes: r.Yes}
	return run, nil
}

// prepareSettings puts the settings of a request over those of a task, and opens what its next run works with.
func (e *Engine) prepareSettings(was task.Settings, r Request) (task.Settings, setup.Environment, error) {
	settings, err := e.resolver.Settings(was, r.Choice)
	if err == nil {
		err = e.resolver.CheckWorkspace(settings.Workspace)
	}
	if err != nil {
		return settings, setup.Environment{}, err
	}
	return e.resolver.Prepare(was, settings, r.Choice, r.Task == "")
}

func (e *Engine) newRun(t *store.Task, s task.Settings, p setup.Environment, r Request) *Run {
	id := cmp.Or(r.RunID, runID(t.Ref.ID))
	t.By(id)
	below := r // what holds for subtasks
	below.RunID, below.NewTask, below.answer = "", "", nil
	ctx, cancel := context.WithCancelCause(context.Background())
	dir, err := spool.Make("")
	run := &Run{
		ID:      id,
		TaskID:  t.Ref.ID,
		engine:  e,
		task:    t,
		req:     r,
		held:    runEquipment{spool: dir, spoolErr: err},
		active:  make(chan struct{}, 1),
		answers: map[string]*hearing{},
	}
	run.life.ctx, run.life.cancel = ctx, cancel
	run.life.accepted, run.life.released, run.life.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	run.life.accept = sync.OnceFunc(func() { close(run.life.accepted) })
	run.life.release = sync.OnceFunc(func() { close(run.life.released) })
	run.stream.from, run.stream.saved = events.AfterCommit(t.State().Seq), make(chan struct{})
	run.after.settled = make(chan struct{})
	spend := e.totals.Open(t.State().Usage.CostMicros)
	run.held.budget = budget.New(budget.Options{
		Store: e.store, Now: e.opt.Now, Zone: time.Local, Task: t.State, Spend: spend,
		Tree: s.Limits.MaxTaskMicros, Day: e.resolver.DayLimit(r.Choice),
	})
	run.found = append(append(append(run.found, p.Notes...), e.resolver.UnknownPrice(s, p.Model, r.Choice)...), e.endOrphanLinter(t.Ref)...)
	root := p.Workspace.Root()
	run.agent = &agent.Agent{
		Task: agent.Task{
			Journal: recorder{t, run, spend}, RunID: id, Settings: s, Policy: setup.Policy(s),
			Head: gitHead(root),
		},
		Model: agent.Model{Provider: p.Provider.LLM, Entry: p.Model},
		Tools: agent.Tools{
			List: e.tools(t.Ref.ID), Offer: e.opt.Config.Offer(), Subtasks: &family{run, below},
			Outputs: historytool.ForeignOutputs(t.Ref.Dir),
		},
		User: agent.User{
			Asker:    asker{run},
			Attended: r.Interactive,
			Observer: observer{run},
			Zone:     e.opt.Config.Zone,
			Modes:    &p.Modes,
			Setup:    setup.ModeSetup{Resolver: e.resolver, Workspace: root, Choice: r.Choice},
		},
		Host: agent.Host{
			Now:        e.opt.Now,
			Workspace:  p.Workspace,
			Mentions:   e.world(t.Ref, p.Workspace, run.mode),
			SpoolDir:   dir,
			Masks:      p.Provider.Masks,
			Reached:    run.held.budget.Reached,
			WorkedMS:   func() int64 { return run.worked().Milliseconds() },
			OtherTasks: otherTasks{e, root, t.Ref.ID}.changed,
		},
	}
	if e.takesCheckpoints(r) {
		run.held.checkpoints = e.checkpoints.ForRun(t, p.Workspace)
		run.agent.Host.Checkpoints = run.held.checkpoints
	}
	run.equip(p, t)
	return run
}
