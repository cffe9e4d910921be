package budget

import "sync"

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

// Spent is what the run has spent. SetSaved takes it back once all that was committed by now is on disk.
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

// others is what all other runs have spent, and how much of that is saved.
func (s *Spend) others() (spent, saved int64) {
	if s == nil {
		return 0, 0
	}
	s.totals.mu.Lock()
	defer s.totals.mu.Unlock()
	return s.totals.spent - s.spent, s.totals.saved - s.saved
}
