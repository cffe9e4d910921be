package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/spend"
	"github.com/roost-dev/roost/task"
)

// budget are the limits of cost that a run has in common with other tasks. What those
// spent is read from their logs, so that the limits hold over restarts, subtasks and
// other processes; what this run spent comes from its own state, and what other runs of
// this process spend from the engine's ledger, at once. Other processes are looked at
// again after a while: two of them may each spend what their requests of that time
// cost. A task in the trash counts no more.
type budget struct {
	store *store.Store
	now   func() int64 // Unix milliseconds
	zone  *time.Location
	task  func() *task.State

	purse *purse // what the runs of this process spend; nil = nobody else runs

	tree int64 // micro-dollars for the task's tree, ever; 0 = no limit
	day  int64 // micro-dollars for all tasks on one day

	looked   int64  // when others were looked at
	today    string // the day of what follows
	before   int64  // what this task spent that day before the look
	at       int64  // its whole cost at the look
	others   int64  // what all others spent that day
	relation int64  // what the rest of the tree ever spent
	stale    bool   // they are known to have spent since
	counted  int64  // what the look found of what other runs of this process spent
	pause    int64  // milliseconds until others are looked at again
}

// How long what other processes spent is taken for what they spend, in milliseconds:
// fifty times what looking takes, so that it costs two percent of a run at most.
const (
	shortestPause = 1_000
	longestPause  = 15_000
)

// shared is nil when nothing limits a task together with others.
func (e *Engine) shared(t *store.Task, l task.Limits, r Request) *budget {
	day := e.resolver.DayLimit(r.Choice)
	if l.MaxTaskMicros <= 0 && day <= 0 {
		return nil
	}
	return &budget{store: e.store, now: e.opt.Now, zone: time.Local, task: t.State, tree: l.MaxTaskMicros, day: day}
}

// runBudget is a run's agent.Budget.
type runBudget struct{ run *Run }

// Reached names the shared limit that is used up; a run without a budget has none.
func (b runBudget) Reached(ctx context.Context) (code, reason string, err error) {
	if b.run.budget == nil {
		return "", "", nil
	}
	return b.run.budget.reached(ctx)
}

// WorkedMS is how long the run has worked, where its time is limited.
func (b runBudget) WorkedMS() int64 { return b.run.worked().Milliseconds() }

// forget makes the next request look anew: somebody else spent meanwhile.
func (b *budget) forget() {
	if b != nil {
		b.stale = true
	}
}

// reached says which limit the next request must wait for.
func (b *budget) reached(ctx context.Context) (code, reason string, err error) {
	s := b.task()
	day := time.UnixMilli(b.now()).In(b.zone)
	today := day.Format(time.DateOnly)
	fresh := b.looked == 0 || b.stale || b.now()-b.looked >= b.pause || today != b.today || b.tree > 0 && b.since() > 0
	for {
		if fresh {
			if err := b.look(ctx, s, day, today); err != nil {
				return "", "", fmt.Errorf("keep within the limits of cost: %w", err)
			}
		}
		if family := s.Usage.CostMicros + b.relation; b.tree > 0 && family >= b.tree {
			return "cost_task", fmt.Sprintf("the task and its subtasks spent $%s of the $%s that they may", money.USD(family), money.USD(b.tree)), nil
		}
		spent := b.others + b.since() + b.before + max(s.Usage.CostMicros-b.at, 0)
		switch {
		case b.day <= 0 || spent < b.day:
			return "", "", nil
		case fresh:
			return "cost_day", fmt.Sprintf("all tasks together spent $%s today, of the $%s that they may on one day", money.USD(spent), money.USD(b.day)), nil
		}
		fresh = true // what stops a run is read once more: what was being saved at the look may count twice
	}
}

// since is what other runs of this process spent and the look did not find.
func (b *budget) since() int64 {
	spent, _ := b.purse.others()
	return max(spent-b.counted, 0)
}

// look reads what others spent. What this task has not saved yet is in its own state
// only, so its part of the day is read once and counted on from there.
func (b *budget) look(ctx context.Context, s *task.State, day time.Time, today string) error {
	began := time.Now()
	_, counted := b.purse.others() // before the logs are read: all of it is in them
	if b.day > 0 {
		midnight := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, b.zone).UnixMilli()
		own, others, err := spend.Since(ctx, b.store, midnight, s.ID)
		if err != nil {
			return err
		}
		b.others = int64(others)
		switch {
		case b.looked == 0:
			b.before, b.at = int64(own), s.Usage.CostMicros
		case today != b.today:
			b.before, b.at = 0, s.Usage.CostMicros
		}
	}
	if b.tree > 0 && (s.Parent != "" || len(s.Children) > 0) {
		family, err := spend.ByFamily(ctx, b.store, s.ID, s.Parent)
		if err != nil {
			return err
		}
		b.relation = int64(family)
	}
	b.looked, b.today, b.stale, b.counted = b.now(), today, false, counted
	b.pause = min(max(50*time.Since(began).Milliseconds(), shortestPause), longestPause)
	return nil
}
