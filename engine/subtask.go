package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A subtask runs in the process of its parent's run, as a run of its own: both tasks then have an owner. When a user
// resumes a child alone and the child completes, the engine starts the parent that waits for it.

// family runs the subtasks of one run. It is an agent.Subtasks.
type family struct {
	run *Run    // the parent's
	req Request // the request of the parent's run: its choices hold for the children too
}

// State returns the state of a child.
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

// newborn reports whether the creation of a task was cut short, or never began.
func newborn(v *store.View) bool {
	return v.State.CreatedAt == 0 && v.State.NextMessage() == 1 && len(v.State.Queue) == 0
}

// result returns the result of a completed task: that of its newest run, or the newest row that shows a result when
// another program ran it.
func result(s *task.State) (string, error) {
	if s.Run != nil && s.Run.Outcome == "completed" && s.Run.Reason != "" {
		return s.Run.Reason, nil
	}
	for _, m := range slices.Backward(s.UI()) {
		if m.Kind() != "say:completion_result" {
			continue
		}
		raws, err := s.Raws([]*task.Message{m})
		if err != nil {
			return "", err
		}
		text, _ := esjson.GetString(raws[0], "text")
		return text, nil
	}
	return "", nil
}

// Run creates the child if it does not exist, and runs it until it ends or waits.
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
	if (in.Text != "" || len(in.Images) > 0) && child.Accepted(ctx) == nil {
		f.run.life.accept()
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
				child.Cancel() // an earlier Close left it to its parent
			}
			return agent.Outcome{}, context.Cause(ctx)
		}
		<-child.life.done
	}
	f.run.held.budget.Invalidate()
	return child.life.outcome, nil
}

// notRun returns the outcome of the parent's run when its child cannot run: only the user can remove the obstacle,
// the model cannot.
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

// prepare finds or creates the child and takes it.
func (f *family) prepare(ctx context.Context, sub agent.Subtask, in agent.Input) (*Run, error) {
	e := f.run.engine
	ref, err := e.store.FindChild(ctx, f.run.task.Ref, sub.ID)
	if err != nil && (!errors.Is(err, store.ErrNotFound) || sub.Known) {
		return nil, err
	}
	if err == nil {
		r := f.req
		r.Task, r.Mode, r.Text, r.Images, r.Yes = keyOf(ref), "", in.Text, in.Images, in.Yes
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

// create creates the child in one commit with its first message, so that no child ever lacks one.
func (f *family) create(ctx context.Context, sub agent.Subtask) (*Run, error) {
	e, s := f.run.engine, sub.Settings
	s.Mode = sub.Mode
	modeNotes := e.resolver().EnterSubtaskMode(&s)
	env, err := e.resolver().Open(s)
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
		CreatedAt: e.opt.Now(), Settings: s, Access: parent.Access, Person: parent.Person,
	}
	owned, made, err := e.store.CreateOnce(ctx, created, task.InputQueued{Input: "new_task", Text: sub.Message, Todos: sub.Todos})
	if err != nil {
		return nil, err
	}
	if standing := owned.Task.Standing(); standing != store.Ours { // its id can be foreseen
		if err := owned.Task.Receive(ctx, string(standing), parent.Person, false); err != nil {
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

// catchUp writes Roo's files of a completed subtask that has a journal of ours. Its process may have been killed after
// the end of its run and before it wrote these files. Nobody resumes a completed task, so without catchUp the files would
// never follow. A failure to own the subtask now does not concern the parent, which has the result in its journal.
func (e *Engine) catchUp(ctx context.Context, ref store.Ref) {
	if !e.store.HasJournal(ctx, ref) {
		return // a task of another program: its files are all that there is of it
	}
	if owned, err := e.store.Own(ctx, ref); err == nil {
		_ = owned.Task.Close(ctx)
	}
}
