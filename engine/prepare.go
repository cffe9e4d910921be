package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/hook"
	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/budget"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool/historytool"
)

// prepare checks everything that can be checked before anything is written, then takes the task.
func (e *Engine) prepare(ctx context.Context, r Request) (run *Run, err error) {
	if r.Task == "" {
		return e.prepareNew(ctx, r)
	}
	if err := e.Receive(ctx, r); err != nil {
		return nil, err
	}
	ref, err := e.store.Find(ctx, r.Task)
	if err != nil {
		return nil, err
	}
	// Read first: a refusal must leave nothing behind.
	latest := e.store.Latest(ctx, ref)
	view, err := e.store.ReadToContinue(ctx, latest)
	if err != nil {
		return nil, err
	}
	if err := requireInput(view.State, r); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	has := view.State.NextSettings()
	r.inherit(view.State.Run)
	made, err := e.cloneWorkspace(ctx, ref, view.State, &has, r)
	if err != nil {
		return nil, errors.Join(err, view.Close())
	}
	defer func() {
		if made != nil && run == nil {
			made.undo()
		}
	}()
	settings, notices, err := e.settle(ref, view, has, &r)
	var said words
	if err == nil {
		said, err = e.divert(ctx, latest, view, r)
	}
	if err != nil {
		return nil, errors.Join(err, view.Close())
	}
	foreign := view.Log == nil
	if err := view.Close(); err != nil {
		return nil, err
	}
	settings, env, err := e.resolver().Prepare(has, settings, r.Choice, false)
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
	finished := ""
	if origin := standing(owned.Task.Standing(), owned.Task.State(), r); origin != store.Ours {
		// Another process may have written to it since the first check, and nothing in it may be obeyed then.
		err = &UntrustedError{Task: owned.Task.Ref.ID, Standing: origin, Brings: owned.Task.State().Brings()}
	} else if err = errors.Join(made.stale(ref, owned.Task.State()), answered(owned.Task, said.own)); err == nil {
		finished, err = e.checkpoints.FinishOwned(ctx, owned.Task)
	}
	if err != nil {
		return nil, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
	}
	if made != nil {
		notices = append(notices, made.note)
	}
	notices = append(notices, e.recordTree(ctx, owned.Task, &settings, env.Workspace, r)...)
	run = e.newRun(owned.Task, settings, env, r)
	run.words = said
	if finished != "" {
		run.found = append(run.found, finished)
	}
	run.found = append(append(append(run.found, describeOwned(owned, foreign)...), notices...),
		differences(owned.Task.State(), settings, run.agent.Task.Head)...)
	return run, nil
}

// inherit takes over the RunChoice of a task's newest run when the request continues that run, or when the engine itself
// makes the request. What the request chooses itself stays.
func (r *Request) inherit(run *task.Run) {
	ours := run != nil && run.Code != task.CodeReceived // else another root's user chose it
	if run.Rests() || run.Waits() || ours && (r.automatic || r.queued) {
		r.MaxDayMicros, r.StandIn = cmp.Or(r.MaxDayMicros, run.MaxDayMicros), cmp.Or(r.StandIn, run.StandIn)
		r.NoCheckpoints = r.NoCheckpoints || run.NoCheckpoints
	}
}

// answered refuses an answer to a question that the task does not ask any more: another process may have owned the task,
// and used another answer, since the question was read.
func answered(t *store.Task, in agent.Input) error {
	if in.Answer == nil || t.State().Question(in.Question) != nil {
		return nil
	}
	earlier, ok, err := t.State().AnswerTo(in.Question)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("answer %s of task %s: %w", in.Question, t.Ref.ID, ErrNoQuestion)
	}
	return &AnsweredError{Question: in.Question, Task: t.Ref.ID, Answer: earlier}
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
		What: "continue task " + r.Task,
		Why:  "it holds no message yet: the program that started it ended before it saved the first one",
		Try:  resume + ` "what to do"  # or start a new one with roost run, and delete this one: roost delete ` + r.Task,
	}
}

func (e *Engine) prepareNew(ctx context.Context, r Request) (*Run, error) {
	if r.Text == "" && len(r.Images) == 0 {
		return nil, &setup.Error{What: "start a task", Why: "there is no prompt", Try: `roost run "what to do"`}
	}
	r.Choice = e.resolver().Defaults(task.Settings{}, r.Choice, true)
	settings, env, err := e.prepareSettings(task.Settings{}, r)
	if err == nil && e.takesCheckpoints(r) {
		err = e.checkpoints.CheckFree(env.Workspace)
	}
	if err != nil {
		return nil, err
	}
	owned, err := e.createTask(ctx, r, settings)
	if err != nil {
		return nil, err
	}
	notes := e.recordTree(ctx, owned, &settings, env.Workspace, r)
	run := e.newRun(owned, settings, env, r)
	run.found = append(run.found, notes...)
	run.words.own = agent.Input{Text: r.Text, Images: r.Images, Yes: r.Yes}
	return run, nil
}

// createTask creates the task that a request asks for.
func (e *Engine) createTask(ctx context.Context, r Request, s task.Settings) (*store.Task, error) {
	return e.store.Create(ctx, task.Created{
		Task: r.NewTask, Title: r.Title, Origin: cmp.Or(r.Origin, "api"), Number: 1,
		CreatedAt: e.opt.Now(), Settings: s, Access: api.Access{Owner: r.Person},
	})
}

// prepareSettings puts the settings of a request over those of a task, and opens what its next run works with.
func (e *Engine) prepareSettings(was task.Settings, r Request) (task.Settings, setup.Environment, error) {
	settings, err := e.resolver().Settings(was, r.Choice)
	if err == nil {
		err = e.resolver().CheckWorkspace(settings.Workspace)
	}
	if err != nil {
		return settings, setup.Environment{}, err
	}
	return e.resolver().Prepare(was, settings, r.Choice, r.Task == "")
}

func (e *Engine) newRun(t *store.Task, s task.Settings, p setup.Environment, r Request) *Run {
	id := cmp.Or(r.RunID, runID(t.Ref.ID))
	t.By(id)
	below := r // what holds for subtasks
	below.RunID, below.NewTask, below.answer, below.input, below.queued = "", "", nil, "", false
	ctx, cancel := context.WithCancelCause(context.Background())
	dir, err := spool.Make("")
	run := &Run{
		ID: id, TaskID: t.Ref.ID, engine: e, task: t, req: r, held: runEquipment{spool: dir, spoolErr: err},
		active: make(chan struct{}, 1), answers: map[string]*hearing{},
	}
	run.life.ctx, run.life.cancel = ctx, cancel
	run.life.accepted, run.life.released, run.life.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	run.life.accept = sync.OnceFunc(func() { close(run.life.accepted) })
	run.life.release = sync.OnceFunc(func() { close(run.life.released) })
	run.stream.from, run.stream.saved = events.AfterCommit(t.State().Seq), make(chan struct{})
	run.after.settled = make(chan struct{})
	spend := e.totals.Open(t.State().Usage.CostMicros)
	run.held.budget = budget.New(budget.Options{
		Store: e.store, Now: e.opt.Now, Zone: time.Local, Task: t.State, Spend: spend,
		Tree: s.Limits.MaxTaskMicros, Day: e.resolver().DayLimit(r.Choice),
	})
	run.found = append(append(append(run.found, p.Notes...), e.resolver().UnknownPrice(s, p.Model, r.Choice)...), e.endOrphans(t.Ref)...)
	root := p.Workspace.Root()
	run.agent = &agent.Agent{
		Task: agent.Task{
			Journal: recorder{t, run, spend}, RunID: id, Settings: s, Policy: setup.Policy(s), Head: gitHead(root),
			Choice: r.RunChoice,
		},
		Model: agent.Model{Provider: p.Provider.LLM, Entry: p.Model},
		Tools: agent.Tools{
			List: e.tools(t.Ref.ID, t.State().Access.Owner), Offer: e.resolver().Config.Offer(), Subtasks: &family{run, below},
			Outputs: historytool.ForeignOutputs(t.Ref.Dir),
		},
		User: agent.User{
			Asker: asker{run}, Attended: r.Interactive, Observer: observer{run},
			Zone: e.resolver().Config.Zone, Modes: &p.Modes,
			Setup: setup.ModeSetup{Resolver: e.resolver(), Workspace: root, Choice: r.Choice},
		},
		Host: agent.Host{
			Now: e.opt.Now, Workspace: p.Workspace, SpoolDir: dir, Masks: p.Provider.Masks,
			Mentions: e.world(t.Ref, p.Workspace, run.mode), Reached: run.held.budget.Reached,
			WorkedMS:   func() int64 { return run.worked().Milliseconds() },
			OtherTasks: otherTasks{e, root, t.Ref.ID, t.State().Access.Owner}.changed,
		},
	}
	if e.takesCheckpoints(r) {
		run.held.checkpoints = e.checkpoints.ForRun(t, p.Workspace)
		run.agent.Host.Checkpoints = run.held.checkpoints
	}
	if hooks := e.resolver().Config.Hooks; len(hooks) > 0 {
		run.agent.Host.Hooks = &hook.Set{
			Hooks: hooks, TaskID: t.Ref.ID, RunID: id, Workspace: root, Spool: dir, Mark: processMark("hook", t.Ref),
		}
	}
	run.equip(p, t)
	return run
}

// takesCheckpoints reports whether a run keeps files before it changes them.
func (e *Engine) takesCheckpoints(r Request) bool {
	return !e.resolver().Config.NoCheckpoints && !r.NoCheckpoints
}

// divert decides which task gets the input of a resume. A task that waits for a subtask with an open question passes the
// input on, as it passes on the question. A completed subtask whose parent does not have its result cannot continue: it
// completes again, which starts the parent.
func (e *Engine) divert(ctx context.Context, ref store.Ref, v *store.View, r Request) (words, error) {
	out := words{own: agent.Input{Text: r.Text, Images: r.Images, Yes: r.Yes, Queued: r.queued, Answer: r.answer, Question: r.question}}
	if !out.own.Given() {
		return out, nil
	}
	if r.NoApprovals && slices.ContainsFunc(v.State.Questions, func(q *task.Question) bool { return decides(q.Kind) }) {
		return out, fmt.Errorf("continue task %s: %w", ref.ID, ErrApproval)
	}
	if v.State.Awaited() != nil {
		asking, err := e.awaited(ctx, ref, asksUser)
		if err == nil && asking != nil && r.NoApprovals { // its question may be one
			err = fmt.Errorf("continue task %s: %w", ref.ID, ErrApproval)
		}
		if err != nil {
			return out, err
		}
		out.child.Yes = r.Yes
		switch {
		case asking == nil:
			out.own.Queued = r.input != ""
		case r.input == "":
			out.child, out.own = out.own, agent.Input{Yes: r.Yes}
		}
		return out, nil
	}
	if r.Yes && r.Text == "" && len(r.Images) == 0 && v.Summary.Status == "completed" {
		parent, err := e.waits(ctx, ref, v.State)
		out.own.Yes = out.own.Yes && parent == nil
		return out, err
	}
	return out, nil
}

// maxFamily bounds a walk along tasks that may name each other in a circle.
const maxFamily = 64

func asksUser(s *task.State) bool { return len(s.Questions) > 0 }

// awaited returns the subtask, at any depth, that a task waits for and that waits for no other one, if it is as is wants;
// nil when there is none.
func (e *Engine) awaited(ctx context.Context, ref store.Ref, is func(*task.State) bool) (*store.Ref, error) {
	at := ref
	for depth := range maxFamily {
		fits := false
		child, err := store.FromView(ctx, e.store, at, func(v *store.View) (*task.Child, error) {
			fits = is(v.State)
			return v.State.Awaited(), nil
		})
		if err != nil {
			return nil, err
		}
		if child == nil {
			if fits && depth > 0 {
				return &at, nil
			}
			return nil, nil
		}
		next, err := e.store.FindChild(ctx, at, child.ID)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return nil, nil
}

// waitingParent returns the parent that waits for a task, nil when none does.
func (e *Engine) waitingParent(ctx context.Context, ref store.Ref) (*store.Ref, error) {
	return store.FromView(ctx, e.store, ref, func(v *store.View) (*store.Ref, error) {
		return e.waits(ctx, ref, v.State)
	})
}

// waits is waitingParent for a task whose state the caller has read.
func (e *Engine) waits(ctx context.Context, ref store.Ref, s *task.State) (*store.Ref, error) {
	if s.Parent == "" {
		return nil, nil
	}
	parent, err := e.store.FindChild(ctx, ref, s.Parent)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	waits, err := store.FromView(ctx, e.store, parent, func(v *store.View) (bool, error) {
		child := v.State.Awaited()
		return child != nil && child.ID == s.ID, nil
	})
	if err != nil || !waits {
		return nil, err
	}
	return &parent, nil
}

// UntrustedError: this root did not write the journal of a task, and the journal holds something that a run would obey:
// settings, messages, answers, an unfinished run. The user must confirm first.
type UntrustedError struct {
	Task     string
	Standing store.Standing
	Brings   []string // what a run would obey, in words
}

func (e *UntrustedError) Error() string {
	why := map[store.Standing]string{
		store.Unsigned:  "an older Roost wrote its log, which is not signed",
		store.Elsewhere: "its log was written in another place: the root was copied, restored or moved, or belongs to another user",
		store.Altered:   "its log was changed outside of Roost, or its end is missing",
		store.Another:   "somebody else gave the orders in its log",
	}[e.Standing]
	text := fmt.Sprintf("task %s is not trusted here: %s", e.Task, why)
	if len(e.Brings) > 0 {
		text += "; it holds " + strings.Join(e.Brings, "; ")
	}
	return text
}

// mustAsk reports whether a person must confirm the task before a request may continue it. damaged: the task's journal is
// damaged, and the run asks about the damage before it does anything else.
func (e *UntrustedError) mustAsk(damaged bool, r Request) bool {
	return r.automatic || e.Standing != store.Unsigned && len(e.Brings) > 0 && !damaged && !r.OwnSettings && !r.TrustSettings
}

// Receive makes a task this root's own before it continues because its user asks for that. In a journal that is not
// trusted, it ends everything that is open and removes the settings that an unknown author must not decide. A journal
// that another root signed, or that was changed, and that holds something that a run would obey, is an
// *UntrustedError unless the request confirms it.
func (e *Engine) Receive(ctx context.Context, r Request) error {
	if r.Task == "" {
		return nil
	}
	ref, err := e.store.FindLatest(ctx, r.Task)
	if err != nil {
		return err
	}
	var untrusted *UntrustedError
	var trusted *task.Reception
	asked := false
	err = e.store.WithView(ctx, ref, func(v *store.View) error {
		untrusted, err = e.checkTrust(ctx, ref, v.State, r)
		// A damaged journal does not match its signatures either. The run asks the user about the damage before it does
		// anything else.
		asked = len(v.State.Problems) > 0
		if v.State.Received != nil && !v.State.Received.Kept {
			trusted = v.State.Received
		}
		return err
	})
	switch {
	case err == nil && untrusted == nil && trusted != nil && r.TrustSettings:
		return e.changeIdle(ctx, ref, func(t *store.Task) error {
			return t.Commit(ctx, task.Changed{Settings: new(t.State().Settings.Trusting(trusted.Had))})
		})
	case err != nil, untrusted == nil:
		return err
	case untrusted.mustAsk(asked, r):
		return untrusted
	}
	return e.changeIdle(ctx, ref, func(t *store.Task) error {
		if standing(t.Standing(), t.State(), r) == store.Ours {
			return nil // another process received it first
		}
		return t.Receive(ctx, string(untrusted.Standing), r.Person, r.TrustSettings)
	})
}

// standing returns the standing of a task for its caller. A run that no caller asked for continues for the person who
// ordered it.
func standing(of store.Standing, s *task.State, r Request) store.Standing {
	if r.automatic {
		return of
	}
	return of.OrderedBy(s, r.Person)
}

// untrusted is checkTrust for a task that is not open and that continues for the person who ordered what it holds.
func (e *Engine) untrusted(ctx context.Context, ref store.Ref) (*UntrustedError, error) {
	return store.FromView(ctx, e.store, ref, func(v *store.View) (*UntrustedError, error) {
		return e.checkTrust(ctx, ref, v.State, Request{automatic: true})
	})
}

// checkTrust returns why nothing in a task may be obeyed for a request; nil when this root wrote its journal, and the
// person who asks gave the orders in it.
func (e *Engine) checkTrust(ctx context.Context, ref store.Ref, s *task.State, r Request) (*UntrustedError, error) {
	origin, err := e.store.Standing(ctx, ref, s.Begins)
	origin = standing(origin, s, r)
	if err != nil || origin == store.Ours {
		return nil, err
	}
	return &UntrustedError{Task: ref.ID, Standing: origin, Brings: s.Brings()}, nil
}
