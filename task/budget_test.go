package task_test

import (
	"testing"

	"github.com/roost-dev/roost/task"
)

// What a run has used up goes over to the run that takes up what it left, and only to
// that one.
func TestWhatARunUsedUp(t *testing.T) {
	cost := func(n int64) task.UsageChanged { return task.UsageChanged{CostMicros: &n} }
	for _, tt := range []struct {
		end   task.Event
		turns int
		cost  int64
		time  int64
	}{
		{task.RunEnded{Run: "r1", Outcome: "interrupted", WorkedMS: 900}, 3, 35, 900},
		{task.RunEnded{Run: "r1", Outcome: "interrupted"}, 3, 35, 800}, // told by who found it killed
		{task.RunWaiting{Run: "r1", Question: "q", WorkedMS: 950}, 3, 35, 950},
		{nil, 3, 35, 800}, // killed, and its end was never written
		{task.RunEnded{Run: "r1", Outcome: "limit", Code: "cost", WorkedMS: 900}, 1, 5, 0},
		{task.RunEnded{Run: "r1", Outcome: "completed", WorkedMS: 900}, 1, 5, 0},
		{task.RunEnded{Run: "r1", Outcome: "cancelled"}, 1, 5, 0},
		{task.RunEnded{Run: "r1", Outcome: "failed"}, 1, 5, 0},
		{task.RunEnded{Run: "r1", Outcome: "denied"}, 1, 5, 0},
	} {
		w := tell(t, task.Created{Task: "t"})
		w.then(task.RunStarted{Run: "r1"}).then(cost(10), task.TurnEnded{Run: "r1"})
		w.then(task.UsageChanged{}).then(cost(-7)).then(cost(20), task.TurnEnded{Run: "r1", WorkedMS: 800})
		if w.Run.Turns != 2 || w.Run.CostMicros != 30 {
			t.Fatalf("the first run: %+v", w.Run)
		}
		if tt.end != nil {
			w.then(tt.end)
		}
		w.then(task.RunStarted{Run: "r2"})
		if w.Run.WorkedMS != tt.time {
			t.Errorf("after %+v it has worked %d ms, want %d", tt.end, w.Run.WorkedMS, tt.time)
		}
		w.then(cost(5), task.TurnEnded{Run: "r2"})
		if w.Run.Turns != tt.turns || w.Run.CostMicros != tt.cost {
			t.Errorf("after %+v: %d turns for %d, want %d for %d", tt.end, w.Run.Turns, w.Run.CostMicros, tt.turns, tt.cost)
		}
		if w.Usage.CostMicros != 35 {
			t.Errorf("the usage totals has %d", w.Usage.CostMicros)
		}
	}
}

// A request that no run made, because the log lost the run's start, still counts in the
// the totals and breaks nothing.
func TestSpendingWithoutARun(t *testing.T) {
	n := int64(4)
	w := tell(t, task.UsageChanged{CostMicros: &n}, task.TurnEnded{Run: "r"})
	if w.Run != nil || w.Usage.CostMicros != 4 {
		t.Errorf("got %+v, %+v, want w.Run = nil and w.Usage.CostMicros = 4", w.Run, w.Usage)
	}
}

// A snapshot keeps it: a reader who skips the log knows the same.
func TestASnapshotKeepsWhatARunUsedUp(t *testing.T) {
	n := int64(4)
	w := tell(t, task.Created{Task: "t"}, task.RunStarted{Run: "r"}, task.UsageChanged{CostMicros: &n}, task.TurnEnded{Run: "r", WorkedMS: 70})
	raw, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := task.Restore(raw, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s.Run == nil || s.Run.CostMicros != 4 || s.Run.Turns != 1 || s.Run.WorkedMS != 70 {
		t.Errorf("got %+v, want s.Run != nil and s.Run.CostMicros = 4 and s.Run.Turns = 1 and s.Run.WorkedMS = 70",
			s.Run)
	}
}
