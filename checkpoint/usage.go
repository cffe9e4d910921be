package checkpoint

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/content"
)

// Usage is how much checkpoints take.
type Usage struct {
	Objects int
	Bytes   int64
}

// Usage is what the checkpoints of one task reach. What tasks share counts for each. Of a task whose checkpoints are
// in the store of an earlier version, Bytes is the size of that store.
func (k *Keeper) Usage(ctx context.Context, task string) (u Usage, err error) {
	if task == "" {
		return u, errNoTask
	}
	owner := OwnerOf(task)
	u.Objects, u.Bytes, err = k.store.Reaches(ctx, owner)
	if k.old == nil || !errors.Is(err, content.ErrMissing) {
		return u, err
	}
	refs, bad := k.old.Refs()
	if bad != nil || refs[owner] == "" {
		return u, errors.Join(err, bad)
	}
	blobs, _, err := k.old.Reaches(ctx, refs[owner])
	return Usage{Objects: len(blobs), Bytes: k.old.Size()}, err
}

var errNoTask = errors.New("a task without an id has no checkpoints")

// Forget takes a task's checkpoints from the store; the next Collect removes their contents, as far as no other task has
// them. A task that has none is no error.
func (k *Keeper) Forget(task string) error {
	if task == "" {
		return errNoTask
	}
	return k.Contents.Forget(OwnerOf(task))
}

// Collect removes contents that no task owns, and on which neither the newest survey nor one of before a running or
// interrupted command relies. A dry run treats the tasks in without, by OwnerOf, as removed.
func (k *Keeper) Collect(ctx context.Context, dry bool, without ...string) (content.Collected, error) {
	return k.Contents.Collect(ctx, dry, true, without...)
}
