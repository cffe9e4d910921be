package engine

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"
)

// Checkpoints gives access to the checkpoints of all tasks.
func (e *Engine) Checkpoints() *checkpoints.Service { return e.checkpoints }

// Fork is history.Fork. The checkpoints that both tasks share are kept for the new one before it exists, so that neither
// needs the other one.
func (e *Engine) Fork(ctx context.Context, ref store.Ref, o history.ForkOptions) (history.ForkResult, func(context.Context) error, error) {
	change := o.Settings
	o.Settings = func(s *task.Settings) error {
		if change != nil {
			if err := change(s); err != nil {
				return err
			}
		}
		return e.resolver.CheckWorkspace(s.Workspace)
	}
	o.Before = func(id string, s *task.State) error { return e.checkpoints.ShareWithFork(ctx, ref, id, s) }
	return history.Fork(ctx, e.store, ref, o)
}

// takesCheckpoints reports whether a run keeps files before it changes them.
func (e *Engine) takesCheckpoints(r Request) bool {
	return !e.opt.Config.NoCheckpoints && !r.NoCheckpoints
}

// Purge is trash.Purge, and removes the task's checkpoints too, with the contents that no other task needs. Where those
// cannot be removed the error reports that, and the task is removed all the same.
func (e *Engine) Purge(ctx context.Context, given string) (trash.DeletedTask, error) {
	t, stores, err := e.purge(ctx, given)
	return t, errors.Join(err, e.checkpoints.RemoveUnused(ctx, stores))
}

// PurgeAll is Purge of several tasks, until an error of one or of report, which is called for each removed task. Contents
// are removed once, at the end.
func (e *Engine) PurgeAll(ctx context.Context, given []string, report func(trash.DeletedTask) error) (err error) {
	var all []string
	for _, name := range given {
		t, stores, bad := e.purge(ctx, name)
		all = append(all, stores...)
		if bad == nil {
			bad = report(t)
		}
		if err = bad; err != nil {
			break
		}
	}
	return errors.Join(err, e.checkpoints.RemoveUnused(ctx, all))
}

// purge removes a task and its refs, and returns the stores that held checkpoints of it.
func (e *Engine) purge(ctx context.Context, given string) (t trash.DeletedTask, stores []string, err error) {
	if t, err = trash.Purge(ctx, e.store, given); err == nil {
		stores, err = e.checkpoints.Forget(store.Ref{ID: t.ID, Source: t.Source, Own: !t.Hidden})
	}
	return t, stores, err
}

// Undo is actions.Undo, and also takes back actions that restored files: the files go back as they came, by one more
// restore. Files that others changed since stay as they are, and are in the result's Conflicts. The result is nil where
// no file changed.
//
// Errors are those of actions.Undo and of checkpoints.Service.Restore, and *checkpoints.ChangedSinceError.
func (e *Engine) Undo(ctx context.Context, given string, o actions.Options) (actions.Action, actions.TaskActions, *checkpoints.RestoreResult, error) {
	var restored *checkpoints.RestoreResult
	o.Files = func(ctx context.Context, t *store.Task, d task.Deed) (err error) {
		restored, err = e.checkpoints.UndoFiles(ctx, t, d, o.Redo)
		return err
	}
	o.Ready = func(ctx context.Context, t *store.Task) error {
		_, err := e.checkpoints.FinishOwned(ctx, t)
		return err
	}
	if !o.DryRun {
		// A restore that a kill interrupted is the newest action once it is finished.
		if ref, err := e.store.FindLatest(ctx, given); err == nil {
			if _, err := e.checkpoints.Finish(ctx, keyOf(ref)); err != nil {
				return actions.Action{}, actions.TaskActions{}, nil, err
			}
		}
	}
	action, all, err := actions.Undo(ctx, e.store, given, o)
	return action, all, restored, err
}
