package budget

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// What another run of this process spends counts at once, saved or not, and only once: once the logs contain it, the
// totals do not add it.
func TestADayLimitSeesOtherRunsAtOnce(t *testing.T) {
	st, err := store.Open(store.Options{Root: filepath.Join(t.TempDir(), "root")})
	if err != nil {
		t.Fatal(err)
	}
	var totals Totals
	clock := time.Date(2026, 4, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	s := task.New(nil)
	s.ID = "mine"
	mine := totals.Open(s.Usage.CostMicros)
	limit := New(Options{Store: st, Now: func() int64 { return clock }, Zone: time.UTC, Task: func() *task.State { return s }, Day: 100, Spend: mine})
	reached := func(want string) {
		t.Helper()
		if code, reason, err := limit.Reached(t.Context()); code != want || err != nil {
			t.Errorf("%q (%s), %v, want %q", code, reason, err, want)
		}
	}
	reached("")
	other := totals.Open(5_000) // what its task cost before counts where it was spent
	reached("")
	other.Update(5_099)
	reached("")
	other.Update(5_100)
	reached("cost_day")

	// It is saved: the next check finds it in the logs, of which there are none here.
	other.SetSaved(other.Spent())
	clock += maxPause
	reached("")
	other.Update(5_150)
	s.Usage.CostMicros = 49
	reached("")
	s.Usage.CostMicros = 50
	mine.Update(50)
	reached("cost_day")
}

// A cost that falls, or that is reported twice, gives no money back, and what is saved is never more than what was spent.
func TestTotals(t *testing.T) {
	var totals Totals
	a, b := totals.Open(0), totals.Open(7)
	a.Update(10)
	a.Update(10)
	a.Update(3)
	spent := a.Spent()
	a.Update(12)
	a.SetSaved(spent)
	a.SetSaved(spent)
	b.Update(8)
	if spent, saved := b.others(); spent != 12 || saved != 10 {
		t.Errorf("of b's others: %d, %d saved", spent, saved)
	}
	if spent, saved := a.others(); spent != 1 || saved != 0 {
		t.Errorf("of a's others: %d, %d saved", spent, saved)
	}
	if spent, saved := (*Spend)(nil).others(); spent != 0 || saved != 0 {
		t.Error("the others of no run spent something")
	}
}

// A day's limit covers one day: what a run spent before midnight does not count afterwards, and what it spends from then
// on does.
func TestADaysLimitEndsWithTheDay(t *testing.T) {
	s, err := store.Open(store.Options{Root: filepath.Join(t.TempDir(), "root")})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	is := &task.State{ID: "mine"}
	l := New(Options{Store: s, Now: func() int64 { return now.UnixMilli() }, Zone: time.UTC, Task: func() *task.State { return is }, Day: 150})
	for _, c := range []struct {
		later time.Duration
		cost  int64
		want  string
	}{
		{0, 0, ""},
		{time.Minute, 149, ""},
		{0, 200, "cost_day"},
		{2 * time.Hour, 200, ""}, // the next day
		{0, 340, ""},
		{time.Minute, 360, "cost_day"},
		{24 * time.Hour, 360, ""},
	} {
		now, is.Usage.CostMicros = now.Add(c.later), c.cost
		if code, why, err := l.Reached(t.Context()); err != nil || code != c.want {
			t.Errorf("at %s with %d: got %q (%s), %v, want %q", now, c.cost, code, why, err, c.want)
		}
	}
}
