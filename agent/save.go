package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/journal"
)

// saveRetry is how long the agent waits between tries while the disk refuses.
const saveRetry = time.Second

// save returns when everything committed so far is durable. While the task
// cannot be saved it says so and waits: no request goes out and no tool starts
// meanwhile. It gives up only when the run is cancelled or the task was taken
// over.
func (a *Agent) save(ctx context.Context) error {
	err := a.untilSaved(ctx, func() error { return a.Task.Journal.Barrier(ctx) })
	if err == nil {
		a.checkpoints.Durable()
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("save the task: %w", err)
	}
	return err
}

// untilSaved tries again for as long as only the disk refuses.
func (a *Agent) untilSaved(ctx context.Context, try func() error) error {
	told := false
	for {
		err := try()
		if err == nil {
			if told {
				a.notice("saved again; going on")
			}
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, journal.ErrNotSaved) {
			return err
		}
		if !told {
			a.notice(fmt.Sprintf("%v; waiting until it can be saved, and then it goes on by itself", err))
			told = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(saveRetry):
		}
	}
}
