package engine

import "context"

// After is the run of this process that goes on with the task of a run that has ended:
// somebody interrupted it with words, or gave it words when it had just ended. nil when
// there is none. What is being said or answered at this moment is waited for, so that a
// process which asks before it ends takes no run with it that was promised to somebody.
func (r *Run) After(ctx context.Context) *Run {
	select {
	case <-r.settled: // it is no run of this process any more
	case <-ctx.Done():
		return nil
	}
	key := keyOf(r.task.Ref)
	done, err := r.engine.turn(ctx, key)
	if err != nil {
		return nil
	}
	defer done()
	return r.engine.working(key)
}
