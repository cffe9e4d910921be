package engine

import (
	"context"
	"errors"
	"reflect"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Create makes a task that does nothing yet, with the settings that a run would have. One
// of that name that is there already is it: a name of the caller's own making is taken
// once.
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

// Amend gives a task other settings for its later runs: those of r that are not empty, as
// a run would take them. still, when it is not nil, is asked with the task in hand, and
// its error leaves everything as it was. The task that was changed is another one than
// ref where a foreign task goes on as a task of ours.
func (e *Engine) Amend(ctx context.Context, ref store.Ref, r Request, still func(task.Settings) error) (store.Ref, error) {
	latest := e.store.Latest(ref)
	if e.working(keyOf(latest)) == nil { // else what is changed here would go with the rest
		if _, err := e.Receive(ctx, Request{Task: keyOf(latest)}); err != nil {
			return ref, err
		}
	}
	view, err := e.store.ReadToContinue(ctx, latest)
	if err != nil {
		return ref, err
	}
	_, err = e.amended(view.State.Settings, r) // a refusal must leave nothing behind
	if err = errors.Join(err, view.Close()); err != nil {
		return ref, err
	}
	owned, err := e.store.Own(ctx, ref)
	if err != nil {
		return ref, err
	}
	t := owned.Task
	was := t.State().Settings
	if still != nil {
		err = still(was)
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

// amended are settings with others over them, checked as for a run.
func (e *Engine) amended(was task.Settings, r Request) (task.Settings, error) {
	s, err := e.resolver.Settings(was, r.Choice)
	if err != nil {
		return s, err
	}
	s, _, err = e.resolver.Prepare(was, s, r.Choice, r.Task == "")
	return s, err
}
