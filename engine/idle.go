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

// watchTotal ends the run when it took limit, without the time in which it waited for a
// person. It returns when ctx ends.
func (r *Run) watchTotal(ctx context.Context, limit time.Duration) {
	step := min(max(limit/20, 5*time.Millisecond), time.Second)
	tick := time.NewTicker(step)
	defer tick.Stop()
	used, last := time.Duration(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if !r.asking() {
				used += now.Sub(last)
			}
			last = now
			if used >= limit {
				r.cancel(agent.ErrTimeout)
				return
			}
		}
	}
}
