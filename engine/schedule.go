package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Load counts the runs of this process; one that is about to start is running. A task and the subtask that it waits for
// count as one.
func (e *Engine) Load() (running, waiting, queued int) { return e.scheduler.Load() }

// WaitForRelease waits while a run of this process that has ended, or that releases its task because it waits for the
// user, still writes the task's files. free is false when a run works on the task and continues to do so.
func (e *Engine) WaitForRelease(ctx context.Context, task string) (free bool, err error) {
	ref, err := e.store.FindLatest(ctx, task)
	if err != nil {
		return false, err
	}
	run, err := e.atWork(ctx, keyOf(ref))
	return run == nil && err == nil, err
}

// After returns the run of this process that continues the task of a run that has ended: a message interrupted that
// run, or came at its very end. nil when there is none. After waits for messages and answers that are being taken in,
// so that a process that is about to end does not end a run that was promised to a client.
func (r *Run) After(ctx context.Context) *Run {
	if r.settle(ctx) != nil {
		return nil
	}
	key := keyOf(r.task.Ref)
	unlock, err := r.engine.scheduler.LockTask(ctx, key)
	if err != nil {
		return nil
	}
	defer unlock()
	return cmp.Or(r.after.instead, r.engine.working(key)) // instead may have ended by now
}

// drainPoll is how often a drain checks for runs that have begun to wait for the user. It bounds how much later than
// necessary a server ends.
const drainPoll = 50 * time.Millisecond

// Drain starts nothing more, and takes no answer for a run that has released its task: that one stays as it is, waiting,
// for the next process. Runs that wait for the user are released, saved, as waiting. Queued ones stay queued for the next
// process. The others may finish until ctx ends, and are interrupted then: `resume` continues them, or Recover where the
// user asks for that. Drain returns when no run is left, or when Admit was called.
func (e *Engine) Drain(ctx context.Context) error {
	e.scheduler.Drain()
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	over, interrupt := ctx.Done(), false
	for e.Draining() {
		left, more := e.unfinished()
		if len(left) == 0 && !more {
			return nil
		}
		for _, r := range left {
			if r.asking() {
				r.Release()
			}
			if interrupt && r.parent.Load() == nil {
				r.life.cancel(agent.ErrDrained) // also one that has begun to work since the last round
			}
		}
		select {
		case <-poll.C:
		case <-over:
			over, interrupt = nil, true
		}
	}
	return nil
}

// unfinished returns the runs that work. more: a run is about to start, or it is not known yet which run follows one
// that ended. All of it is read at one moment, so that a run which begins in between is not missed.
func (e *Engine) unfinished() (left []*Run, more bool) {
	e.scheduler.Snapshot(func(starting int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		left, more = slices.Collect(maps.Values(e.runs)), starting > 0 || len(e.ending) > 0
	})
	return left, more
}

// Refuse starts no new runs until Admit: see scheduler.Scheduler.Refuse.
func (e *Engine) Refuse() { e.scheduler.Refuse() }

// Admit reverts Drain and Refuse: runs start again, the queued ones first.
func (e *Engine) Admit() { e.scheduler.Admit() }

// defaultAttempts limits how often in a row a task is resumed when its process dies each time: a task that kills its
// process must not do so for ever.
const defaultAttempts = 3

// Recover continues what an earlier process left. Queued runs are queued again in their order. Runs that were killed while
// they waited for the user wait. Other killed runs are recorded as interrupted, and resumed if the options ask for that,
// unless the task was rewound since. A task that another process holds belongs to that process. One whose journal is not
// trusted stays as it is, and so does one that cannot be read or written: Recover does all that it can and returns the
// errors together.
func (e *Engine) Recover(ctx context.Context, o RecoverOptions) error {
	o.MaxAttempts = cmp.Or(max(o.MaxAttempts, 0), defaultAttempts)
	left := o.Lost // the tasks that a dead process may have left
	if left == nil {
		all, err := e.listTasks(ctx, "queued", "interrupted", "delegated") // the process of a delegated task may be dead too
		if err != nil {
			return err
		}
		left = all.Refs
	}
	var errs []error
	var queued []RunInfo
	var again, last []store.Ref // last: those whose workspaces are cloned first, which takes long
	for _, ref := range left {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		ref = e.store.Latest(ctx, ref)
		var run RunInfo
		lost := 0
		var settings task.Settings
		err := e.withRuns(ctx, ref, func(s *task.State) {
			settings = s.NextSettings()
			if s.Run != nil {
				run = e.currentRun(ctx, ref, s, *s.Run)
			}
			for _, r := range slices.Backward(s.Runs.All) {
				if r.Outcome != "" && !abandoned(r.Outcome, r.Code) {
					break
				}
				lost++
			}
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// Verifying a log costs more than reading what became of its runs, and most tasks here
		// ended long ago: only a task that would be changed or run is verified.
		stopped := run.State == "interrupted" && !run.Rewound // after a rewind the user decides what comes next
		unended := run.State == "queued" || stopped && run.Outcome == ""
		// Of a group, whichever server finds a killed run continues it, also while it starts.
		resumes := (o.Resume || e.opt.Reach != nil && run.Outcome == "") && lost <= o.MaxAttempts && stopped && abandoned(run.Outcome, run.Code)
		if !unended && !resumes {
			continue
		}
		clones, away := e.lacks(ctx, settings)
		if away != nil { // a server that has its workspace takes it over
			if o.Lost != nil {
				errs = append(errs, fmt.Errorf("task %s: %w", ref.ID, away))
			}
			continue
		}
		if untrusted, err := e.untrusted(ctx, ref); err != nil || untrusted != nil {
			errs = append(errs, err) // nil: it continues once its user confirms it
			continue
		}
		switch {
		case run.State == "queued":
			if run.Position == 0 {
				queued = append(queued, run)
			}
			continue
		case run.Outcome == "":
			if err := e.recordEnd(ctx, ref, run); err != nil {
				if !isBusy(err) {
					errs = append(errs, err)
				}
				continue
			}
			if run.Question != "" {
				continue // it waits for the answer
			}
		}
		if resumes && clones {
			last = append(last, ref)
		} else if resumes {
			again = append(again, ref)
		}
	}
	slices.SortStableFunc(queued, func(a, b RunInfo) int { return cmp.Compare(a.Queued, b.Queued) })
	for _, run := range queued {
		e.enqueue(run.Ref, run.ID, Request{Origin: "api", Interactive: true, Hold: e.hold()})
	}
	for _, ref := range append(again, last...) {
		errs = append(errs, e.resumeInterrupted(ctx, ref))
	}
	return errors.Join(append(errs, e.writeProjections(ctx), e.removeClones(ctx))...)
}

// lacks returns why this server of a group cannot work in a workspace; nil when it has the workspace, or may clone it.
// Without a group it returns nil: a run reports a workspace that is missing.
func (e *Engine) lacks(ctx context.Context, s task.Settings) (clones bool, err error) {
	if e.opt.Reach == nil {
		return false, nil
	}
	if s.Workspace == "" {
		return false, setup.ErrNoWorkspace
	}
	if clones, err = e.opt.Reach.ToClone(ctx, s.Workspace, s.Folder, false); clones || err != nil {
		return clones, err
	}
	dir, err := e.FindWorkspace(s)
	if err == nil {
		_, err = workspace.Open(dir)
	}
	return false, err
}

// writeProjections writes Roo's files of tasks whose last owner was killed before it could write them.
func (e *Engine) writeProjections(ctx context.Context) error {
	list, err := e.store.Behind(ctx)
	errs := []error{err}
	for _, ref := range list {
		done, err := e.scheduler.LockTask(ctx, keyOf(ref))
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		err = e.changeIdle(ctx, ref, func(*store.Task) error { return nil })
		done()
		if err != nil && !isBusy(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// abandoned reports whether a run ended because its process ended.
func abandoned(outcome, code string) bool {
	return outcome == "" || outcome == "interrupted" && (code == "" || code == "drained" || code == "parent")
}

// recordEnd commits that a run whose process died has ended, or that it waits for the answer to its question.
func (e *Engine) recordEnd(ctx context.Context, ref store.Ref, run RunInfo) error {
	done, err := e.scheduler.LockTask(ctx, keyOf(ref)) // a caller that continues it at this moment waits, and gets no BusyError
	if err != nil {
		return err
	}
	defer done()
	return e.changeIdle(ctx, ref, func(t *store.Task) error {
		now := t.State().Run
		if now == nil || now.ID != run.ID || now.Outcome != "" || now.Waiting != "" {
			return nil
		}
		if q := t.State().Questions; run.Question != "" && len(q) > 0 {
			return t.Commit(ctx, task.RunWaiting{Run: run.ID, Question: q[len(q)-1].Question})
		}
		return t.Commit(ctx, task.RunEnded{Run: run.ID, Outcome: "interrupted", Reason: "the program ended"})
	})
}

// resumeInterrupted resumes an interrupted task, unless a parent waits for it: the parent then resumes it, but not one that
// the user rewound.
func (e *Engine) resumeInterrupted(ctx context.Context, ref store.Ref) error {
	parent, err := e.waitingParent(ctx, ref)
	if err != nil || parent != nil {
		return err
	}
	rewound, err := e.awaited(ctx, ref, func(s *task.State) bool { return s.Run != nil && s.Run.Rewound })
	if err != nil || rewound != nil {
		return err
	}
	_, err = e.Submit(ctx, Request{Task: keyOf(ref), Origin: "api", Interactive: true, automatic: true})
	var held *UntrustedError
	if isBusy(err) || errors.Is(err, ErrRunning) || errors.As(err, &held) {
		return nil
	}
	return err
}
