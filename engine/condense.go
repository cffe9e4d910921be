package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/task"
)

// Condensed describes a summary: which messages it replaces, and what it costs.
type Condensed = agent.Condensed

// ErrTooShort: the task's history holds nothing that is worth a summary.
var ErrTooShort = agent.ErrTooShort

// Condense summarises older history of a task, by its own model or by the one that r names, which the task does not keep.
// focus is what the summary should emphasise; notice is called with the progress. The task must not be running. It
// returns the id of the condensed task: one that cannot be written to in its folder continues as a fork.
func (e *Engine) Condense(ctx context.Context, r Request, focus string, notice func(string)) (id string, c Condensed, err error) {
	run, err := e.prepare(ctx, r)
	if err != nil {
		return "", c, err
	}
	defer run.life.cancel(nil)
	for _, note := range run.found {
		notice(note)
	}
	run.agent.User.Observer = noticesOnly{notice}
	c, err = run.agent.Condense(ctx, focus)
	return run.TaskID, c, errors.Join(err, run.task.Close(context.WithoutCancel(ctx)), spool.Remove(run.held.spool))
}

// CondensePlan is what Condense would do: how many messages the summary would replace, and what the request for it is
// expected to cost, uncached. It writes nothing.
func (e *Engine) CondensePlan(ctx context.Context, r Request) (id string, c Condensed, err error) {
	a, id, closing, err := e.reader(ctx, r)
	if err != nil {
		return "", c, err
	}
	if err = e.resolver.CheckWorkspace(a.Task.Settings.Workspace); err == nil {
		c, err = a.PlanCondense()
	}
	return id, c, errors.Join(err, closing())
}

// Context is what the next request of a task would consist of. It writes nothing, and works on a task that another process
// runs.
func (e *Engine) Context(ctx context.Context, r Request) (agent.ContextUse, error) {
	a, _, closing, err := e.reader(ctx, r)
	if err != nil {
		return agent.ContextUse{}, err
	}
	u, err := a.Context()
	return u, errors.Join(err, closing())
}

// ContextAs is Context also for a task whose profile is known only in its editor: as if a provider or profile of this
// configuration answered it, which as names. No request is sent, so the user need not choose one. Where there is none,
// the error is a *setup.UnknownProfileError.
func (e *Engine) ContextAs(ctx context.Context, r Request) (u agent.ContextUse, as string, err error) {
	u, err = e.Context(ctx, r)
	var unknown *setup.UnknownProfileError
	if !errors.As(err, &unknown) {
		return u, "", err
	}
	c := e.opt.Config
	c.PreferKeyed()
	for _, name := range append([]string{c.Provider}, slices.Sorted(maps.Keys(c.Profiles))...) {
		if r.StandIn = name; name == "" {
			continue
		}
		if u, err := e.Context(ctx, r); err == nil {
			return u, name, nil
		}
	}
	return u, "", errors.Join(unknown, ctx.Err())
}

// reader makes an agent for a task that it cannot change; the caller closes it.
func (e *Engine) reader(ctx context.Context, r Request) (a *agent.Agent, id string, closing func() error, err error) {
	ref, err := e.store.FindLatest(ctx, r.Task)
	if err != nil {
		return nil, "", nil, err
	}
	v, err := e.store.ReadToContinue(ctx, ref)
	if err != nil {
		return nil, "", nil, err
	}
	has := v.State.Settings
	if untrusted, err := e.checkTrust(ctx, ref, v.State); err != nil {
		return nil, "", nil, errors.Join(err, v.Close())
	} else if untrusted != nil { // no key may be sent to an address that came with it
		has = has.Proposed()
	}
	r.Choice, _, err = e.resolver.ResolveProfile(ref.Source, ref.ID, has, r.Choice)
	if err != nil {
		return nil, "", nil, errors.Join(err, v.Close())
	}
	settings, err := e.resolver.Settings(has, r.Choice)
	if err != nil {
		return nil, "", nil, errors.Join(err, v.Close())
	}
	env, err := e.resolver.Open(settings)
	if err != nil {
		return nil, "", nil, errors.Join(err, v.Close())
	}
	return &agent.Agent{
		Task: agent.Task{
			Journal:  reading{v.State},
			Settings: settings,
		},
		Model: agent.Model{
			Provider: env.Provider.LLM,
			Entry:    env.Model,
		},
		Tools: agent.Tools{
			List: e.tools(ref.ID),
		},
		User: agent.User{
			Modes: &env.Modes,
			Setup: setup.ModeSetup{Resolver: e.resolver, Workspace: env.Workspace.Root(), Choice: r.Choice},
		},
		Host: agent.Host{
			Now:       e.opt.Now,
			Workspace: env.Workspace,
		},
	}, ref.ID, v.Close, nil
}

// noticesOnly is an agent.Observer that passes on notices only.
type noticesOnly struct{ notice func(string) }

func (noticesOnly) Accepted()               {}
func (noticesOnly) Expect(agent.Plan) error { return nil }
func (noticesOnly) Live(agent.Delta)        {}
func (n noticesOnly) Notice(text string)    { n.notice(text) }

// HasProfile reports whether a profile here answers a task of another tool that names this profile.
func (e *Engine) HasProfile(foreign string) bool { return e.opt.Config.HasProfile(foreign) }

// reading is an agent.Journal that can only be read.
type reading struct{ state *task.State }

var errReading = errors.New("this task is open for reading only")

func (r reading) State() *task.State                        { return r.state }
func (reading) Commit(context.Context, ...task.Event) error { return errReading }
func (reading) Barrier(context.Context) error               { return errReading }
func (reading) PutBlobFile(context.Context, string) (string, int64, error) {
	return "", 0, errReading
}
func (reading) TakeIn() error                         { return nil }
func (reading) Claim(string) (task.InputQueued, bool) { return task.InputQueued{}, false }
