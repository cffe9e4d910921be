package projection

import (
	"context"
	"testing"
	"time"

	"github.com/roost-dev/roost/task"
)

// A task alone takes its share of the time and no more. Many tasks share it, up to a bound.
func TestPauseOfManyTasks(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		took   time.Duration // of the task itself
		newest time.Duration // of any task
		tasks  int64
		want   time.Duration
	}{
		{"the first of a store", 0, 0, 1, time.Second},
		{"a small one", 5 * ms, 5 * ms, 1, time.Second},
		{"a large one", 700 * ms, 700 * ms, 1, 7 * time.Second},
		{"a very large one", 3000 * ms, 3000 * ms, 1, 30 * time.Second},
		{"twenty small ones", 5 * ms, 5 * ms, 20, time.Second},
		{"fifty small ones", 5 * ms, 6 * ms, 50, 3 * time.Second},
		{"the first of one among fifty", 0, 6 * ms, 50, 3 * time.Second},
		{"very many", 5 * ms, 5 * ms, 10_000, 10 * time.Second},
		{"a very large one among many", 3000 * ms, 5 * ms, 200, 30 * time.Second},
	} {
		var l Load
		l.took.Store(int64(c.newest))
		l.tasks.Store(c.tasks)
		if got := l.pause(c.took); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// A projector counts from its wake-up on until it has written, and no longer, also when it is stopped before.
func TestLoadCountsWhoHasToWrite(t *testing.T) {
	var l Load
	written := make(chan struct{}, 1)
	start := func() *Projector {
		return NewProjector(Task{
			LogDir: t.TempDir(),
			View:   func(f func(*task.State)) { f(new(task.State)) },
			SaveSnapshot: func(context.Context, uint64) error {
				written <- struct{}{}
				return nil
			},
			Load: &l,
		})
	}
	until := func(want int64) {
		t.Helper()
		for end := time.Now().Add(time.Minute); l.tasks.Load() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("got %d tasks, want %d", l.tasks.Load(), want)
			}
		}
	}
	one, other := start(), start()
	one.Wake()
	other.Wake()
	until(2)
	other.Stop()
	until(1)
	<-written
	until(0)
	one.Stop()
}
