package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Putting files back is an intent, an apply and an outcome. The intent is durable, with
// a checkpoint of what is replaced, before the first file is touched; from then on the
// task is restoring, and whoever takes it over to work on it finishes that first (see
// finishRestore). To apply is idempotent, file by file. An error in the middle puts back
// what was done.

// RestoreOptions say which files are put back, and how.
type RestoreOptions struct {
	To         string          // a checkpoint: c3, 3, the beginning of its commit, #12, 0; "" = before the newest change
	Paths      []string        // files or folders, relative to the workspace; none = all
	OnConflict checkpoint.Rule // keep, merge, overwrite; "" = keep
	Workspace  string          // absolute; "" = the task's
	DryRun     bool
	Planned    func(RestoreResult) error // told what will be done before anything is, and may refuse it; nil = nobody asks
}

// RestoreItem is one file of a restore.
type RestoreItem struct {
	Path   string `json:"path"`
	Change string `json:"change"`          // added, changed, deleted
	How    string `json:"how,omitempty"`   // restore, merge, overwrite
	Why    string `json:"why,omitempty"`   // a conflict stays as it is, or a file is lost
	Doubt  bool   `json:"doubt,omitempty"` // of a conflict: it changed while a command of the task ran, by it or by somebody else
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
	Conflicts []RestoreItem `json:"conflicts"`      // changed by others since, and kept as they are
	Lost      []RestoreItem `json:"lost"`           // whose content was not kept
	Left      []string      `json:"left"`           // changed by others while files were put back, and left alone
	Bytes     int64         `json:"bytes"`          // that are written
	Outcome   string        `json:"outcome"`        // done, rolled_back, nothing; "" after a dry run
	Plan      string        `json:"plan,omitempty"` // of a dry run: a hash of what it would do
}

// floor is what a restore of a task works on.
type floor struct {
	ref    store.Ref
	ws     *workspace.Workspace
	keeper *checkpoint.Keeper
}

func (f *floor) close() error { return f.keeper.Close() }

// floor opens a task's workspace and what is kept of it.
func (e *Engine) floor(ref store.Ref, root string) (*floor, error) {
	ws, err := e.resolver.OpenWorkspace(root)
	if err != nil {
		return nil, err
	}
	k, err := e.keeper(ws)
	if err != nil {
		return nil, err
	}
	return &floor{ref, ws, k}, nil
}

// rootOf is the folder whose contents are kept under a name: the task's own workspace, or
// the one that it had then.
func (e *Engine) rootOf(s *task.State, name string) string {
	own := s.Settings.Workspace
	if name == "" || checkpoint.NameOf(resolved(own)) == name {
		return own
	}
	if s.Run != nil && checkpoint.NameOf(resolved(s.Run.Settings.Workspace)) == name {
		return s.Run.Settings.Workspace
	}
	data, err := os.ReadFile(filepath.Join(e.checkpointsDir(), name, rootFile))
	if root := strings.TrimSpace(string(data)); err == nil && filepath.IsAbs(root) {
		return root
	}
	return own
}

// rootFile says in a store which folder its contents are of.
const rootFile = "workspace"

// noteRoot writes that down, once. Nothing but the way back to an earlier workspace
// depends on it.
func (e *Engine) noteRoot(name, root string) {
	path := filepath.Join(e.checkpointsDir(), name, rootFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		_ = os.WriteFile(path, []byte(root+"\n"), 0o600)
	}
}

func resolved(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}

// Restore puts files back to what they were at a checkpoint. The histories stay as they
// are. It returns when the outcome is durable; Roo's files of the task follow when finish is
// called, which must be.
//
// Errors: *CheckpointError and ErrNoCheckpoints for a checkpoint that is not there,
// *StoreMovedError, one that is checkpoint.ErrRefused, *journal.BusyError while the task
// runs, *setup.Error for a workspace that is not there, or what Find gives. With
// *RolledBackError nothing has changed; with *HalfwayError the task is restoring.
func (e *Engine) Restore(ctx context.Context, given string, o RestoreOptions) (RestoreResult, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	ref, err := e.store.Find(ctx, given)
	if err != nil {
		return RestoreResult{}, none, err
	}
	if o.DryRun {
		var out RestoreResult
		ref = e.store.Latest(ref)
		err := e.store.WithView(ctx, ref, func(v *store.View) error {
			p, err := e.planRestore(ctx, ref, v.State, o, nil)
			out = p.result
			return errors.Join(err, p.close())
		})
		return out, none, err
	}
	if err := e.restorable(ctx, ref); err != nil {
		return RestoreResult{}, none, err
	}
	t, forked, err := e.take(ctx, ref)
	if err != nil {
		return RestoreResult{}, none, err
	}
	p, err := e.planRestore(ctx, t.Ref, t.State(), o, nil)
	p.result.Forked = forked
	if err == nil && o.Planned != nil {
		err = o.Planned(p.result)
	}
	if err == nil {
		err = e.restore(ctx, t, &p)
	}
	if err = errors.Join(err, p.close()); err != nil {
		return p.result, none, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	return p.result, t.Close, nil
}

// restorable reports whether a task of another tool has checkpoints, which are ours: its
// folder is not taken over, and written to, for what cannot be done.
func (e *Engine) restorable(ctx context.Context, ref store.Ref) error {
	if ref.Own {
		return nil
	}
	if _, ok := e.store.Continued(ref); ok {
		return nil
	}
	return e.store.WithView(ctx, ref, func(v *store.View) error {
		if len(v.State.Checkpoints) == 0 {
			return ErrNoCheckpoints
		}
		return nil
	})
}

// take takes a task over, and finishes what a kill left of a restore.
func (e *Engine) take(ctx context.Context, ref store.Ref) (t *store.Task, forked string, err error) {
	owned, err := e.store.OwnLean(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	if _, err := e.finishRestore(ctx, owned.Task); err != nil {
		return nil, "", errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
	}
	return owned.Task, owned.Forked, nil
}

// RolledBackError: a restore failed, and everything is as it was before.
type RolledBackError struct{ Err error }

func (e *RolledBackError) Error() string {
	return fmt.Sprintf("%s; everything is as it was before", putBackText(e.Err))
}

func (e *RolledBackError) Unwrap() error { return e.Err }

// putBackText says once what was done when it failed: most errors say so themselves.
func putBackText(err error) string {
	return "put files back: " + strings.TrimPrefix(err.Error(), "put files back: ")
}

// HalfwayError: a restore failed, and so did taking it back. The task is restoring, and
// whoever works on it next finishes that first.
type HalfwayError struct {
	Task string
	Err  error
}

func (e *HalfwayError) Error() string {
	return fmt.Sprintf("%s; it is not finished, and the next command that works on the task goes on with it", putBackText(e.Err))
}

func (e *HalfwayError) Unwrap() error { return e.Err }
