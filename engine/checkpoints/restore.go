package checkpoints

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
)

// RestoreOptions select which files are put back, and how.
type RestoreOptions struct {
	To         string   // a checkpoint: c3, 3, the beginning of its commit, #12, 0; "" = before the newest change
	Paths      []string // files or folders, relative to the workspace; none = all
	OnConflict string   // keep, merge, overwrite; "" = keep
	Workspace  string   // absolute; "" = the task's
	DryRun     bool
	Planned    func(api.RestoreResult) error // called with the plan before anything changes; an error stops the restore. nil = not called
}

// Restore puts files back to what they were at a checkpoint. The histories stay as they are. It returns when the outcome
// is durable. The caller must call finish, which updates Roo's files of the task.
//
// Errors: *ReferenceError and ErrNone for a checkpoint that does not exist, *StoreMovedError, one that is
// checkpoint.ErrRefused, *journal.BusyError while the task runs, *setup.Error for a workspace that cannot be opened, or
// an error of store.Find. After *RolledBackError nothing has changed; after *HalfwayError the task is restoring.
func (svc *Service) Restore(ctx context.Context, given string, o RestoreOptions) (api.RestoreResult, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	ref, err := svc.store.Find(ctx, given)
	if err != nil {
		return api.RestoreResult{}, none, err
	}
	if o.DryRun {
		var out api.RestoreResult
		ref = svc.store.Latest(ref)
		err := svc.store.WithView(ctx, ref, func(v *store.View) error {
			p, err := svc.planRestore(ctx, ref, v.State, o, nil)
			out = p.result
			return errors.Join(err, p.close())
		})
		return out, none, err
	}
	if err := svc.requireCheckpoints(ctx, ref); err != nil {
		return api.RestoreResult{}, none, err
	}
	t, forked, err := svc.own(ctx, ref)
	if err != nil {
		return api.RestoreResult{}, none, err
	}
	p, err := svc.planRestore(ctx, t.Ref, t.State(), o, nil)
	p.result.Forked = forked
	if err == nil && o.Planned != nil {
		err = o.Planned(p.result)
	}
	if err == nil {
		err = svc.carryOut(ctx, t, &p)
	}
	if err = errors.Join(err, p.close()); err != nil {
		return p.result, none, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	return p.result, t.Close, nil
}

// requireCheckpoints is ErrNone for a task of another tool without checkpoints, which are always ours: an operation that
// cannot succeed must not take over the task's folder.
func (svc *Service) requireCheckpoints(ctx context.Context, ref store.Ref) error {
	if ref.Own {
		return nil
	}
	if _, ok := svc.store.Continued(ref); ok {
		return nil
	}
	return svc.store.WithView(ctx, ref, func(v *store.View) error {
		if len(v.State.Checkpoints) == 0 {
			return ErrNone
		}
		return nil
	})
}
