package engine

import "context"

// Leaving waits for the run of this process that has ended, or lets its task go while it
// waits for a person, and still writes the task's files, until it has let go. free is false
// when a run works on the task, and goes on doing so.
func (e *Engine) Leaving(ctx context.Context, task string) (free bool, err error) {
	ref, err := e.store.FindLatest(ctx, task)
	if err != nil {
		return false, err
	}
	run := e.working(keyOf(ref))
	switch {
	case run == nil:
		return true, nil
	case !run.ending():
		return false, nil
	}
	select {
	case <-run.settled:
		return e.working(keyOf(ref)) == nil, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
