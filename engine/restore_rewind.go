package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/store/actions"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// RewindFiles takes both histories back, and the files with them: to what they were
// before the first message that goes did anything. They move in one deed: between the
// intent and the outcome the task is restoring. The histories go back also where no file
// changes. o.To is not looked at.
//
// Errors are those of history.Rewind and of Restore.
func (e *Engine) RewindFiles(ctx context.Context, given string, r history.RewindOptions, o RestoreOptions) (history.RewindResult, RestoreResult, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	ref, err := e.store.Find(ctx, given)
	if err != nil {
		return history.RewindResult{}, RestoreResult{}, none, err
	}
	if r.DryRun = r.DryRun || o.DryRun; r.DryRun {
		o.DryRun = true
		ref = e.store.Latest(ref)
		var p restoring
		var taken history.RewindResult
		err := e.store.WithView(ctx, ref, func(v *store.View) (err error) {
			taken, p, err = e.planRewind(ctx, ref, v.State, r, o)
			return errors.Join(err, p.close())
		})
		taken.DryRun = true
		return taken, p.result, none, err
	}
	if !ref.Own {
		dry := r
		dry.DryRun = true
		if _, _, err := history.Rewind(ctx, e.store, ref, dry); err != nil {
			return history.RewindResult{}, RestoreResult{}, none, err // and nothing was taken over
		}
	}
	t, forked, err := e.take(ctx, ref)
	if err != nil {
		return history.RewindResult{}, RestoreResult{}, none, err
	}
	taken, p, err := e.planRewind(ctx, t.Ref, t.State(), r, o)
	taken.Forked, p.result.Forked = forked, forked
	if err == nil && o.Planned != nil {
		err = o.Planned(p.result)
	}
	if err == nil {
		err = e.restore(ctx, t, &p)
	}
	if err = errors.Join(err, p.close()); err != nil {
		return taken, p.result, none, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	taken.Branch = store.BranchName(t.State().Seq)
	return taken, p.result, t.Close, nil
}

func (e *Engine) planRewind(ctx context.Context, ref store.Ref, s *task.State, r history.RewindOptions, o RestoreOptions) (history.RewindResult, restoring, error) {
	taken, events, err := history.PlanRewind(s, r, e.opt.Now())
	taken.ID = ref.ID
	if err != nil {
		return taken, restoring{}, err
	}
	if len(s.Checkpoints) == 0 {
		// Nothing of the task ever changed a file, as far as anybody knows.
		return taken, restoring{with: events, result: RestoreResult{
			ID: ref.ID, DryRun: o.DryRun, To: origin(),
			Files: []RestoreItem{}, Conflicts: []RestoreItem{}, Lost: []RestoreItem{}, Left: []string{},
		}}, nil
	}
	to := momentOf(s, events)
	p, err := e.planRestore(ctx, ref, s, o, &to)
	p.with = events
	return taken, p, err
}

// ChangedSinceError: the task changed a file again after the restore that is to be taken
// back. The checkpoint of what the restore replaced can be restored instead.
type ChangedSinceError struct {
	Task       string
	Path       string
	Checkpoint int // at which it changed
	Safety     int // what the restore replaced
	Redo       bool
}

func (e *ChangedSinceError) Error() string {
	return fmt.Sprintf("the task changed %s since (c%d); what the restore replaced is kept as c%d", e.Path, e.Checkpoint, e.Safety)
}

// Undo is store.Undo for deeds that put files back, too: the files go back as they came,
// as one more restore. Files that others changed since are left alone, and are in the
// result's Conflicts. The result is nil where no file moved.
//
// Errors are those of store.Undo and Restore, and *ChangedSinceError.
func (e *Engine) Undo(ctx context.Context, given string, o actions.Options) (actions.Action, actions.TaskActions, *RestoreResult, error) {
	var out *RestoreResult
	o.Files = func(ctx context.Context, t *store.Task, d task.Deed) error {
		r, err := e.undoFiles(ctx, t, d, o.Redo)
		out = r
		return err
	}
	o.Ready = func(ctx context.Context, t *store.Task) error {
		_, err := e.finishRestore(ctx, t)
		return err
	}
	if !o.DryRun {
		// A restore that a kill cut short is the newest deed once it is finished.
		if ref, err := e.store.FindLatest(ctx, given); err == nil {
			if _, err := e.finish(ctx, ref); err != nil {
				return actions.Action{}, actions.TaskActions{}, nil, err
			}
		}
	}
	deed, deeds, err := actions.Undo(ctx, e.store, given, o)
	return deed, deeds, out, err
}

func (e *Engine) undoFiles(ctx context.Context, t *store.Task, d task.Deed, redo bool) (*RestoreResult, error) {
	s := t.State()
	if n, path := s.ChangedSince(d); n != 0 {
		return nil, &ChangedSinceError{Task: t.Ref.ID, Path: path, Checkpoint: n, Safety: d.Safety, Redo: redo}
	}
	event := d.Back()
	if redo {
		event = d.Again()
	}
	begun, is := event.(task.RestoreBegun)
	if !is {
		return nil, fmt.Errorf("the %s put no files back", d.Kind)
	}
	f, err := e.floor(t.Ref, e.rootOf(s, storeOf(s, d.Safety)))
	if err != nil {
		return nil, err
	}
	p := restoring{floor: f, to: begun.To, undoes: begun.Undoes, redoes: begun.Redoes}
	p.result = RestoreResult{ID: t.Ref.ID, To: numbered(s, begun.To)}
	err = p.back(ctx, begun.Files)
	if err == nil {
		p.with, err = unlines(begun.Rewind, s.NextMessage())
	}
	if err == nil {
		err = e.restore(ctx, t, &p)
	}
	return &p.result, errors.Join(err, f.close())
}

// back plans to make each file what it is to become, where it is what it was left as.
func (p *restoring) back(ctx context.Context, files []task.RestoreFile) error {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	now, err := p.keeper.Look(ctx, paths)
	if err != nil {
		return fmt.Errorf("look at the files of task %s: %w", p.ref.ID, err)
	}
	plan := checkpoint.Plan{To: p.to, Rule: checkpoint.Keep}
	for _, f := range files {
		i := checkpoint.Item{Path: f.Path, Now: now[f.Path], Target: f.To, Act: checkpoint.ActRestore}
		switch {
		case i.Now.Same(f.To):
			continue
		case !i.Now.Same(f.From):
			i.Act, i.Conflict, i.Why = checkpoint.ActKeep, true, "it was changed by others since"
		}
		plan.Items = append(plan.Items, i)
	}
	if p.plan, err = p.keeper.Resolve(ctx, plan, false); err != nil {
		return fmt.Errorf("plan to put back the files of task %s: %w", p.ref.ID, err)
	}
	p.tell()
	return nil
}
