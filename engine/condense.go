package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/engine/setup"
)

// Condensed says what a summary stands for.
type Condensed = agent.Condensed

// ErrTooShort: there is nothing in the task's history that is worth a summary.
var ErrTooShort = agent.ErrTooShort

// Condense has older history of a task summarised: by its own model, or by the one
// that r names, which the task does not keep. words say what the summary is to look
// to; notice is told how it goes. The task must not be running. It returns the id of
// the task that was condensed: one that cannot be written to where it lies continues as
// a fork.
func (e *Engine) Condense(ctx context.Context, r Request, words string, notice func(string)) (id string, c Condensed, err error) {
	run, err := e.prepare(ctx, r)
	if err != nil {
		return "", c, err
	}
	defer run.cancel(nil)
	for _, note := range run.found {
		notice(note)
	}
	run.agent.User.Observer = noticesOnly{notice}
	c, err = run.agent.Condense(ctx, words)
	return run.TaskID, c, errors.Join(err, run.task.Close(context.WithoutCancel(ctx)), spool.Remove(run.spool))
}

// CondensePlan says what Condense would do: for how many messages the summary would
// stand, and what asking for it is expected to cost, uncached. Nothing is written.
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

// Context says what the next request of a task would be made of. Nothing is written,
// and a task that runs elsewhere can be asked about.
func (e *Engine) Context(ctx context.Context, r Request) (agent.ContextUse, error) {
	a, _, closing, err := e.reader(ctx, r)
	if err != nil {
		return agent.ContextUse{}, err
	}
	u, err := a.Context()
	return u, errors.Join(err, closing())
}

// ContextAs is Context also for a task whose profile lies in its editor's settings: as if
// somebody who is known here answered it, who says who. Nothing is asked of anybody, so
// nobody need be chosen. Without anyone that could, the error is an *setup.UnknownProfileError.
func (e *Engine) ContextAs(ctx context.Context, r Request) (u agent.ContextUse, who string, err error) {
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

// reader is an agent for a task that it cannot change; to be closed.
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
	if held, err := e.held(ctx, ref, v.State); err != nil {
		return nil, "", nil, errors.Join(err, v.Close())
	} else if held != nil { // no key goes to an address that came with it
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

// noticesOnly passes on a run's notices and nothing else.
type noticesOnly struct{ notice func(string) }

func (noticesOnly) Accepted()               {}
func (noticesOnly) Expect(agent.Plan) error { return nil }
func (noticesOnly) Live(agent.Delta)        {}
func (n noticesOnly) Notice(text string)    { n.notice(text) }

// HasProfile reports whether a profile here answers a task of another tool that names this profile.
func (e *Engine) HasProfile(foreign string) bool { return e.opt.Config.HasProfile(foreign) }
