package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// budget are the limits of cost that a run has in common with other tasks. What those
// spent is read from their logs, so that the limits hold over restarts, subtasks and
// other processes; what this run spent comes from its own state. Others are looked at
// again after a while: two runs at once may each spend what their requests of that time
// cost. A task in the trash counts no more.
type budget struct {
	store *store.Store
	now   func() int64 // Unix milliseconds
	zone  *time.Location
	task  func() *task.State

	tree int64 // micro-dollars for the task's tree, ever; 0 = no limit
	day  int64 // micro-dollars for all tasks on one day

	looked   int64  // when others were looked at
	today    string // the day of what follows
	before   int64  // what this task spent that day before the look
	at       int64  // its whole cost at the look
	others   int64  // what all others spent that day
	relation int64  // what the rest of the tree ever spent
}

// lookAgain is how long what others spent is taken for what they spend, in
// milliseconds.
const lookAgain = 15_000

// shared is nil when nothing limits a task together with others.
func (e *Engine) shared(t *store.Task, l task.Limits, r Request) agent.Shared {
	day := e.dayLimit(r)
	if l.MaxTaskMicros <= 0 && day <= 0 {
		return nil
	}
	b := &budget{store: e.store, now: e.opt.Now, zone: time.Local, task: t.State, tree: l.MaxTaskMicros, day: day}
	return b.reached
}

func (e *Engine) dayLimit(r Request) int64 { return limit(e.opt.Config.MaxDayMicros, r.MaxDayMicros) }

// priceless tells of limits of cost that cannot hold: nobody knows what the model costs.
func (e *Engine) priceless(s task.Settings, p parts, r Request) []string {
	l := s.Limits
	if l.MaxCostMicros <= 0 && l.MaxTaskMicros <= 0 && l.AskCostMicros <= 0 && e.dayLimit(r) <= 0 {
		return nil
	}
	if _, known := p.model.Cost(llm.Usage{Input: 1, Output: 1}); known && len(p.model.IDs) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("the price of %s is not known, so no limit of cost can stop this run; --max-turns can", s.Model)}
}

// reached says which limit the next request must wait for.
func (b *budget) reached(ctx context.Context) (code, reason string, err error) {
	s := b.task()
	day := time.UnixMilli(b.now()).In(b.zone)
	if today := day.Format(time.DateOnly); b.looked == 0 || b.now()-b.looked >= lookAgain || today != b.today {
		if err := b.look(ctx, s, day, today); err != nil {
			return "", "", fmt.Errorf("keep within the limits of cost: %w", err)
		}
	}
	if family := s.Usage.CostMicros + b.relation; b.tree > 0 && family >= b.tree {
		return "cost_task", fmt.Sprintf("the task and its subtasks spent $%s of the $%s that they may", money.USD(family), money.USD(b.tree)), nil
	}
	spent := b.others + b.before + max(s.Usage.CostMicros-b.at, 0)
	if b.day > 0 && spent >= b.day {
		return "cost_day", fmt.Sprintf("all tasks together spent $%s today, of the $%s that they may on one day", money.USD(spent), money.USD(b.day)), nil
	}
	return "", "", nil
}

// look reads what others spent. What this task has not saved yet is in its own state
// only, so its part of the day is read once and counted on from there.
func (b *budget) look(ctx context.Context, s *task.State, day time.Time, today string) error {
	if b.day > 0 {
		midnight := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, b.zone).UnixMilli()
		own, others, err := b.store.SpentSince(ctx, midnight, s.ID)
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
		family, err := b.store.SpentByFamily(ctx, s.ID, s.Parent)
		if err != nil {
			return err
		}
		b.relation = int64(family)
	}
	b.looked, b.today = b.now(), today
	return nil
}
