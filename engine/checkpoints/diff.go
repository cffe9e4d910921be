package checkpoints

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Save makes a checkpoint of the present contents of a task's files. What others changed since the task's last checkpoint
// is then distinct from what the task changes next. The second result is false, and there is no new checkpoint, when no
// file differs from the newest one. The caller must call finish, which updates Roo's files of the task.
//
// Errors: ErrNone where the task has no checkpoint yet, *journal.BusyError while it runs, and those of Restore.
func (svc *Service) Save(ctx context.Context, given string) (api.Checkpoint, bool, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	ref, err := svc.store.Find(ctx, given)
	if err != nil {
		return api.Checkpoint{}, false, none, err
	}
	if err := svc.requireCheckpoints(ctx, ref); err != nil {
		return api.Checkpoint{}, false, none, err
	}
	t, _, err := svc.own(ctx, ref)
	if err != nil {
		return api.Checkpoint{}, false, none, err
	}
	c, saved, err := svc.saveNow(ctx, t)
	if err != nil {
		return c, false, none, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	return c, saved, t.Close, nil
}

func (svc *Service) saveNow(ctx context.Context, t *store.Task) (_ api.Checkpoint, saved bool, err error) {
	s := t.State()
	if len(s.Checkpoints) == 0 {
		return api.Checkpoint{}, false, ErrNone
	}
	f, err := svc.openFiles(t.Ref, s.Settings.Workspace)
	if err != nil {
		return api.Checkpoint{}, false, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	held, err := f.holdContents(ctx, checkpoint.Tracked(checkpointsIn(s, f.keeper.Name()), nil))
	if err != nil {
		return api.Checkpoint{}, false, fmt.Errorf("keep the files of task %s: %w", t.Ref.ID, err)
	}
	c, err := svc.saveCheckpoint(ctx, f, s, task.ReasonManual, held, nil)
	if err != nil || len(c.Files) == 0 {
		return api.Checkpoint{}, false, err
	}
	if err := commitDurably(ctx, t, c); err != nil {
		return api.Checkpoint{}, false, err
	}
	return describeNumber(t.State(), c.Number), true, nil
}

// DiffOptions select the states to compare.
type DiffOptions struct {
	From  string   // a checkpoint, as for a restore; "" = before the newest change
	To    string   // a checkpoint, or "now"; "" = now
	Paths []string // files or folders; none = all
	Patch bool     // with the difference by lines
}

// Diff compares two checkpoints, or one with the present files. It changes nothing.
func (svc *Service) Diff(ctx context.Context, given string, o DiffOptions) (api.Diff, error) {
	out := api.Diff{Files: []api.FileDiff{}}
	ref, err := svc.store.FindLatest(ctx, given)
	if err != nil {
		return out, err
	}
	out.ID = ref.ID
	err = svc.store.WithView(ctx, ref, func(v *store.View) error { return svc.diff(ctx, v, o, &out) })
	return out, err
}

func (svc *Service) diff(ctx context.Context, v *store.View, o DiffOptions, out *api.Diff) (err error) {
	s := v.State
	from, err := resolve(s, o.From)
	if err != nil {
		return err
	}
	f, err := svc.openFilesOf(v.Ref, s, from, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	list := checkpointsIn(s, f.keeper.Name())
	options := checkpoint.DiffOptions{Stat: !o.Patch}
	for _, given := range o.Paths {
		path, err := f.recordedPath(given)
		if err != nil {
			return err
		}
		options.Paths = append(options.Paths, path)
	}
	out.From = fmt.Sprintf("c%d", from)
	var now map[string]api.FileVersion
	if o.To == "" || o.To == "now" {
		out.To, options.Now = "now", true
		now, err = f.keeper.Look(ctx, checkpoint.Tracked(list, options.Paths))
	} else {
		var to int
		if to, err = resolve(s, o.To); err == nil {
			out.To, now = fmt.Sprintf("c%d", to), checkpoint.StateAt(list, to)
		}
	}
	if err != nil {
		return err
	}
	diffs, err := f.keeper.Diff(ctx, checkpoint.StateAt(list, from), now, options)
	out.Files = append(out.Files, diffs...)
	return err
}
