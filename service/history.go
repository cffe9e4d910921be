package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// idle finds a task, and refuses one on which a run of this process works.
func (s *Service) idle(ctx context.Context, id string) (store.Ref, error) {
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return ref, err
	}
	if free, err := s.engine.WaitForRelease(ctx, Task{s, ref}.Name()); err != nil || !free {
		return ref, cmp.Or[error](err, problem(http.StatusConflict, "task_busy", "A run works on the task",
			"its histories and files cannot be changed until the run ends", "POST /v1/tasks/"+ref.ID+"/cancel").Later("").About(ref.ID))
	}
	return ref, nil
}

// begin finds a task to change, and returns the context of the change. With repeats it also returns the commits of an
// earlier attempt.
func (s *Service) begin(ctx context.Context, c Call, id string, repeats bool) (context.Context, store.Ref, []journal.Commit, error) {
	ref, err := s.idle(ctx, id)
	ctx = c.acting(ctx)
	if err != nil || !repeats {
		return ctx, ref, nil, err
	}
	done, err := s.before(ctx, c, ref, id)
	return ctx, ref, done, err
}

// finish writes Roo's files after a durable change; after one that failed there is nothing to write. It only logs a failure,
// because the change has not failed.
func (s *Service) finish(ctx context.Context, id string, finish func(context.Context) error) {
	if err := finish(context.WithoutCancel(ctx)); err != nil {
		s.opt.Log.Warn("Roo's files of the task could not be written yet", "task", id, "error", err.Error())
	}
}

// rewindOf checks the members of a rewind against each other.
func rewindOf(n api.NewRewind) (o history.RewindOptions, err error) {
	var w wrongs
	edit := strings.TrimSpace(n.Edit) != ""
	switch {
	case n.Edit != "" && !edit:
		w.add("/edit", "the new text is empty")
	case edit && n.To == "":
		w.add("/edit", "edit replaces a message: name that message in to")
	case edit && n.KeepTarget:
		w.add("/edit", "edit and keep_target exclude each other: edit replaces the message")
	}
	if n.Delete && (n.To == "" || edit || n.KeepTarget || n.Files) {
		w.add("/delete", "delete removes the message that to names; it cannot be combined with edit, keep_target or files")
	}
	if n.OnConflict != "" && !n.Files {
		w.add("/on_conflict", "on_conflict decides how files are restored: set files, too")
	}
	if n.Plan != "" && !n.Files {
		w.add("/plan", "plan names what a restore does to files: set files, too")
	}
	if err := conflictRule(n.OnConflict); err != nil {
		return o, err
	}
	return history.RewindOptions{To: cmp.Or(n.To, "~1"), Keep: n.KeepTarget, Edit: n.Edit, Remove: n.Delete, DryRun: n.DryRun}, w.err()
}

// Rewind takes both histories of a task back to a message, edits a message, or removes one; with Files it also restores
// the files of that moment.
func (s *Service) Rewind(ctx context.Context, c Call, id string, n api.NewRewind) (api.Rewound, error) {
	o, err := rewindOf(n)
	if err != nil {
		return api.Rewound{}, err
	}
	ctx, ref, done, err := s.begin(ctx, c, id, !o.DryRun)
	if err != nil {
		return api.Rewound{}, err
	}
	if r, was, err := history.FindRewind(ctx, s.store, ref, o, done); !o.DryRun && (err != nil || was) {
		files := restoredBy(ref.ID, done)
		if files == nil && n.Files {
			files = noRestore(ref.ID)
		}
		return api.Rewound{RewindResult: r, Restore: files}, err
	}
	if n.Files {
		return s.rewindFiles(ctx, id, n, o)
	}
	finished := ""
	if !o.DryRun { // finish an interrupted restore before the rewind
		if finished, err = s.engine.Checkpoints().Finish(ctx, id); err != nil {
			return api.Rewound{}, err
		}
	}
	r, finish, err := history.Rewind(ctx, s.store, ref, o)
	s.finish(ctx, id, finish)
	return api.Rewound{RewindResult: r, Finished: finished}, err
}

func (s *Service) rewindFiles(ctx context.Context, id string, n api.NewRewind, o history.RewindOptions) (api.Rewound, error) {
	r, files, finish, err := s.engine.Checkpoints().RewindFiles(ctx, id, o, checkpoints.RestoreOptions{
		NewRestore: api.NewRestore{OnConflict: n.OnConflict, DryRun: o.DryRun},
		Planned:    func(r api.RestoreResult) error { return agreed(n.Plan, r) },
	})
	s.finish(ctx, id, finish)
	if o.DryRun {
		files.Plan = planOf(files)
	}
	return api.Rewound{RewindResult: r, Restore: &files}, err
}

// Undo undoes the last action on a task.
func (s *Service) Undo(ctx context.Context, c Call, id string, n api.NewUndo) (api.Undone, error) {
	return s.undo(ctx, c, id, actions.Options{Only: n.Expect, DryRun: n.DryRun})
}

// Redo repeats the action that was undone last.
func (s *Service) Redo(ctx context.Context, c Call, id string, n api.NewUndo) (api.Undone, error) {
	return s.undo(ctx, c, id, actions.Options{Redo: true, Only: n.Expect, DryRun: n.DryRun})
}

func (s *Service) undo(ctx context.Context, c Call, id string, o actions.Options) (api.Undone, error) {
	ctx, _, done, err := s.begin(ctx, c, id, !o.DryRun)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // Undo also finds a deleted task, in the list of actions
		return api.Undone{}, err
	}
	if doc, was, err := s.undoneBy(ctx, id, o, done); err != nil || was {
		return doc, err
	}
	if err := s.mayUndo(ctx, id, &o); err != nil {
		return api.Undone{}, err
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

// Switch makes a branch the head of a task's histories. The previous head stays as a branch.
func (s *Service) Switch(ctx context.Context, c Call, id string, n api.NewHead) (api.Head, error) {
	if n.Branch == "" {
		return api.Head{}, api.Invalid(api.Wrong{Parameter: "/branch", Detail: "name a branch of the task"})
	}
	ctx, ref, _, err := s.begin(ctx, c, id, false)
	if err != nil {
		return api.Head{}, err
	}
	task, finish, err := history.Switch(ctx, s.store, ref, n.Branch)
	s.finish(ctx, id, finish)
	return api.Head{Task: task, Branch: n.Branch}, err
}

// Fork makes a new task with the history of another one.
func (s *Service) Fork(ctx context.Context, c Call, id string, n api.NewFork) (api.ForkResult, error) {
	var w wrongs
	if n.Workspace != "" {
		checkFolder(n.Workspace, &w)
	}
	given := api.Settings{Provider: n.Provider, Model: n.Model, BaseURL: n.BaseURL}
	settle(given, &engine.Request{}, &w)
	origin := originOf(n.Origin, &w)
	if err := w.err(); err != nil {
		return api.ForkResult{}, err
	}
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return api.ForkResult{}, err
	}
	if err := mayLoosen(ctx, given, false); err != nil {
		return api.ForkResult{}, err
	}
	ctx = c.acting(ctx)
	if !n.DryRun && c.Key != "" {
		f, err := history.FindFork(ctx, s.store, c.Key)
		if err == nil && (c.Again || f.From.ID == ref.ID) {
			return f, nil
		}
		if err == nil {
			c.Key = "" // it made another task, and the record of that is too old
		}
	}
	o := history.ForkOptions{
		ID:       c.Key,
		At:       n.At,
		Branch:   n.Branch,
		Title:    n.Title,
		Origin:   origin,
		DryRun:   n.DryRun,
		Settings: forkSettings(n),
		Person:   accounts.Person(ctx),
	}
	f, finish, err := s.engine.Fork(ctx, ref, o)
	s.finish(ctx, id, finish)
	return f, err
}

// forkSettings replaces settings of a task by those that its fork names.
func forkSettings(n api.NewFork) func(t *task.Settings) error {
	return func(t *task.Settings) error {
		if n.Provider != "" && n.Provider != t.Provider {
			// The new provider does not know the other one's model, address and key.
			t.Model, t.BaseURL, t.Account = "", "", ""
		}
		t.Workspace, t.Mode = cmp.Or(n.Workspace, t.Workspace), cmp.Or(n.Mode, t.Mode)
		t.Provider, t.Model = cmp.Or(n.Provider, t.Provider), cmp.Or(n.Model, t.Model)
		t.BaseURL = cmp.Or(n.BaseURL, t.BaseURL)
		return nil
	}
}

// Condense asks a model for a summary of a task's older history. The request may take minutes: it ends with until, which is
// also the context of the change.
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
	req = ordered(ctx, req)
	if err := cmp.Or(w.err(), mayLoosen(ctx, api.Settings{BaseURL: n.BaseURL}, false)); err != nil {
		return api.Condensed{}, err
	}
	ref, err := s.idle(ctx, id)
	if err != nil {
		return api.Condensed{}, err
	}
	if n.DryRun {
		return s.engine.CondensePlan(ctx, req)
	}
	until = store.Acting(until, c.Key)
	done, err := s.before(until, c, ref, id)
	if err != nil {
		return api.Condensed{}, err
	}
	if doc, was := condensedBy(ref.ID, done); was {
		return doc, nil
	}
	return s.engine.Condense(until, req, n.Keep, func(text string) {
		s.opt.Log.Debug("condense", "task_id", ref.ID, "notice", text)
	})
}

// Checkpoints returns the states of files that a task changed, the oldest first.
func (s *Service) Checkpoints(ctx context.Context, id string) (api.Checkpoints, error) {
	l, err := s.engine.Checkpoints().List(ctx, id)
	if l.Checkpoints == nil {
		l.Checkpoints = []api.Checkpoint{}
	}
	return l, err
}

// DiffQuery names the two sides of a difference.
type DiffQuery = checkpoints.DiffOptions

// Diff returns the difference between a checkpoint of a task and another one, or the files of now.
func (s *Service) Diff(ctx context.Context, id string, q DiffQuery) (api.Diff, error) {
	d, err := s.engine.Checkpoints().Diff(ctx, id, q)
	if d.Files == nil {
		d.Files = []api.FileDiff{}
	}
	return d, err
}

// SaveCheckpoint saves a checkpoint of the files as they are now, unless they equal those of the newest checkpoint. A
// repeated call therefore needs no key.
func (s *Service) SaveCheckpoint(ctx context.Context, c Call, id string) (api.SavedCheckpoint, error) {
	if _, err := s.idle(ctx, id); err != nil {
		return api.SavedCheckpoint{}, err
	}
	out, finish, err := s.engine.Checkpoints().Save(c.acting(ctx), id)
	s.finish(ctx, id, finish)
	return out, err
}

// Restore restores the files that a task changed, as they were at a checkpoint; "" = the one before the newest change.
func (s *Service) Restore(ctx context.Context, c Call, id, checkpoint string, n api.NewRestore) (api.RestoreResult, error) {
	if err := errors.Join(conflictRule(n.OnConflict), folder("/workspace", n.Workspace), shownOf(n)); err != nil {
		return api.RestoreResult{}, err
	}
	ctx, ref, done, err := s.begin(ctx, c, id, !n.DryRun)
	if err != nil {
		return api.RestoreResult{}, err
	}
	if r := restoredBy(ref.ID, done); r != nil {
		return *r, nil
	}
	r, finish, err := s.engine.Checkpoints().Restore(ctx, id, checkpoints.RestoreOptions{
		NewRestore: n,
		To:         checkpoint,
		Planned: func(r api.RestoreResult) error {
			if err := agreed(n.Plan, r); err != nil {
				return err
			}
			if n.OnConflict == "" && len(r.Files) == 0 && len(r.Conflicts) > 0 {
				return report.ConflictProblem(r) // the call names no rule for conflicts, and nothing else would change
			}
			return nil
		},
	})
	s.finish(ctx, id, finish)
	if r.DryRun {
		r.Plan = planOf(r)
	}
	return r, err
}

// shownOf checks the members of a document that restores a difference or one of its hunks.
func shownOf(n api.NewRestore) error {
	if n.Shown == nil {
		return nil
	}
	var w wrongs
	switch {
	case len(n.Paths) != 1:
		w.add("/paths", "shown names a difference of one file: give exactly one path")
	case n.Shown.Hash == "":
		w.add("/shown/hash", "give the hash of the difference or hunk, from the answer that showed it")
	case n.Shown.Hunk < 0:
		w.add("/shown/hunk", "want a hunk's number from 1, or 0 for the whole file")
	case n.Shown.Hunk > 0 && n.OnConflict == "overwrite":
		w.add("/on_conflict", "overwrite replaces a whole file, and a hunk is only some of its lines: use keep or merge")
	}
	return w.err()
}

// planOf returns a hash of what a restore would do. It covers sizes and versions, and not the patches that a dry run
// shows: a restore makes no patches.
func planOf(r api.RestoreResult) string {
	files := slices.Concat([]api.RestoreItem{}, r.Files)
	for i := range files {
		files[i].Patch, files[i].Why = "", ""
	}
	doc, _ := json.Marshal(struct { // strings and numbers: it cannot fail
		To                     int
		Files, Conflicts, Lost []api.RestoreItem
	}{r.To.Number, files, slices.Concat([]api.RestoreItem{}, r.Conflicts),
		slices.Concat([]api.RestoreItem{}, r.Lost)})
	return workspace.HashOf(doc)
}

// agreed refuses a restore that differs from the plan of a dry run. An empty plan accepts every restore.
func agreed(plan string, now api.RestoreResult) error {
	if plan == "" || plan == planOf(now) {
		return nil
	}
	return problem(http.StatusConflict, "changed_meanwhile", "The files changed since the dry run",
		"the restore would not do what the plan of the dry run says; nothing was changed",
		"repeat the request with dry_run, then send the new plan").Later("").About(now.ID)
}

// If a kill prevents the answer to a call, the journal still shows what the call did. The repeated call gets the same
// answer and changes nothing.

// before finishes an interrupted restore, and then returns the commits of an earlier attempt of a call.
func (s *Service) before(ctx context.Context, c Call, ref store.Ref, id string) ([]journal.Commit, error) {
	if !c.Again || c.Key == "" {
		return nil, nil
	}
	if _, err := s.engine.Checkpoints().Finish(ctx, id); err != nil {
		return nil, err
	}
	return s.store.CommitsBy(ctx, ref, c.Key, s.since())
}

// eventsOf returns the events of commits, in order.
func eventsOf(commits []journal.Commit) (out []task.Event) {
	for _, c := range commits {
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				out = append(out, e)
			}
		}
	}
	return out
}

// restoredBy returns the finished restore in commits; nil if there is none.
func restoredBy(id string, commits []journal.Commit) *api.RestoreResult {
	r := noRestore(id)
	for _, e := range eventsOf(commits) {
		switch e := e.(type) {
		case task.RestoreBegun:
			r.To.Number, r.Safety = e.To, e.Safety
			for _, f := range e.Files {
				act := checkpoint.Act(cmp.Or(f.How, task.HowRestore))
				item := checkpoint.Item{Path: f.Path, Now: f.From, Target: f.To, Act: act}.Result()
				r.Files, r.Bytes = append(r.Files, item), r.Bytes+item.Size
			}
			for _, path := range e.Kept {
				r.Conflicts = append(r.Conflicts, api.RestoreItem{Path: path})
			}
		case task.RestoreEnded:
			if r.Outcome = e.Outcome; e.Left != nil {
				r.Left = e.Left
			}
		}
	}
	if r.Outcome != task.RestoreDone {
		return nil // there was none, or it was rolled back
	}
	return r
}

// noRestore returns the result of a restore that changes nothing.
func noRestore(id string) *api.RestoreResult {
	return &api.RestoreResult{ID: id, Files: []api.RestoreItem{}, Conflicts: []api.RestoreItem{}, Lost: []api.RestoreItem{},
		Left: []string{}, Outcome: "nothing"}
}

// condensedBy returns the summary in commits.
func condensedBy(id string, commits []journal.Commit) (api.Condensed, bool) {
	for _, e := range eventsOf(commits) {
		if c, ok := e.(task.HistoryCondensed); ok {
			return api.Condensed{Task: id, Condense: c.Condense, Messages: c.Messages, Before: c.Before, After: c.After}, true
		}
	}
	return api.Condensed{}, false
}

// undoneBy returns the action that commits undid or redid.
func (s *Service) undoneBy(ctx context.Context, id string, o actions.Options, commits []journal.Commit) (api.Undone, bool, error) {
	var seq uint64 // stays 0 without commits
	for _, c := range commits {
		for _, raw := range c.Events {
			var e struct{ Undoes, Redoes uint64 }
			if json.Unmarshal(raw, &e) == nil {
				seq = max(seq, e.Undoes, e.Redoes)
			}
		}
	}
	if seq == 0 {
		return api.Undone{}, false, nil
	}
	now, err := actions.Find(ctx, s.store, id)
	if err != nil {
		return api.Undone{}, false, err
	}
	action := api.Action{ID: fmt.Sprintf("journal-%d", seq)}
	for _, d := range slices.Concat(now.Redo, now.Undo) {
		if d.ID == action.ID {
			action = d
		}
	}
	return report.UndoneOf(action, now, restoredBy(now.Task.ID, commits), o), true, nil
}
