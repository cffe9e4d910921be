package checkpoint

import (
	"context"

	"github.com/roost-dev/roost/checkpoint/object"
)

// Usage is how much checkpoints take.
type Usage struct {
	Objects int
	Bytes   int64
}

// Size is how many bytes the store takes on disk, of all tasks.
func (k *Keeper) Size() (int64, error) { return k.store.Size() }

// Usage is what the checkpoints of one task reach. What tasks share counts for each.
func (k *Keeper) Usage(ctx context.Context, task string) (u Usage, err error) {
	ref, err := refOf(task)
	if err != nil {
		return u, err
	}
	u.Objects, u.Bytes, err = k.store.Reaches(ctx, ref)
	return u, err
}

// Forget removes a task's checkpoints from the store; the next Collect removes their contents, as far as no other task
// has them. A task that has none is no error.
func (k *Keeper) Forget(task string) error {
	ref, err := refOf(task)
	if err != nil {
		return err
	}
	ForgetCalls(k.dir, ref)
	return k.store.DeleteRef(ref)
}

// Collect removes contents that no task's checkpoints name, and that neither the
// newest survey nor one of before a running or interrupted command relies on. A dry run
// takes the refs in without for removed.
func (k *Keeper) Collect(ctx context.Context, dry bool, without ...string) (object.Collected, error) {
	return k.store.Collect(ctx, object.CollectOptions{DryRun: dry, Without: without, Keep: func() ([]object.ID, error) { return append(k.surveyed(), k.relied()...), nil }})
}
