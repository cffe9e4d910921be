package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/engine/budget"

	"github.com/roost-dev/roost/engine/scheduler"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool/historytool"
)

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
	if err := requireTrust(ctx, owned.Task); err != nil {
		return nil, err
	}
	finished, err := e.checkpoints.FinishOwned(ctx, owned.Task)
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
	settings, env, err := e.prepareSettings(r)
	if err == nil && e.takesCheckpoints(r) {
		err = e.checkpoints.CheckFree(env.Workspace)
	}
	if err != nil {
		return nil, err
	}
	owned, err := e.store.Create(ctx, task.Created{
		Task: r.NewTask, Title: r.Title, Origin: originOf(r), Number: 1, CreatedAt: e.opt.Now(), Settings: settings,
	})
	if err != nil {
		return nil, err
	}
	run := e.newRun(owned, settings, env, r)
	run.words.own = agent.Input{Text: r.Text, Images: r.Images, Yes: r.Yes}
	return run, nil
}

// prepareSettings decides the settings of a new task, and opens what its first run works with.
func (e *Engine) prepareSettings(r Request) (task.Settings, setup.Environment, error) {
	settings, err := e.resolver.Settings(task.Settings{}, r.Choice)
	if err == nil {
		err = e.resolver.CheckWorkspace(settings.Workspace)
	}
	if err != nil {
		return settings, setup.Environment{}, err
	}
	return e.resolver.Prepare(task.Settings{}, settings, r.Choice, r.Task == "")
}

func (e *Engine) newRun(t *store.Task, s task.Settings, p setup.Environment, r Request) *Run {
	id := r.RunID
	if id == "" {
		id = runID(t.Ref.ID)
	}
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
	run.stream.from, run.stream.saved = events.AfterCommit(t.State().Seq), make(chan struct{})
	run.after.settled = make(chan struct{})
	spend := e.totals.Open(t.State().Usage.CostMicros)
	run.held.budget = budget.New(budget.Options{
		Store: e.store,
		Now:   e.opt.Now,
		Zone:  time.Local,
		Task:  t.State,
		Spend: spend,
		Tree:  s.Limits.MaxTaskMicros,
		Day:   e.resolver.DayLimit(r.Choice),
	})
	run.found = append(append(append(run.found, p.Notes...), e.resolver.UnknownPrice(s, p.Model, r.Choice)...), e.endOrphanLinter(t.Ref)...)
	root := p.Workspace.Root()
	run.agent = &agent.Agent{
		Task: agent.Task{
			Journal:  recorder{t, run, spend},
			RunID:    id,
			Settings: s,
			Policy:   setup.Policy(s),
			Head:     gitHead(root),
		},
		Model: agent.Model{
			Provider: p.Provider.LLM,
			Entry:    p.Model,
		},
		Tools: agent.Tools{
			List:     e.tools(t.Ref.ID),
			Offer:    e.opt.Config.Offer(),
			Subtasks: &family{run, below},
			Outputs:  historytool.ForeignOutputs(t.Ref.Dir),
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
			Budget:     runBudget{run},
			OtherTasks: otherTasks{e, root, t.Ref.ID},
		},
	}
	if e.takesCheckpoints(r) {
		run.held.checkpoints = e.checkpoints.ForRun(t, p.Workspace)
		run.agent.Host.Checkpoints = run.held.checkpoints
	}
	run.equip(p, t)
	return run
}
