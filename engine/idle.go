package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/agent"
)

// touch notes that something happened in the run. It never blocks.
func (r *Run) touch() {
	select {
	case r.active <- struct{}{}:
	default: // one is noted already
	}
	if up := r.parent.Load(); up != nil {
		up.touch() // who waits for a subtask is not idle while that one is not
	}
}

// asking reports whether a question of this run waits for a person: their time
// is not the run's.
func (r *Run) asking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.answers) > 0 || r.child != nil && r.child.asking()
}

// watchIdle ends the run when nothing happened for limit: no event, no streamed
// piece. It returns when ctx ends.
func (r *Run) watchIdle(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.active:
			timer.Reset(limit)
		case <-timer.C:
			if r.asking() {
				timer.Reset(limit)
				continue
			}
			r.cancel(fmt.Errorf("nothing happened for %s: %w", limit, agent.ErrTimeout))
			return
		}
	}
}
