package service

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// idle finds a task without a live run in this process.
func (s *Service) idle(ctx context.Context, id string) (store.Ref, error) {
	if err := s.writable(); err != nil {
		return store.Ref{}, err
	}
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return ref, err
	}
	here := s.store.Latest(ref)
	for _, run := range s.engine.Runs() {
		if run.TaskID == here.ID && here.Own || run.TaskID == ref.ID {
			p := problem(http.StatusConflict, "task_busy", "A run works on the task",
				"run "+run.ID+" works on it: no other change of its histories and files is possible until it ends",
				"POST /v1/tasks/"+ref.ID+"/cancel")
			p.Task, p.Retryable = ref.ID, true
			return ref, p
		}
	}
	return ref, nil
}

// finish writes Roo's files behind a durable change. If that fails, the change has not failed: the failure is logged.
func (s *Service) finish(ctx context.Context, id string, finish func(context.Context) error) {
	if finish == nil {
		return
	}
	if err := finish(context.WithoutCancel(ctx)); err != nil {
		s.opt.Log.Warn("the task's files are not written yet", "task", id, "error", err.Error())
	}
}

// rewindOf checks the members of a rewind against each other.
func rewindOf(n api.NewRewind) (o history.RewindOptions, err error) {
	var w wrongs
	edit := strings.TrimSpace(n.Edit) != ""
	switch {
	case n.Edit != "" && !edit:
		w.add("/edit", "there are no words in it")
	case edit && n.To == "":
		w.add("/edit", "name the message in to whose place the words take")
	case edit && n.KeepTarget:
		w.add("/edit", "words take a message's place, or it is kept")
	}
	if n.Delete && (n.To == "" || edit || n.KeepTarget || n.Files) {
		w.add("/delete", "it takes the message out that to names, and goes with no other change")
	}
	if n.OnConflict != "" && !n.Files {
		w.add("/on_conflict", "it decides how files are restored, and needs files")
	}
	if n.Plan != "" && !n.Files {
		w.add("/plan", "it names what happens to files, and goes with files")
	}
	if err := conflictRule(n.OnConflict); err != nil {
		return o, err
	}
	o = history.RewindOptions{To: n.To, Keep: n.KeepTarget, Edit: n.Edit, Remove: n.Delete, DryRun: n.DryRun}
	if o.To == "" {
		o.To = "~1"
	}
	return o, w.err()
}

// Rewind takes both histories of a task back to a message, edits a message, or removes one; with Files it also restores
// the files of that moment.
func (s *Service) Rewind(ctx context.Context, c Call, id string, n api.NewRewind) (api.Rewound, error) {
	o, err := rewindOf(n)
	if err != nil {
		return api.Rewound{}, err
	}
	ref, err := s.idle(ctx, id)
	if err != nil {
		return api.Rewound{}, err
	}
	ctx = c.acting(ctx)
	if !o.DryRun {
		done, err := s.before(ctx, c, ref, id)
		if err != nil {
			return api.Rewound{}, err
		}
		if r, was, err := history.FindRewind(ctx, s.store, ref, o, done); err != nil || was {
			files := restoredBy(ref.ID, done)
			if files == nil && n.Files {
				files = noRestore(ref.ID)
			}
			return api.Rewound{RewindResult: r, Restore: files}, err
		}
	}
	if n.Files {
		return s.rewindFiles(ctx, id, n, o)
	}
	finished := ""
	if !o.DryRun { // an interrupted restore is finished before anything else changes the task
		if finished, err = s.engine.Checkpoints().Finish(ctx, id); err != nil {
			return api.Rewound{}, err
		}
	}
	r, finish, err := history.Rewind(ctx, s.store, ref, o)
	if err != nil {
		return api.Rewound{}, err
	}
	s.finish(ctx, id, finish)
	return api.Rewound{RewindResult: r, Finished: finished}, nil
}

func (s *Service) rewindFiles(ctx context.Context, id string, n api.NewRewind, o history.RewindOptions) (api.Rewound, error) {
	r, files, finish, err := s.engine.Checkpoints().RewindFiles(ctx, id, o, checkpoints.RestoreOptions{
		OnConflict: n.OnConflict,
		DryRun:     o.DryRun,
		Planned:    func(r api.RestoreResult) error { return agreed(n.Plan, r) },
	})
	if err != nil {
		return api.Rewound{}, err
	}
	s.finish(ctx, id, finish)
	if o.DryRun {
		files.Plan = planOf(files)
	}
	return api.Rewound{RewindResult: r, Restore: &files}, nil
}

// Undo undoes what was last done to a task.
func (s *Service) Undo(ctx context.Context, c Call, id string, n api.NewUndo) (api.Undone, error) {
	return s.undo(ctx, c, id, actions.Options{Only: n.Expect, DryRun: n.DryRun})
}

// Redo does again what was undone last.
func (s *Service) Redo(ctx context.Context, c Call, id string, n api.NewUndo) (api.Undone, error) {
	return s.undo(ctx, c, id, actions.Options{Redo: true, Only: n.Expect, DryRun: n.DryRun})
}

func (s *Service) undo(ctx context.Context, c Call, id string, o actions.Options) (api.Undone, error) {
	ref, err := s.idle(ctx, id)
	if errors.Is(err, store.ErrNotFound) { // the list of actions knows a deleted task
		ref, err = store.Ref{}, nil
	}
	if err != nil {
		return api.Undone{}, err
	}
	ctx = c.acting(ctx)
	if ref.ID != "" && !o.DryRun {
		done, err := s.before(ctx, c, ref, id)
		if err != nil {
			return api.Undone{}, err
		}
		if doc, was, err := s.undoneBy(ctx, id, o, done); err != nil || was {
			return doc, err
		}
	}
	action, now, files, err := s.engine.Undo(ctx, id, o)
	if err != nil {
		return api.Undone{}, report.UndoProblem(err, o, now)
	}
	if files != nil && action.Kind == api.ActionRestore && files.Outcome == "nothing" && len(files.Conflicts) > 0 {
		return api.Undone{}, report.ConflictProblem(*files)
	}
	return report.UndoneOf(action, now, files, o), nil
}

// Branches are the branches of a task.
func (s *Service) Branches(ctx context.Context, id string) (api.BranchTree, error) {
	return read(ctx, s, id, func(v *store.View) (api.BranchTree, error) { return history.Branches(v), nil })
}

// Switch makes a branch the head of a task's histories. What was the head stays as a branch.
func (s *Service) Switch(ctx context.Context, c Call, id string, n api.NewHead) (api.Head, error) {
	if n.Branch == "" {
		return api.Head{}, api.Invalid(api.Wrong{Parameter: "/branch", Detail: "name a branch of the task"})
	}
	ref, err := s.idle(ctx, id)
	if err != nil {
		return api.Head{}, err
	}
	ctx = c.acting(ctx)
	task, finish, err := history.Switch(ctx, s.store, ref, n.Branch)
	if err != nil {
		return api.Head{}, err
	}
	s.finish(ctx, id, finish)
	return api.Head{Task: task, Branch: n.Branch}, nil
}

// Fork makes a new task with the history of another one.
func (s *Service) Fork(ctx context.Context, c Call, id string, n api.NewFork) (api.ForkResult, error) {
	if err := folder("/workspace", n.Workspace); err != nil {
		return api.ForkResult{}, err
	}
	if err := s.writable(); err != nil {
		return api.ForkResult{}, err
	}
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return api.ForkResult{}, err
	}
	if err := setup.CheckAddress(n.BaseURL); err != nil {
		return api.ForkResult{}, api.Invalid(api.Wrong{Parameter: "/base_url", Detail: err.Error()})
	}
	ctx = c.acting(ctx)
	if !n.DryRun && c.Again && c.Key != "" {
		if f, err := history.FindFork(ctx, s.store, c.Key); err == nil {
			return f, nil
		}
	}
	var w wrongs
	o := history.ForkOptions{
		ID:       c.Key,
		At:       n.At,
		Branch:   n.Branch,
		Title:    n.Title,
		Origin:   originOf(n.Origin, &w),
		DryRun:   n.DryRun,
		Settings: forkSettings(n),
	}
	if err := w.err(); err != nil {
		return api.ForkResult{}, err
	}
	f, finish, err := s.engine.Fork(ctx, ref, o)
	if err != nil {
		return api.ForkResult{}, err
	}
	s.finish(ctx, id, finish)
	return f, nil
}

// forkSettings puts the settings that a fork names in the place of those of its task.
func forkSettings(n api.NewFork) func(t *task.Settings) error {
	return func(t *task.Settings) error {
		if n.Provider != "" && n.Provider != t.Provider {
			// Another provider's model, address and key mean nothing here.
			t.Model, t.BaseURL, t.Account = "", "", ""
		}
		for to, given := range map[*string]string{
			&t.Workspace: n.Workspace, &t.Mode: n.Mode, &t.Provider: n.Provider, &t.Model: n.Model, &t.BaseURL: n.BaseURL,
		} {
			if given != "" {
				*to = given
			}
		}
		return nil
	}
}

// Condense has the older history of a task summarised by a model. The request to the model may take minutes: it ends
// with until, which is the context of the change, too.
func (s *Service) Condense(ctx, until context.Context, c Call, id string, n api.NewCondense) (api.Condensed, error) {
	if err := folder("/workspace", n.Workspace); err != nil {
		return api.Condensed{}, err
	}
	var w wrongs
	req := engine.Request{
		Task: id,
		Choice: setup.Choice{
			Workspace: n.Workspace,
			Provider:  n.Provider,
			Model:     n.Model,
			BaseURL:   n.BaseURL,
			Profile:   n.Profile,
		},
		Origin: originOf(n.Origin, &w),
	}
	if err := w.err(); err != nil {
		return api.Condensed{}, err
	}
	ref, err := s.idle(ctx, id)
	if err != nil {
		return api.Condensed{}, err
	}
	if n.DryRun {
		id, plan, err := s.engine.CondensePlan(ctx, req)
		return report.CondensedOf(id, plan, true), err
	}
	until = store.Acting(until, c.Key)
	done, err := s.before(until, c, ref, id)
	if err != nil {
		return api.Condensed{}, err
	}
	if doc, was := condensedBy(ref.ID, done); was {
		return doc, nil
	}
	id, made, err := s.engine.Condense(until, req, n.Keep, func(text string) {
		s.opt.Log.Debug("condense", "task_id", ref.ID, "notice", text)
	})
	return report.CondensedOf(id, made, false), err
}
