package checkpoints

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
)

// RestoreOptions select which files are put back, and how.
type RestoreOptions struct {
	To         string          // a checkpoint: c3, 3, the beginning of its commit, #12, 0; "" = before the newest change
	Paths      []string        // files or folders, relative to the workspace; none = all
	OnConflict checkpoint.Rule // keep, merge, overwrite; "" = keep
	Workspace  string          // absolute; "" = the task's
	DryRun     bool
	Planned    func(RestoreResult) error // called with the plan before anything changes; an error stops the restore. nil = not called
}

// RestoreItem is one file of a restore.
type RestoreItem struct {
	Path   string `json:"path"`
	Change string `json:"change"`          // added, changed, deleted
	How    string `json:"how,omitempty"`   // restore, merge, overwrite
	Why    string `json:"why,omitempty"`   // why a conflict stays as it is, or why a file is lost
	Doubt  bool   `json:"doubt,omitempty"` // of a conflict: it changed while a command of the task ran, and the command or another program changed it
	Size   int64  `json:"size,omitempty"`  // bytes that are written
}

// RestoreResult is what a restore does, or did.
type RestoreResult struct {
	ID        string        `json:"task_id"`
	Forked    string        `json:"from,omitempty"` // the task that it continues, when that one cannot be written
	DryRun    bool          `json:"dry_run"`
	To        Checkpoint    `json:"to"`
	Safety    int           `json:"safety"`         // the checkpoint of what is replaced; 0 = nothing was
	Files     []RestoreItem `json:"files"`          // that change
	Conflicts []RestoreItem `json:"conflicts"`      // that others changed since, and that stay as they are
	Lost      []RestoreItem `json:"lost"`           // whose content was not kept
	Left      []string      `json:"left"`           // that others changed while files were put back, and that stay as they are
	Bytes     int64         `json:"bytes"`          // that are written
	Outcome   string        `json:"outcome"`        // done, rolled_back, nothing; "" after a dry run
	Plan      string        `json:"plan,omitempty"` // of a dry run: a hash of what it would do
}

// Restore puts files back to what they were at a checkpoint. The histories stay as they are. It returns when the outcome
// is durable. The caller must call finish, which updates Roo's files of the task.
//
// Errors: *ReferenceError and ErrNone for a checkpoint that does not exist, *StoreMovedError, one that is
// checkpoint.ErrRefused, *journal.BusyError while the task runs, *setup.Error for a workspace that cannot be opened, or
// an error of store.Find. After *RolledBackError nothing has changed; after *HalfwayError the task is restoring.
func (svc *Service) Restore(ctx context.Context, given string, o RestoreOptions) (RestoreResult, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	ref, err := svc.store.Find(ctx, given)
	if err != nil {
		return RestoreResult{}, none, err
	}
	if o.DryRun {
		var out RestoreResult
		ref = svc.store.Latest(ref)
		err := svc.store.WithView(ctx, ref, func(v *store.View) error {
			p, err := svc.planRestore(ctx, ref, v.State, o, nil)
			out = p.result
			return errors.Join(err, p.close())
		})
		return out, none, err
	}
	if err := svc.requireCheckpoints(ctx, ref); err != nil {
		return RestoreResult{}, none, err
	}
	t, forked, err := svc.own(ctx, ref)
	if err != nil {
		return RestoreResult{}, none, err
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
