package engine

import (
	"context"
	"fmt"
	"sync"
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

// clock counts how long a run worked, with what it took over from the run that it goes on
// with, and without the time in which it waited for a person.
type clock struct {
	mu   sync.Mutex
	used time.Duration
	last time.Time // when it was looked at last
}

// worked looks at the clock. It is looked at whenever the run begins or ends to wait for a
// person, and often enough in between for what waits of its subtasks.
func (r *Run) worked() time.Duration {
	asking := r.asking()
	c := &r.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return 0 // nobody counts
	}
	now := time.Now()
	if !asking {
		c.used += now.Sub(c.last)
	}
	c.last = now
	return c.used
}

// wind starts the clock of a run whose time is limited.
func (r *Run) wind() {
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
				r.cancel(agent.ErrTimeout)
				return
			}
		}
	}
}

// runBudget is a run's agent.Budget.
type runBudget struct{ run *Run }

// Reached names the shared limit that is used up.
func (b runBudget) Reached(ctx context.Context) (code, reason string, err error) {
	return b.run.budget.Reached(ctx)
}

// WorkedMS is how long the run has worked, where its time is limited.
func (b runBudget) WorkedMS() int64 { return b.run.worked().Milliseconds() }
