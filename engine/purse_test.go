package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// What another run of this process spends counts at once, saved or not, and once: when
// the logs tell it, the ledger does not.
func TestADayLimitSeesOtherRunsAtOnce(t *testing.T) {
	st, err := store.Open(store.Options{Root: filepath.Join(t.TempDir(), "root")})
	if err != nil {
		t.Fatal(err)
	}
	var l ledger
	clock := time.Date(2026, 4, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	s := task.New(nil)
	s.ID = "mine"
	mine := l.open(s.Usage.CostMicros)
	b := &budget{store: st, now: func() int64 { return clock }, zone: time.UTC, task: func() *task.State { return s }, day: 100, purse: mine}
	reached := func(want string) {
		t.Helper()
		if code, reason, err := b.reached(t.Context()); code != want || err != nil {
			t.Errorf("%q (%s), %v, want %q", code, reason, err, want)
		}
	}
	reached("")
	other := l.open(5_000) // what its task cost before counts where it was spent
	reached("")
	other.see(5_099)
	reached("")
	other.see(5_100)
	reached("cost_day")

	// It is saved: the next look reads it in the logs, of which there are none here.
	other.settle(other.mark())
	clock += longestPause
	reached("")
	other.see(5_150)
	s.Usage.CostMicros = 49
	reached("")
	s.Usage.CostMicros = 50
	mine.see(50)
	reached("cost_day")
}

// A cost that falls or is seen twice is no money back, and what is saved is never more
// than what was spent.
func TestThePurse(t *testing.T) {
	var l ledger
	a, b := l.open(0), l.open(7)
	a.see(10)
	a.see(10)
	a.see(3)
	mark := a.mark()
	a.see(12)
	a.settle(mark)
	a.settle(mark)
	b.see(8)
	if spent, saved := b.others(); spent != 12 || saved != 10 {
		t.Errorf("of b's others: %d, %d saved", spent, saved)
	}
	if spent, saved := a.others(); spent != 1 || saved != 0 {
		t.Errorf("of a's others: %d, %d saved", spent, saved)
	}
	if spent, saved := (*purse)(nil).others(); spent != 0 || saved != 0 {
		t.Error("nobody's others spent something")
	}
}
