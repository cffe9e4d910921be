// Package budget keeps a run within the limits of cost that it shares with other tasks: what the task and its subtasks
// may cost together, and what all tasks may cost on one day.
//
// What other tasks spent is read from their logs, so that the limits hold over restarts, subtasks and other processes.
// What the run itself spent comes from its own state, and what other runs of this process spend comes from Totals, at
// once. The logs are read again after a while: two processes may each spend what their requests of that time cost. A task
// in the trash does not count.
package budget

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/spend"
	"github.com/roost-dev/roost/task"
)

// Options describe the limits of one run. Amounts are in micro-dollars; 0 = no limit.
type Options struct {
	Store *store.Store
	Now   func() int64 // Unix milliseconds
	Zone  *time.Location
	Task  func() *task.State
	Spend *Spend // of this run; nil = no other run is in this process
	Tree  int64  // for the task's tree, over all time
	Day   int64  // for all tasks on one day
}

// Limit checks the limits of one run. Only the run's goroutine may call it. A nil Limit limits nothing.
type Limit struct {
	Options

	readAt int64  // when the logs were read; 0 = never
	stale  bool   // other tasks are known to have spent since
	pause  int64  // milliseconds until the logs are read again
	day    string // the day of the amounts below
	others int64  // what all other tasks spent that day, by the logs
	family int64  // what the rest of the tree spent, by the logs
	counts int64  // what the logs contain of other runs of this process
	own    ownAmount
}

// ownAmount counts the task's own part of the day: it reads the task's logs once, and the state adds what comes later.
type ownAmount struct {
	before int64 // what the task spent that day before its logs were read
	cost   int64 // its total cost at that time
}

// After a read of the logs, the next one waits fifty times as long as that read took, so that reading costs at most
// two percent of a run's time. The bounds of the wait, in milliseconds:
const (
	minPause = 1_000
	maxPause = 15_000
)

// New returns the limit of a run; nil where none is set.
func New(o Options) *Limit {
	if o.Tree <= 0 && o.Day <= 0 {
		return nil
	}
	return &Limit{Options: o}
}

// Invalidate makes the next check read the logs: another task is known to have spent something.
func (l *Limit) Invalidate() {
	if l != nil {
		l.stale = true
	}
}

// Reached names the limit that is used up, so that the next request must wait for the user.
func (l *Limit) Reached(ctx context.Context) (code, reason string, err error) {
	if l == nil {
		return "", "", nil
	}
	s := l.Task()
	now := time.UnixMilli(l.Now()).In(l.Zone)
	today := now.Format(time.DateOnly)
	fresh := l.readAt == 0 || l.stale || l.Now()-l.readAt >= l.pause || today != l.day || l.Tree > 0 && l.sinceRead() > 0
	for {
		if fresh {
			if err := l.readLogs(ctx, s, now, today); err != nil {
				return "", "", fmt.Errorf("check the limits of cost: %w", err)
			}
		}
		if tree := s.Usage.CostMicros + l.family; l.Tree > 0 && tree >= l.Tree {
			return "cost_task", fmt.Sprintf("the task and its subtasks spent $%s of the $%s that they may", money.USD(tree),
				money.USD(l.Tree)), nil
		}
		spent := l.others + l.sinceRead() + l.own.before + max(s.Usage.CostMicros-l.own.cost, 0)
		switch {
		case l.Day <= 0 || spent < l.Day:
			return "", "", nil
		case fresh:
			return "cost_day", fmt.Sprintf("all tasks together spent $%s today, of the $%s that they may on one day",
				money.USD(spent), money.USD(l.Day)), nil
		}
		fresh = true // before it stops a run, the amount is read once more: what was being saved may have counted twice
	}
}

// sinceRead returns what other runs of this process spent and the logs did not contain yet.
func (l *Limit) sinceRead() int64 {
	spent, _ := l.Spend.others()
	return max(spent-l.counts, 0)
}

// readLogs reads what other tasks spent. What this task has not saved yet is in its own state only, so its part of the day
// is read once and counted on from there.
func (l *Limit) readLogs(ctx context.Context, s *task.State, now time.Time, today string) error {
	began := time.Now()
	_, counts := l.Spend.others() // before the logs are read: they contain all of it
	if l.Day > 0 {
		midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, l.Zone).UnixMilli()
		own, others, err := spend.Since(ctx, l.Store, midnight, s.ID)
		if err != nil {
			return err
		}
		l.others = int64(others)
		switch {
		case l.readAt == 0:
			l.own = ownAmount{int64(own), s.Usage.CostMicros}
		case today != l.day:
			l.own = ownAmount{0, s.Usage.CostMicros}
		}
	}
	if l.Tree > 0 && (s.Parent != "" || len(s.Children) > 0) {
		family, err := spend.ByFamily(ctx, l.Store, s.ID, s.Parent)
		if err != nil {
			return err
		}
		l.family = int64(family)
	}
	l.readAt, l.day, l.stale, l.counts = l.Now(), today, false, counts
	l.pause = min(max(50*time.Since(began).Milliseconds(), minPause), maxPause)
	return nil
}

// Totals are what the runs of this process have spent since it began, in micro-dollars. The logs hold that too, but
// reading them takes time: the totals show at once that another run has spent something.
type Totals struct {
	mu    sync.Mutex
	spent int64 // committed
	saved int64 // the part that is on disk, where every process can read it
}

// Spend is one run's part of the totals.
type Spend struct {
	totals *Totals
	cost   int64 // the task's total cost at the last update
	spent  int64
	saved  int64
}

// Open begins a run of a task whose total cost so far is given.
func (t *Totals) Open(cost int64) *Spend { return &Spend{totals: t, cost: cost} }

// Update takes the task's total cost after a commit.
func (s *Spend) Update(cost int64) {
	s.totals.mu.Lock()
	defer s.totals.mu.Unlock()
	if more := cost - s.cost; more > 0 {
		s.cost, s.spent, s.totals.spent = cost, s.spent+more, s.totals.spent+more
	}
}

// Spent returns what the run has spent. SetSaved takes it back once all that was committed by now is on disk.
func (s *Spend) Spent() int64 {
	s.totals.mu.Lock()
	defer s.totals.mu.Unlock()
	return s.spent
}

// SetSaved records how much of what the run has spent is on disk.
func (s *Spend) SetSaved(spent int64) {
	s.totals.mu.Lock()
	defer s.totals.mu.Unlock()
	if more := spent - s.saved; more > 0 {
		s.saved, s.totals.saved = spent, s.totals.saved+more
	}
}

// others returns what all other runs have spent, and how much of that is saved.
func (s *Spend) others() (spent, saved int64) {
	if s == nil {
		return 0, 0
	}
	s.totals.mu.Lock()
	defer s.totals.mu.Unlock()
	return s.totals.spent - s.spent, s.totals.saved - s.saved
}
