package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/roost-dev/roost/agent"
)

// touch records that something happened in the run. It never blocks.
func (r *Run) touch() {
	select {
	case r.active <- struct{}{}:
	default: // it is recorded already
	}
	if up := r.parent.Load(); up != nil {
		up.touch() // a run that waits for a subtask is as active as the subtask
	}
}

// asking reports whether a question of this run waits for the user, whose time does not count as the run's.
func (r *Run) asking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.answers) > 0 || r.child != nil && r.child.asking()
}

// watchIdle ends the run when nothing happened for limit: no event, no streamed text. It returns when ctx ends.
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
			r.life.cancel(fmt.Errorf("nothing happened for %s: %w", limit, agent.ErrTimeout))
			return
		}
	}
}

// clock counts how long a run worked, including the earlier part of a run that continues under the same id, and without
// the time in which it waited for the user.
type clock struct {
	mu   sync.Mutex
	used time.Duration
	last time.Time // of the last count; zero = the run's time is not limited
}

// worked counts the time since the last count and returns the total. It is called whenever the run begins or ends to wait
// for the user, and often enough in between to notice waiting subtasks.
func (r *Run) worked() time.Duration {
	asking := r.asking()
	c := &r.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return 0
	}
	now := time.Now()
	if !asking {
		c.used += now.Sub(c.last)
	}
	c.last = now
	return c.used
}

// startClock starts the clock of a run whose time is limited.
func (r *Run) startClock() {
	r.clock.last = time.Now()
	if before := r.task.State().Run; before.Unended() {
		r.clock.used = time.Duration(before.WorkedMS) * time.Millisecond
	}
}

// watchTotal ends the run when it worked for limit. It returns when ctx ends.
func (r *Run) watchTotal(ctx context.Context, limit time.Duration) {
	tick := time.NewTicker(min(max((limit-r.worked())/20, 5*time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if r.worked() >= limit {
				r.life.cancel(agent.ErrTimeout)
				return
			}
		}
	}
}

// runBudget is a run's agent.Budget.
type runBudget struct{ run *Run }

// Reached names the shared limit that is used up.
func (b runBudget) Reached(ctx context.Context) (code, reason string, err error) {
	return b.run.held.budget.Reached(ctx)
}

// WorkedMS is how long the run has worked, where its time is limited.
func (b runBudget) WorkedMS() int64 { return b.run.worked().Milliseconds() }
