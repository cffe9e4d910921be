package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// defaultAttempts is how often in a row a task is resumed whose process dies each time: a task that kills its process must
// not do so for ever.
const defaultAttempts = 3

// Recover continues what an earlier process left. Queued runs are queued again in their order. Runs that were killed while
// they waited for the user wait. Other killed runs are recorded as interrupted, and resumed if the options ask for that.
// A task that another process holds belongs to that process. One whose journal is not trusted stays as it is, and so does
// one that cannot be read or written: Recover does all that it can and returns the errors together.
func (e *Engine) Recover(ctx context.Context, o RecoverOptions) error {
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = defaultAttempts
	}
	left, err := e.listTasks(ctx, "queued", "interrupted", "delegated") // the process of a delegated task may be dead too
	if err != nil {
		return err
	}
	places, err := e.refsByKey(ctx, left)
	if err != nil {
		return err
	}
	var errs []error
	var queued []RunInfo
	var again []store.Ref
	for _, t := range left {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		ref, ok := places[t.Source+":"+t.ID]
		if !ok {
			continue // it was removed after the list was read
		}
		ref = e.store.Latest(ref)
		var run RunInfo
		lost := 0
		err := e.withRuns(ctx, ref, func(s *task.State) {
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
		unended := run.State == "queued" || run.State == "interrupted" && run.Outcome == ""
		resumes := o.Resume && lost <= o.MaxAttempts && run.State == "interrupted" && abandoned(run.Outcome, run.Code)
		if !unended && !resumes {
			continue
		}
		if trusted, err := e.isTrusted(ctx, ref); err != nil {
			errs = append(errs, err)
			continue
		} else if !trusted {
			continue // it continues once its user confirms it
		}
		switch {
		case run.State == "queued":
			if run.Position == 0 {
				queued = append(queued, run)
			}
			continue
		case run.Outcome == "":
			if err := e.recordEnd(ctx, ref, run); err != nil {
				var busy *journal.BusyError
				if !errors.As(err, &busy) {
					errs = append(errs, err)
				}
				continue
			}
			if run.Question != "" {
				continue // it waits for the answer
			}
		}
		if resumes {
			again = append(again, ref)
		}
	}
	slices.SortStableFunc(queued, func(a, b RunInfo) int { return cmp.Compare(a.Queued, b.Queued) })
	for _, run := range queued {
		r := Request{Origin: "api", Interactive: true, Hold: e.hold()}
		e.enqueue(run.Ref, run.ID, r)
	}
	for _, ref := range again {
		if err := e.resumeInterrupted(ctx, ref); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, e.writeProjections(ctx))...)
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
		var busy *journal.BusyError
		if err != nil && !errors.As(err, &busy) && !errors.Is(err, store.ErrForeignBusy) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// abandoned reports whether a run ended because its process ended.
func abandoned(outcome, code string) bool {
	return outcome == "" || outcome == "interrupted" && (code == "" || code == "drained" || code == "parent")
}

// recordEnd commits the end of a run whose process died, or that the run waits.
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

// resumeInterrupted resumes an interrupted task, unless a parent waits for it, which resumes it.
func (e *Engine) resumeInterrupted(ctx context.Context, ref store.Ref) error {
	var parent *store.Ref
	err := e.store.WithView(ctx, ref, func(v *store.View) (err error) {
		parent, err = e.waits(ctx, ref, v.State)
		return err
	})
	if err != nil || parent != nil {
		return err
	}
	_, err = e.Submit(ctx, Request{Task: keyOf(ref), Origin: "api", Interactive: true, automatic: true})
	var busy *journal.BusyError
	var held *UntrustedError
	if errors.As(err, &busy) || errors.Is(err, ErrRunning) || errors.As(err, &held) {
		return nil
	}
	return err
}
