package engine

import (
	"context"
	"errors"
	"reflect"

	"github.com/roost-dev/roost/api"
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
func (e *Engine) Fork(ctx context.Context, ref store.Ref, o history.ForkOptions) (api.ForkResult, func(context.Context) error, error) {
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
func (e *Engine) Purge(ctx context.Context, given string) (api.DeletedTask, error) {
	t, stores, err := e.purge(ctx, given)
	return t, errors.Join(err, e.checkpoints.RemoveUnused(ctx, stores))
}

// PurgeAll is Purge of several tasks, until an error of one or of report, which is called for each removed task. Contents
// are removed once, at the end.
func (e *Engine) PurgeAll(ctx context.Context, given []string, report func(api.DeletedTask) error) (err error) {
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
func (e *Engine) purge(ctx context.Context, given string) (t api.DeletedTask, stores []string, err error) {
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
func (e *Engine) Undo(ctx context.Context, given string, o actions.Options) (api.Action, api.TaskActions, *api.RestoreResult, error) {
	var restored *api.RestoreResult
	o.Files = func(ctx context.Context, t *store.Task, d task.Action) (err error) {
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
				return api.Action{}, api.TaskActions{}, nil, err
			}
		}
	}
	action, all, err := actions.Undo(ctx, e.store, given, o)
	return action, all, restored, err
}

// Create makes a task without a run, with the settings that a run would have. Where the request names a task that exists,
// the result is that task: a client that repeats a request gets one task.
func (e *Engine) Create(ctx context.Context, r Request) (store.Ref, error) {
	if r.NewTask != "" {
		ref, err := e.store.Find(ctx, store.OwnSource+":"+r.NewTask)
		if err == nil && ref.ID == r.NewTask || err != nil && !errors.Is(err, store.ErrNotFound) {
			return ref, err
		}
	}
	r.Choice = e.resolver.Defaults(task.Settings{}, r.Choice, r.Task == "")
	settings, _, err := e.prepareSettings(r)
	if err != nil {
		return store.Ref{}, err
	}
	origin := r.Origin
	if origin == "" {
		origin = "api"
	}
	t, err := e.store.Create(ctx, task.Created{
		Task: r.NewTask, Title: r.Title, Origin: origin, Number: 1, CreatedAt: e.opt.Now(), Settings: settings,
	})
	if err != nil {
		return store.Ref{}, err
	}
	return t.Ref, t.Close(context.WithoutCancel(ctx))
}

// Amend changes the settings of a task for its later runs: those of r that are not empty, as a run would take them. Amend
// calls check, when it is not nil, with the task owned; an error leaves everything as it was. The changed task is not ref
// where a foreign task continues as a task of Roost's own.
func (e *Engine) Amend(ctx context.Context, ref store.Ref, r Request, check func(task.Settings) error) (store.Ref, error) {
	latest := e.store.Latest(ref)
	if e.working(keyOf(latest)) == nil { // a run that works has received it already
		if _, err := e.Receive(ctx, Request{Task: keyOf(latest)}); err != nil {
			return ref, err
		}
	}
	view, err := e.store.ReadToContinue(ctx, latest)
	if err != nil {
		return ref, err
	}
	_, err = e.amended(view.State.Settings, r) // a refusal must leave no trace
	if err = errors.Join(err, view.Close()); err != nil {
		return ref, err
	}
	owned, err := e.store.Own(ctx, ref)
	if err != nil {
		return ref, err
	}
	t := owned.Task
	was := t.State().Settings
	if check != nil {
		err = check(was)
	}
	if err == nil {
		var now task.Settings
		if now, err = e.amended(was, r); err == nil && !reflect.DeepEqual(was, now) {
			if err = t.Commit(ctx, task.Changed{Settings: &now}); err == nil {
				err = t.Barrier(ctx)
			}
		}
	}
	return t.Ref, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
}

// amended puts the settings of a request over those of a task, and checks the result as for a run.
func (e *Engine) amended(was task.Settings, r Request) (task.Settings, error) {
	s, err := e.resolver.Settings(was, r.Choice)
	if err != nil {
		return s, err
	}
	s, _, err = e.resolver.Prepare(was, s, r.Choice, r.Task == "")
	return s, err
}
