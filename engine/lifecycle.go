package engine

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
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
		was := *s
		if change != nil {
			if err := change(s); err != nil {
				return err
			}
		}
		if s.Workspace != was.Workspace {
			s.Folder = e.opt.Reach.Identify(inputfile.Resolved(s.Workspace))
		}
		r := e.resolver()
		err := r.CheckWorkspace(s.Workspace)
		if err == nil && s.Mode != was.Mode {
			modes, _ := r.Config.Modes(s.Workspace)
			_, err = modes.Lookup(s.Mode)
		}
		return err
	}
	o.Before = func(id string, s *task.State) error { return e.checkpoints.ShareWithFork(ctx, ref, id, s) }
	return history.Fork(ctx, e.store, ref, o)
}

// PurgeAll is trash.Purge of several tasks, until an error of one or of report, which is called for each removed task. It
// removes the tasks' checkpoints too, and at the end, once, the contents that no other task needs. Where those cannot be
// removed the error reports that, and the tasks are removed all the same.
func (e *Engine) PurgeAll(ctx context.Context, given []string, report func(api.DeletedTask) error) (err error) {
	var all []string
	for _, name := range given {
		t, bad := trash.Purge(ctx, e.store, name)
		if bad == nil {
			var stores []string // that held checkpoints of it
			stores, bad = e.checkpoints.Forget(ctx, store.Ref{ID: t.ID, Source: t.Source, Own: !t.Hidden})
			all = append(all, stores...)
		}
		if bad == nil {
			bad = report(t)
		}
		if err = bad; err != nil {
			break
		}
	}
	return errors.Join(err, e.checkpoints.RemoveUnused(ctx, all), e.removeClones(ctx))
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
	r.Choice = e.resolver().Defaults(task.Settings{}, r.Choice, r.Task == "")
	settings, _, err := e.prepareSettings(task.Settings{}, r)
	if err != nil {
		return store.Ref{}, err
	}
	t, err := e.createTask(ctx, r, settings)
	if err != nil {
		return store.Ref{}, err
	}
	return t.Ref, t.Close(context.WithoutCancel(ctx))
}

// Amend changes the settings of a task for its later runs: those of r that are not empty, as a run would take them. The
// changed task is not ref where a foreign task continues as a task of Roost's own.
func (e *Engine) Amend(ctx context.Context, ref store.Ref, r Request) (store.Ref, error) {
	latest := e.store.Latest(ctx, ref)
	if e.working(keyOf(latest)) == nil { // a run that works has received it already
		if err := e.Receive(ctx, Request{Task: keyOf(latest), Person: r.Person}); err != nil {
			return ref, err
		}
	}
	view, err := e.store.ReadToContinue(ctx, latest)
	if err != nil {
		return ref, err
	}
	_, _, err = e.prepareSettings(view.State.NextSettings(), r) // a refusal must leave no trace
	if err = errors.Join(err, view.Close()); err != nil {
		return ref, err
	}
	err = e.changeIdle(ctx, ref, func(t *store.Task) error {
		ref = t.Ref
		was := t.State().NextSettings()
		now, _, err := e.prepareSettings(was, r)
		if err != nil || reflect.DeepEqual(was, now) {
			return err
		}
		change := []task.Event{task.Changed{Settings: &now}}
		if run := t.State().Run; run.Waits() {
			change = append(change, task.RunQueued{Run: run.ID, Settings: now, RunChoice: run.RunChoice})
		}
		return t.Commit(ctx, change...)
	})
	return ref, err
}

// ChangeAccess shares a task, or gives it to another owner, whether a run of this process works on it or none does.
func (e *Engine) ChangeAccess(ctx context.Context, ref store.Ref, a api.Access) error {
	at, unlock, err := e.lockLatest(ctx, keyOf(ref))
	if err != nil {
		return err
	}
	defer unlock()
	if works, err := e.changeWorking(ctx, at, func(t *store.Task) error { return t.ChangeAccess(ctx, a) }); works {
		return err
	}
	return e.changeIdle(ctx, at, func(t *store.Task) error { return t.Commit(ctx, task.Changed{Access: &a}) })
}

// ErrTooShort: the task's history holds nothing that is worth a summary.
var ErrTooShort = agent.ErrTooShort

// Condense summarises older history of a task, by its own model or by the one that r names, which the task does not keep.
// focus is what the summary should emphasise; notice is called with the progress. The task must not be running. It
// Task of the result is the condensed task: one that cannot be written to in its folder continues as a fork.
func (e *Engine) Condense(ctx context.Context, r Request, focus string, notice func(string)) (c api.Condensed, err error) {
	run, err := e.prepare(ctx, r)
	if err != nil {
		return c, err
	}
	defer run.life.cancel(nil)
	for _, note := range run.found {
		notice(note)
	}
	run.agent.User.Observer = noticesOnly{notice}
	c, err = run.agent.Condense(ctx, focus)
	c.Task = run.TaskID
	return c, errors.Join(err, run.abandon())
}

// CondensePlan returns what Condense would do: how many messages the summary would replace, and what the request for
// it is expected to cost, uncached. It writes nothing.
func (e *Engine) CondensePlan(ctx context.Context, r Request) (c api.Condensed, err error) {
	id, err := e.read(ctx, r, func(a *agent.Agent) (err error) {
		if err = e.resolver().CheckWorkspace(a.Task.Settings.Workspace); err == nil {
			c, err = a.PlanCondense()
		}
		return err
	})
	c.Task = id
	return c, err
}

// Context returns what the next request of a task would consist of. It writes nothing, and works on a task that
// another process runs.
func (e *Engine) Context(ctx context.Context, r Request) (u api.ContextUse, err error) {
	id, err := e.read(ctx, r, func(a *agent.Agent) (err error) {
		u, err = a.Context()
		return err
	})
	u.Task = id
	return u, err
}

// ContextAs is Context also for a task whose profile is known only in its editor: as if a provider or profile of this
// configuration answered it; AsIf names that one. No request is sent, so the user need not choose one. Where there is
// none, the error is a *setup.UnknownProfileError.
func (e *Engine) ContextAs(ctx context.Context, r Request) (u api.ContextUse, err error) {
	u, err = e.Context(ctx, r)
	var unknown *setup.UnknownProfileError
	if !errors.As(err, &unknown) {
		return u, err
	}
	c := e.resolver().Config
	c.PreferKeyed()
	for _, name := range append([]string{c.Provider}, slices.Sorted(maps.Keys(c.Profiles))...) {
		if r.StandIn = name; name == "" {
			continue
		}
		if u, err := e.Context(ctx, r); err == nil {
			u.AsIf, u.Unknown = &name, &api.UnknownProfile{Name: unknown.Profile, Source: unknown.Source}
			return u, nil
		}
	}
	return u, errors.Join(unknown, ctx.Err())
}

// read calls f with an agent for a task that it cannot change, and returns the task's id.
func (e *Engine) read(ctx context.Context, r Request, f func(*agent.Agent) error) (id string, err error) {
	ref, err := e.store.FindLatest(ctx, r.Task)
	if err != nil {
		return "", err
	}
	v, err := e.store.ReadToContinue(ctx, ref)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	has := v.State.NextSettings()
	if untrusted, err := e.checkTrust(ctx, ref, v.State, r); err != nil {
		return "", err
	} else if untrusted != nil { // no key may be sent to an address that came with it
		has = has.Proposed()
	}
	if r.Choice, _, err = e.resolver().ResolveProfile(ref.Source, ref.ID, has, r.Choice); err != nil {
		return "", err
	}
	settings, err := e.resolver().Settings(has, r.Choice)
	if err != nil {
		return "", err
	}
	env, err := e.resolver().Open(settings)
	if err != nil {
		return "", err
	}
	return ref.ID, f(&agent.Agent{
		Task:  agent.Task{Journal: reading{state: v.State}, Settings: settings},
		Model: agent.Model{Provider: env.Provider.LLM, Entry: env.Model},
		Tools: agent.Tools{List: e.tools(ref.ID, v.State.Access.Owner)},
		User: agent.User{
			Modes: &env.Modes,
			Setup: setup.ModeSetup{Resolver: e.resolver(), Workspace: env.Workspace.Root(), Choice: r.Choice},
		},
		Host: agent.Host{Now: e.opt.Now, Workspace: env.Workspace},
	})
}

// noticesOnly is an agent.Observer that passes on notices only.
type noticesOnly struct{ notice func(string) }

func (noticesOnly) Accepted()            {}
func (noticesOnly) Expect(string)        {}
func (noticesOnly) Live(agent.Delta)     {}
func (n noticesOnly) Notice(text string) { n.notice(text) }

// reading is an agent.Journal for what only reads the state.
type reading struct {
	agent.Journal // nil: nothing is committed
	state         *task.State
}

func (r reading) State() *task.State { return r.state }
