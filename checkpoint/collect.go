package checkpoint

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/checkpoint/gitstore"
	"github.com/roost-dev/roost/content"
)

// Forget takes contents from an owner; the next Collect removes them, as far as no other task has them. An owner without
// contents is no error.
func (c *Contents) Forget(owner string) error {
	ForgetCalls(c.dir, owner)
	err := c.store.RemoveName(owner)
	if c.old != nil {
		err = errors.Join(err, c.old.RemoveRef(owner))
	}
	return err
}

// Collect removes contents that no task owns. With surveys, those stay that the newest survey of the workspace and the
// surveys of running or interrupted commands rely on. A dry run treats the owners in without as removed, and does not
// look into a store that is not carried over yet.
func (c *Contents) Collect(ctx context.Context, dry, surveys bool, without ...string) (done content.Collected, err error) {
	carried := int64(0)
	if gitstore.Open(c.dir) != nil {
		carried = c.old.Size()
		if !dry {
			if err := c.carryOver(ctx); err != nil {
				return done, err
			}
		}
	}
	o := content.CollectOptions{DryRun: dry, Without: without}
	if surveys {
		o.Keep = func() ([]content.Hash, error) { return append(surveyed(c.dir), relied(c.dir)...), nil }
	}
	done, err = c.store.Collect(ctx, o)
	if carried > 0 && err == nil && dry {
		done.Before, done.After = done.Before+carried, done.After+carried
	}
	return done, err
}
