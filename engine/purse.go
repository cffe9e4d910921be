package engine

import "sync"

// ledger is what the runs of this process spent, in micro-dollars since it began. The
// logs tell it too, but somebody has to read them: this says at once that another run
// spent something.
type ledger struct {
	mu    sync.Mutex
	spent int64 // committed
	saved int64 // of it what is in the logs for everybody to read
}

// purse is one run's part of it.
type purse struct {
	of    *ledger
	cost  int64 // the task's whole cost when last seen
	spent int64
	saved int64
}

// open begins a run of a task that cost so much until now.
func (l *ledger) open(cost int64) *purse { return &purse{of: l, cost: cost} }

// see takes the task's whole cost after a commit.
func (p *purse) see(cost int64) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if more := cost - p.cost; more > 0 {
		p.cost, p.spent, p.of.spent = cost, p.spent+more, p.of.spent+more
	}
}

// mark gives what settle is told when all that was committed by now is saved.
func (p *purse) mark() int64 {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.spent
}

func (p *purse) settle(mark int64) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if more := mark - p.saved; more > 0 {
		p.saved, p.of.saved = mark, p.of.saved+more
	}
}

// others is what all other runs spent, and saved of that.
func (p *purse) others() (spent, saved int64) {
	if p == nil {
		return 0, 0
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.of.spent - p.spent, p.of.saved - p.saved
}
