package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// RunByID finds a run; ErrNoRun when there is none. The last digits of the run's id lead to its task. For an id that
// Roost did not make, it finds only a run of this process.
func (e *Engine) RunByID(ctx context.Context, id string) (RunInfo, error) {
	e.mu.Lock()
	run := e.runs[id]
	e.mu.Unlock()
	if run != nil && e.store.Sees(ctx, run.task.Ref) {
		if info, err := e.infoOf(ctx, run.task.Ref, id); !errors.Is(err, ErrNoRun) {
			return info, err
		}
	}
	if len(id) < taskDigitCount {
		return RunInfo{}, fmt.Errorf("%w: %q", ErrNoRun, id)
	}
	refs, err := e.store.Refs(ctx)
	if err != nil {
		return RunInfo{}, err
	}
	for _, ref := range refs {
		if !strings.HasSuffix(id, taskDigits(ref.ID)) {
			continue
		}
		refs := []store.Ref{ref}
		if fork, ok := e.store.Continued(ctx, ref); ok {
			refs = append(refs, fork)
		}
		for _, ref := range refs {
			info, err := e.infoOf(ctx, ref, id)
			if !errors.Is(err, ErrNoRun) {
				return info, err
			}
		}
	}
	return RunInfo{}, fmt.Errorf("%w: %q", ErrNoRun, id)
}

// RunsOf returns the runs of a task, the newest first.
func (e *Engine) RunsOf(ctx context.Context, ref string) ([]RunInfo, error) {
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return nil, err
	}
	return e.runsOf(ctx, at)
}

func (e *Engine) runsOf(ctx context.Context, ref store.Ref) ([]RunInfo, error) {
	var out []RunInfo
	err := e.withRuns(ctx, ref, func(s *task.State) {
		// A reason that cannot be read any more leaves a run without one.
		runs, _ := s.WithReasons(s.Runs.All...)
		for _, run := range slices.Backward(runs) {
			out = append(out, e.currentRun(ctx, ref, s, run))
		}
	})
	return out, err
}

// activeStates are the states that AllRuns shows first.
var activeStates = []string{"running", "waiting", "queued"}

// AllRuns returns the newest runs of all tasks, one of each task: those that work, wait or are queued first, and those
// of the tasks with the newest messages before others. A cursor is a position in that order.
func (e *Engine) AllRuns(ctx context.Context, f RunFilter) (runs []RunInfo, next string, err error) {
	from := 0
	if f.Cursor != "" {
		if from, err = strconv.Atoi(f.Cursor); err != nil || from < 0 {
			return nil, "", fmt.Errorf("cursor %q: want a next_cursor of a list", f.Cursor)
		}
	}
	refs, err := e.tasksInOrder(ctx, f.State)
	if err != nil {
		return nil, "", err
	}
	for i, ref := range refs {
		if i < from {
			continue
		}
		var newest *RunInfo
		if err := e.withRuns(ctx, ref, func(s *task.State) {
			if s.Run != nil {
				newest = new(e.currentRun(ctx, ref, s, *s.Run))
			}
		}); err != nil || newest == nil || f.State != "" && newest.State != f.State {
			if ctx.Err() != nil {
				return nil, "", ctx.Err()
			}
			continue // a task that cannot be read must not break the list
		}
		if f.Limit > 0 && len(runs) == f.Limit {
			return runs, strconv.Itoa(i), nil
		}
		runs = append(runs, *newest)
	}
	return runs, "", nil
}

// tasksInOrder returns the tasks that may have a run of that state, "" = any, in the order of AllRuns.
func (e *Engine) tasksInOrder(ctx context.Context, state string) ([]store.Ref, error) {
	first := append(slices.Clone(activeStates), "delegated")
	var only []string
	if slices.Contains(activeStates, state) {
		only = first
	}
	list, err := e.listTasks(ctx, only...)
	if err != nil {
		return nil, err
	}
	rank := func(i int) uint { return uint(slices.Index(first, list.Items[i].Status)) } // of the others: the highest
	order := make([]int, len(list.Items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(list.Items[b].TS, list.Items[a].TS))
	})
	return api.Each(order, func(i int) store.Ref { return list.Refs[i] }), nil
}

// listTasks lists the tasks of those statuses that have a journal.
func (e *Engine) listTasks(ctx context.Context, statuses ...string) (store.Listing, error) {
	return e.store.List(ctx, store.Filter{Statuses: statuses, Logged: true})
}

// CancelTask stops the run of a task that works in this process, waits in its queue or waits for an answer; with only,
// it stops no run but the one of that id. It returns when the run has ended: within two seconds, saved, with no process
// left. A run that ended before stays as it is, and is returned.
func (e *Engine) CancelTask(ctx context.Context, ref, only string) (RunInfo, error) {
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return RunInfo{}, err
	}
	if info, ok, err := e.cancelRun(ctx, at, only); ok {
		return info, err
	}
	done, err := e.scheduler.LockTask(ctx, keyOf(at))
	if err != nil {
		return RunInfo{}, err
	}
	defer done()
	if info, ok, err := e.cancelRun(ctx, at, only); ok { // it began before the lock was free
		return info, err
	}
	runs, err := e.runsOf(ctx, at)
	if err != nil {
		return RunInfo{}, err
	}
	if len(runs) == 0 {
		return RunInfo{}, fmt.Errorf("task %s: %w", at.ID, ErrNoRun)
	}
	newest := runs[0]
	if only != "" && newest.ID != only {
		return e.infoOf(ctx, at, only) // another run followed
	}
	if newest.Outcome != "" {
		return newest, nil
	}
	err = e.changeIdle(ctx, at, func(t *store.Task) error {
		if run := t.State().Run; run == nil || run.ID != newest.ID || run.Outcome != "" {
			return nil // another process ended it first
		}
		return t.Commit(ctx, task.RunEnded{Run: newest.ID, Outcome: "cancelled", Reason: "cancelled"})
	})
	if err != nil {
		return newest, err
	}
	e.scheduler.Dequeue(keyOf(at))
	return e.infoOf(ctx, at, newest.ID)
}

// cancelRun stops the run of a task that works in this process, and the one that follows when the first was at its end
// already; with only, it stops no run but the one of that id. false when there is none.
func (e *Engine) cancelRun(ctx context.Context, ref store.Ref, only string) (RunInfo, bool, error) {
	run := e.working(keyOf(ref))
	if run == nil || only != "" && run.ID != only {
		return RunInfo{}, false, nil
	}
	for {
		run.Cancel()
		if err := run.settle(ctx); err != nil {
			return RunInfo{}, true, err
		}
		if only != "" || run.after.next == nil || keyOf(run.after.next.task.Ref) != keyOf(run.task.Ref) {
			break
		}
		run = run.after.next // for an input that came at the last moment
	}
	info, err := e.infoOf(ctx, ref, run.ID)
	return info, true, err
}

// infoOf is one run of a task.
func (e *Engine) infoOf(ctx context.Context, ref store.Ref, run string) (RunInfo, error) {
	out, found := RunInfo{}, false
	err := e.withRuns(ctx, ref, func(s *task.State) {
		if r := s.Runs.Find(run); r != nil {
			whole, _ := s.WithReasons(r)
			out, found = e.currentRun(ctx, ref, s, whole[0]), true
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %q", ErrNoRun, run)
	}
	return out, err
}

// withRuns folds the runs of a task up to the end of its journal and lends them to f: see task.NewRuns. A task
// without a journal has none. Callers act on them, so a snapshot counts only when this root wrote it.
func (e *Engine) withRuns(ctx context.Context, ref store.Ref, f func(*task.State)) error {
	log, err := e.store.Verified(ctx, ref)
	if errors.Is(err, journal.ErrNotFound) {
		f(task.New(nil))
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	s, err := fold.Runs(ctx, log)
	if err != nil {
		return fmt.Errorf("fold the runs of task %s: %w", ref.ID, err)
	}
	f(s)
	return nil
}

// currentRun returns a run of s with its state now. A run without an end that no process works on is interrupted,
// although no event records that yet. But the run may have ended and been released after s was folded and before we
// looked for its process, so the journal is folded once more then.
func (e *Engine) currentRun(ctx context.Context, ref store.Ref, s *task.State, run task.Run) RunInfo {
	info := e.runInfo(ctx, ref, s, run)
	if info.State != "interrupted" || info.Outcome != "" || run.ID != s.Run.ID {
		return info
	}
	_ = e.withRuns(ctx, ref, func(s *task.State) {
		now := s.Runs.Find(run.ID)
		if now == nil || now == s.Run && now.Outcome == "" && now.Waiting == "" {
			return // no process worked on it then, and it has no end
		}
		info = e.runInfo(ctx, ref, s, *now)
	})
	return info
}

// runInfo returns a run of s with its state.
func (e *Engine) runInfo(ctx context.Context, ref store.Ref, s *task.State, run task.Run) RunInfo {
	info := RunInfo{Run: run, Ref: ref}
	e.mu.Lock()
	here := e.runs[info.ID]
	e.mu.Unlock()
	info.Here = here != nil
	asked := here.openQuestion()
	switch {
	case info.Outcome == "limit", info.Outcome == "denied":
		info.State = "interrupted" // as its task is
	case info.Outcome != "":
		info.State = info.Outcome
	case s.Run.ID != run.ID:
		info.State = "interrupted"
	case run.Waiting != "" && (run.ChildQuestion == "" || !e.stalled(ctx, ref, run.Waiting)):
		info.State, info.Question = "waiting", ref.ID+"."+run.Waiting
		if run.ChildQuestion != "" {
			info.Question = run.Waiting + "." + run.ChildQuestion
		}
	case asked != "":
		info.State, info.Question = "waiting", asked
	case here != nil:
		info.State = "running"
	case info.Started == 0:
		info.State, info.Position = "queued", e.scheduler.Position(info.ID)
		info.Here = info.Position > 0
	default:
		info.State = "interrupted"
		if _, held := e.store.Holder(ctx, info.Ref); held {
			info.State = "running"
		}
		for _, q := range s.Questions {
			if q.Run == info.ID && q.Kind != agent.KindMistake {
				info.Question = info.Ref.ID + "." + q.Question
			}
		}
		if info.State == "running" && info.Question != "" {
			info.State = "waiting"
		}
	}
	return info
}

// stalled reports whether a subtask that asked is over and asks no more, so that no answer continues the run of its parent:
// the subtask was answered by itself, and then failed, or was killed before it could wake the parent.
func (e *Engine) stalled(ctx context.Context, parent store.Ref, child string) bool {
	at, err := e.store.FindChild(ctx, parent, child)
	if err != nil {
		return errors.Is(err, store.ErrNotFound)
	}
	asked, err := e.openQuestions(ctx, at)
	if err != nil || len(asked) > 0 || e.working(keyOf(at)) != nil {
		return false
	}
	runs, err := e.runsOf(ctx, at)
	return err == nil && (len(runs) == 0 || !slices.Contains(activeStates, runs[0].State))
}
