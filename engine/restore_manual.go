package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// SaveCheckpoint records what stands in the files of a task now: what others changed since
// the task last looked is then told apart from what it changes next. false: nothing is
// other than the newest checkpoint says, and none is made. finish must be called.
//
// Errors: ErrNoCheckpoints where the task has none yet, *journal.BusyError while it runs,
// and those of Restore.
func (e *Engine) SaveCheckpoint(ctx context.Context, given string) (Checkpoint, bool, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	ref, err := e.store.Find(ctx, given)
	if err != nil {
		return Checkpoint{}, false, none, err
	}
	if err := e.restorable(ctx, ref); err != nil {
		return Checkpoint{}, false, none, err
	}
	t, _, err := e.take(ctx, ref)
	if err != nil {
		return Checkpoint{}, false, none, err
	}
	c, saved, err := e.saveNow(ctx, t)
	if err != nil {
		return c, false, none, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	return c, saved, t.Close, nil
}

func (e *Engine) saveNow(ctx context.Context, t *store.Task) (_ Checkpoint, saved bool, err error) {
	s := t.State()
	if len(s.Checkpoints) == 0 {
		return Checkpoint{}, false, ErrNoCheckpoints
	}
	f, err := e.floor(t.Ref, s.Settings.Workspace)
	if err != nil {
		return Checkpoint{}, false, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	held, err := f.hold(ctx, checkpoint.Tracked(inStore(s, f.keeper.Name()), nil))
	if err != nil {
		return Checkpoint{}, false, fmt.Errorf("keep the files of task %s: %w", t.Ref.ID, err)
	}
	c, err := e.saved(ctx, f, s, task.ReasonManual, held, nil)
	if err != nil || len(c.Files) == 0 {
		return Checkpoint{}, false, err
	}
	if err := commitNow(ctx, t, c); err != nil {
		return Checkpoint{}, false, err
	}
	return numbered(t.State(), c.Number), true, nil
}

// DiffOptions say which states are compared.
type DiffOptions struct {
	From  string   // a checkpoint, as for a restore; "" = before the newest change
	To    string   // a checkpoint, or "now"; "" = now
	Paths []string // files or folders; none = all
	Patch bool     // with the difference by lines
}

// FileDiff is what differs in one file.
type FileDiff struct {
	Path    string           `json:"path"`
	Change  string           `json:"change"` // added, deleted, changed, mode
	From    task.FileVersion `json:"from"`
	To      task.FileVersion `json:"to"`
	Added   int              `json:"added"`         // lines
	Removed int              `json:"removed"`       // lines
	Why     string           `json:"why,omitempty"` // why it is not compared by lines
	Patch   string           `json:"patch,omitempty"`
}

// CheckpointDiff is what differs between two states of a task's files.
type CheckpointDiff struct {
	ID    string     `json:"task_id"`
	From  string     `json:"from"` // c3; c0 is before anything was changed
	To    string     `json:"to"`   // c3, or now
	Files []FileDiff `json:"items"`
}

// DiffCheckpoints compares two checkpoints, or one with what stands there now. It changes
// nothing.
func (e *Engine) DiffCheckpoints(ctx context.Context, given string, o DiffOptions) (CheckpointDiff, error) {
	out := CheckpointDiff{Files: []FileDiff{}}
	ref, err := e.store.FindLatest(ctx, given)
	if err != nil {
		return out, err
	}
	out.ID = ref.ID
	err = e.store.WithView(ctx, ref, func(v *store.View) error { return e.diff(ctx, v, o, &out) })
	return out, err
}

func (e *Engine) diff(ctx context.Context, v *store.View, o DiffOptions, out *CheckpointDiff) (err error) {
	s := v.State
	from, err := pick(s, o.From)
	if err != nil {
		return err
	}
	f, err := e.floor(v.Ref, e.rootOf(s, storeOf(s, from)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if want := storeOf(s, from); want != "" && want != f.keeper.Name() {
		return &StoreMovedError{Checkpoint: from, Store: want, Workspace: f.ws.Root()}
	}
	list := inStore(s, f.keeper.Name())
	options := checkpoint.DiffOptions{Stat: !o.Patch}
	for _, given := range o.Paths {
		path, err := f.recorded(given)
		if err != nil {
			return err
		}
		options.Paths = append(options.Paths, path)
	}
	out.From = fmt.Sprintf("c%d", from)
	var now map[string]task.FileVersion
	if o.To == "" || o.To == "now" {
		out.To, options.Now = "now", true
		now, err = f.keeper.Look(ctx, checkpoint.Tracked(list, options.Paths))
	} else {
		var to int
		if to, err = pick(s, o.To); err == nil {
			out.To, now = fmt.Sprintf("c%d", to), checkpoint.StateAt(list, to)
		}
	}
	if err != nil {
		return err
	}
	diffs, err := f.keeper.Diff(ctx, checkpoint.StateAt(list, from), now, options)
	for _, d := range diffs {
		out.Files = append(out.Files, FileDiff{
			Path: d.Path, Change: d.Change, From: d.Old, To: d.New, Added: d.Added, Removed: d.Removed, Why: d.Why, Patch: d.Patch,
		})
	}
	return err
}
