package checkpoints

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// RewindFiles takes both histories back, and the files with them: to what they were before the first hidden message had
// any effect. Both move in one action: between the intent and the outcome the task is restoring. The histories go back
// also where no file changes. o.To is ignored.
//
// Errors are those of history.Rewind and of Restore.
func (svc *Service) RewindFiles(ctx context.Context, given string, r history.RewindOptions,
	o RestoreOptions) (api.RewindResult, api.RestoreResult, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	ref, err := svc.store.Find(ctx, given)
	if err != nil {
		return api.RewindResult{}, api.RestoreResult{}, none, err
	}
	if r.DryRun = r.DryRun || o.DryRun; r.DryRun {
		o.DryRun = true
		ref = svc.store.Latest(ref)
		var p plannedRestore
		var taken api.RewindResult
		err := svc.store.WithView(ctx, ref, func(v *store.View) (err error) {
			taken, p, err = svc.planRewind(ctx, ref, v.State, r, o)
			return errors.Join(err, p.close())
		})
		taken.DryRun = true
		return taken, p.result, none, err
	}
	if !ref.Own {
		dry := r
		dry.DryRun = true
		if _, _, err := history.Rewind(ctx, svc.store, ref, dry); err != nil {
			return api.RewindResult{}, api.RestoreResult{}, none, err // and the task was not taken over
		}
	}
	t, forked, err := svc.own(ctx, ref)
	if err != nil {
		return api.RewindResult{}, api.RestoreResult{}, none, err
	}
	taken, p, err := svc.planRewind(ctx, t.Ref, t.State(), r, o)
	taken.Forked, p.result.Forked = forked, forked
	if err == nil && o.Planned != nil {
		err = o.Planned(p.result)
	}
	if err == nil {
		err = svc.carryOut(ctx, t, &p)
	}
	if err = errors.Join(err, p.close()); err != nil {
		return taken, p.result, none, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	taken.Branch = store.BranchName(t.State().Seq)
	return taken, p.result, t.Close, nil
}

func (svc *Service) planRewind(ctx context.Context, ref store.Ref, s *task.State, r history.RewindOptions,
	o RestoreOptions) (api.RewindResult, plannedRestore, error) {
	taken, events, err := history.PlanRewind(s, r, svc.now())
	taken.ID = ref.ID
	if err != nil {
		return taken, plannedRestore{}, err
	}
	if len(s.Checkpoints) == 0 {
		// No change of a file by this task is recorded.
		return taken, plannedRestore{with: events, result: api.RestoreResult{
			ID: ref.ID, DryRun: o.DryRun, To: initialState(),
			Files: []api.RestoreItem{}, Conflicts: []api.RestoreItem{}, Lost: []api.RestoreItem{}, Left: []string{},
		}}, nil
	}
	to := targetOf(s, events)
	p, err := svc.planRestore(ctx, ref, s, o, &to)
	p.with = events
	return taken, p, err
}

// UndoFiles takes back what an action did to files, or does it again: they are restored once more. Files that others
// changed since stay as they are, and are in the result's Conflicts.
func (svc *Service) UndoFiles(ctx context.Context, t *store.Task, d task.Action, redo bool) (*api.RestoreResult, error) {
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
	f, err := svc.openFiles(t.Ref, svc.rootOf(s, contentStore(s, d.Safety)))
	if err != nil {
		return nil, err
	}
	p := plannedRestore{taskFiles: f, to: begun.To, undoes: begun.Undoes, redoes: begun.Redoes}
	p.result = api.RestoreResult{ID: t.Ref.ID, To: describeNumber(s, begun.To)}
	err = p.planUndo(ctx, begun.Files)
	if err == nil {
		p.with, err = decodeEvents(begun.Rewind, s.NextMessage())
	}
	if err == nil {
		err = svc.carryOut(ctx, t, &p)
	}
	return &p.result, errors.Join(err, f.close())
}

// planUndo plans to give each file its target, where it is still as the action left it.
func (p *plannedRestore) planUndo(ctx context.Context, files []task.RestoreFile) error {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	now, err := p.keeper.Look(ctx, paths)
	if err != nil {
		return fmt.Errorf("read the files of task %s: %w", p.ref.ID, err)
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
	p.fillResult()
	return nil
}
