package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A subtask runs in the process of its parent's run, as a run of its own: both tasks
// have an owner then. The parent's stream has its events too, so a subscriber of the first task of a tree follows all
// of it. When a user resumes a child alone and it completes, the engine starts the parent that waits for it.

// errAlone stops a run and leaves the subtask that it waits for.
var errAlone = errors.New("cancelled by the user, without its subtask")

// family is what an agent's subtasks are run by.
type family struct {
	run *Run
	req Request // how the parent's run was asked for: what was given now holds for children too
}

// words is what became of the words that came with a resume: the parent's own, or those
// for the subtask whose question they answer.
type words struct {
	own   agent.Input
	child agent.Input // for the child that the task waits for when the run begins
}

// State is the state of a child.
func (f *family) State(ctx context.Context, id string) (agent.SubtaskState, error) {
	e := f.run.engine
	var out agent.SubtaskState
	ref, err := e.store.FindChild(ctx, f.run.task.Ref, id)
	var trashed *store.TrashedError
	switch {
	case errors.As(err, &trashed):
		out.Gone = true
		return out, nil
	case errors.Is(err, store.ErrNotFound):
		return out, nil
	case err != nil:
		return out, err
	}
	err = e.store.WithView(ctx, ref, func(v *store.View) error {
		if newborn(v) {
			return nil
		}
		out.Status = v.Summary.Status
		if out.Status == "completed" {
			out.Result, err = result(v.State)
		}
		return err
	})
	if out.Status == "completed" {
		e.catchUp(ctx, ref)
	}
	return out, err
}

// newborn: the task's making was cut short, or never began.
func newborn(v *store.View) bool {
	return v.State.CreatedAt == 0 && v.State.NextMessage() == 1 && len(v.State.Queue) == 0
}

// result is the result of a completed task: that of its newest run, or the newest row that shows a result when another
// program ran it.
func result(s *task.State) (string, error) {
	if s.Run != nil && s.Run.Outcome == "completed" && s.Run.Reason != "" {
		return s.Run.Reason, nil
	}
	ui := s.UI()
	for i := len(ui) - 1; i >= 0; i-- {
		if ui[i].Kind() != "say:completion_result" {
			continue
		}
		raws, err := s.Raws(ui[i : i+1])
		if err != nil {
			return "", err
		}
		text, _ := esjson.GetString(raws[0], "text")
		return text, nil
	}
	return "", nil
}

// Run makes the child if it is not there, and runs it until it ends or waits.
func (f *family) Run(ctx context.Context, sub agent.Subtask) (agent.Outcome, error) {
	e := f.run.engine
	in := f.run.words.child
	f.run.words.child = agent.Input{}
	child, err := f.prepare(ctx, sub, in)
	if err != nil {
		return notRun(err)
	}
	child.parent.Store(f.run)
	f.run.adopt(child)
	defer f.run.adopt(nil)
	if err := e.launch(child); err != nil {
		return agent.Outcome{}, err
	}
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), errAlone) {
			child.life.cancel(agent.ErrParentStopped)
		}
	})
	defer stop()
	select {
	case <-child.life.done:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errAlone) {
			child.parent.Store(nil)
			if e.admits() == ErrClosed { //nolint:errorlint // it is never wrapped
				child.Cancel() // a Close that came first took it for one that its parent stops
			}
			return agent.Outcome{}, context.Cause(ctx)
		}
		<-child.life.done
	}
	f.run.held.budget.Invalidate()
	return child.life.outcome, nil
}

// notRun gives the outcome of the parent's run when its child cannot run: the user has to remove the obstacle, the model
// cannot.
func notRun(err error) (agent.Outcome, error) {
	var config *setup.Error
	var busy *journal.BusyError
	switch {
	case errors.As(err, &config):
		why := config.Error()
		if config.Try != "" {
			why += " (" + config.Try + ")"
		}
		return agent.Outcome{State: "failed", Code: "configuration", Reason: why, Err: err}, nil
	case errors.As(err, &busy):
		return agent.Outcome{State: "failed", Code: "busy", Reason: err.Error() +
			"; when it completes there, this task is woken", Err: err}, nil
	}
	return agent.Outcome{}, err
}

// prepare finds or makes the child and takes it.
func (f *family) prepare(ctx context.Context, sub agent.Subtask, in agent.Input) (*Run, error) {
	e := f.run.engine
	ref, err := e.store.FindChild(ctx, f.run.task.Ref, sub.ID)
	if err != nil && (!errors.Is(err, store.ErrNotFound) || sub.Known) {
		return nil, err
	}
	if err == nil {
		r := f.req
		r.Task, r.Mode, r.Text, r.Images, r.Yes = ref.Source+":"+ref.ID, "", in.Text, in.Images, in.Yes
		born := true
		err := e.store.WithView(ctx, ref, func(v *store.View) error {
			born = !newborn(v)
			if has := v.State.Run; has.Rests() {
				r.RunID = has.ID
			}
			if r.Profile != "" {
				r.Mode = v.State.Settings.Mode // its own, not the profile's
			}
			if has := v.State.Settings; has.Provider == "" && r.Provider == "" && r.Profile == "" {
				// Another program made it: it continues with its parent's model.
				r.Provider, r.Model, r.BaseURL = sub.Settings.Provider, sub.Settings.Model, sub.Settings.BaseURL
				if r.Approve == "" && has.Approve == "" {
					r.Approve = sub.Settings.Approve
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if born {
			return e.prepare(ctx, r)
		}
	}
	return f.create(ctx, sub)
}

// create makes the child in one commit with its first words, so that there never is one
// that does not know what to do.
func (f *family) create(ctx context.Context, sub agent.Subtask) (*Run, error) {
	e, s := f.run.engine, sub.Settings
	s.Mode = sub.Mode
	modeNotes := e.resolver.EnterSubtaskMode(&s)
	env, err := e.resolver.Open(s)
	if err != nil {
		return nil, err
	}
	env.Notes = nil // the parent's run has shown them
	if err := env.CheckMode(&s, false); err != nil {
		return nil, err
	}
	parent := f.run.task.State()
	root := cmp.Or(parent.RootTask, parent.ID)
	created := task.Created{
		Task: sub.ID, Origin: parent.Origin, Number: parent.Number + 1, Parent: parent.ID, RootTask: root,
		CreatedAt: e.opt.Now(), Settings: s,
	}
	owned, made, err := e.store.CreateOnce(ctx, created, task.InputQueued{Input: "new_task", Text: sub.Message, Todos: sub.Todos})
	if err != nil {
		return nil, err
	}
	if standing := owned.Task.Standing(); standing != store.Ours { // its id can be foreseen
		if err := owned.Task.Receive(ctx, string(standing), false); err != nil {
			return nil, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
		}
	}
	failpoint.Hit("subtask.created")
	r := f.req
	r.Task, r.Text, r.Images, r.Yes, r.Mode = "", "", nil, false, ""
	run := e.newRun(owned.Task, s, env, r)
	run.found = modeNotes
	if !made {
		run.found = describeOwned(owned, false)
	}
	return run, nil
}

// adopt notes the subtask that a run waits for.
func (r *Run) adopt(child *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.child = child
}

// Subtask is the run of the subtask that the task waits for; nil when it waits for none that is at work here.
func (r *Run) Subtask() *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child
}

// Of is the run of a task among a run and the subtasks that it waits for; nil when that
// task does not run there. Events of all of them come in the first one's stream, and a
// question is answered where it was asked.
func (r *Run) Of(taskID string) *Run {
	for ; r != nil; r = r.Subtask() {
		if r.TaskID == taskID {
			return r
		}
	}
	return nil
}

// CancelAlone stops the run and lets the subtask that it waits for run to its end. The
// task gets the result when it is resumed.
func (r *Run) CancelAlone() { r.life.cancel(errAlone) }

// divert decides which task gets the input of a resume. A task that waits for a subtask with an open question passes the
// input on, as it passes on the question. A completed subtask whose parent does not have its result cannot continue: it
// completes again, which starts the parent.
func (e *Engine) divert(ctx context.Context, ref store.Ref, v *store.View, r Request) (words, error) {
	out := words{own: agent.Input{Text: r.Text, Images: r.Images, Yes: r.Yes, Answer: r.answer, Question: r.question}}
	if !out.own.Given() {
		return out, nil
	}
	if v.State.Awaited() != nil {
		asking, err := e.askingSubtask(ctx, ref)
		if err != nil {
			return out, err
		}
		out.child.Yes = r.Yes
		if asking != nil {
			out.child, out.own = out.own, agent.Input{Yes: r.Yes}
		}
		return out, nil
	}
	if r.Yes && r.Text == "" && len(r.Images) == 0 && v.Summary.Status == "completed" {
		parent, err := e.waits(ctx, ref, v.State)
		if err != nil {
			return out, err
		}
		if parent != nil {
			out.own.Yes = false
		}
	}
	return out, nil
}

// maxFamily bounds a walk along tasks that may name each other in a circle.
const maxFamily = 64

// waits is the parent that waits for a task, nil when none does.
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
	waits := false
	err = e.store.WithView(ctx, parent, func(v *store.View) error {
		child := v.State.Awaited()
		waits = child != nil && child.ID == s.ID
		return nil
	})
	if err != nil || !waits {
		return nil, err
	}
	return &parent, nil
}

// wake starts the parent that waits for a task that a user resumed alone and that completed. A failure loses nothing:
// the parent finds the result when it is resumed.
func (e *Engine) wake(done *Run) {
	if done.life.outcome.State != "completed" || done.life.outcome.Err != nil {
		return
	}
	failpoint.Hit("subtask.waking")
	ctx := context.WithoutCancel(done.life.ctx)
	var parent *store.Ref
	run := ""
	err := e.store.WithView(ctx, done.task.Ref, func(v *store.View) (err error) {
		parent, err = e.waits(ctx, done.task.Ref, v.State)
		return err
	})
	if err == nil && parent != nil {
		err = e.store.WithView(ctx, *parent, func(v *store.View) error {
			if v.State.Run.Rests() {
				run = v.State.Run.ID
			}
			if r := v.State.Run; r != nil && r.Code == task.CodeReceived {
				parent = nil // it came from elsewhere, and no user continued it here
			}
			return nil
		})
	}
	if err != nil || parent == nil {
		return
	}
	r := Request{
		Task:        parent.Source + ":" + parent.ID,
		RunID:       run,
		Interactive: done.req.Interactive,
		Hold:        done.req.Hold,
		Origin:      done.req.Origin,
		Choice:      setup.Choice{MaxDayMicros: done.req.MaxDayMicros, StandIn: done.req.StandIn},
		automatic:   true,
	}
	next, err := e.Start(ctx, r)
	if err != nil {
		done.after.nextErr = fmt.Errorf("the subtask is completed, but task %s, which waits for it, could not go on: %w", parent.ID, err)
		return
	}
	done.after.next = next
}

// again continues a task whose run completed while input arrived that the run could not use any more: the input was
// acknowledged.
func (e *Engine) again(done *Run) bool {
	fromDoor := func(q task.InputQueued) bool { return q.By != "" }
	if done.life.outcome.State != "completed" || done.life.outcome.Err != nil || !slices.ContainsFunc(done.task.State().Queue, fromDoor) {
		return false
	}
	r := done.req
	r.Task, r.Text, r.Images, r.Yes, r.RunID, r.NewTask = done.task.Ref.Source+":"+done.task.Ref.ID, "", nil, false, "", ""
	next, err := e.Start(context.WithoutCancel(done.life.ctx), r)
	if err != nil {
		done.after.nextErr = fmt.Errorf("words came when the run had ended, and wait in the queue of task %s: %w", done.TaskID, err)
	}
	done.after.next = next
	return true
}

// Next is the run that this run's end has started: of the parent that waited for its task,
// or of the same task, for words that came at the last moment; nil when there is none.
// It returns once that is known. The error is why there is none although there should be.
func (r *Run) Next(ctx context.Context) (*Run, error) {
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	return r.after.next, r.after.nextErr
}

// launch starts a prepared run, unless the engine is closed.
func (e *Engine) launch(run *Run) error {
	if !e.register(run) {
		return errors.Join(ErrClosed, run.abandon())
	}
	go func() {
		defer e.wait.Done()
		alone := run.parent.Load() == nil
		run.work(run.words.own)
		e.mu.Lock()
		delete(e.runs, run.ID)
		e.ending[run.ID] = run
		e.mu.Unlock()
		e.scheduler.Dispatch()
		if alone && !e.again(run) {
			e.wake(run)
		}
		e.mu.Lock()
		if e.ending[run.ID] == run {
			delete(e.ending, run.ID)
		}
		e.mu.Unlock()
		close(run.after.settled) // who waited for that finds what follows it, and not it
	}()
	return nil
}

// catchUp writes Roo's files of a completed subtask that has a journal of ours. Its
// process may have been killed between the end of its run and these files, and a
// completed task is not resumed: without this the files would stay behind for ever. A failure to own it now does not
// concern the parent, which has the result in its journal.
func (e *Engine) catchUp(ctx context.Context, ref store.Ref) {
	if _, err := os.Stat(filepath.Join(ref.Log, "journal.jsonl")); err != nil {
		return // another program's: its files are the task
	}
	if owned, err := e.store.Own(ctx, ref); err == nil {
		_ = owned.Task.Close(ctx)
	}
}
