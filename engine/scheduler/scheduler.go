// Package scheduler gives the runs of a process their slots and keeps the queue of those that wait for one. It also
// serialises what callers in this process do to one task (LockTask).
//
// A slot is reserved before its run is prepared and counts as starting until the run is registered, so that two callers
// never both get the last one. A run that waits for the user holds no slot. What is queued is durable in each task's
// journal; the queue in memory only records the order, and the next process rebuilds it.
package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/roost-dev/roost/internal/keyed"
)

// ErrDraining: the scheduler starts no new runs.
var ErrDraining = errors.New("no new runs are started")

// Queued is a run that waits for a slot. Its task's journal holds what it is to do.
type Queued struct {
	Task  string      // its key
	Run   string      // its id
	Start func(*Slot) // called in a goroutine of its own once there is a slot
}

// Scheduler is safe for concurrent use.
type Scheduler struct {
	busy     func() (running, waiting int)
	maxRuns  int
	maxQueue int

	mu       sync.Mutex
	queue    []*Queued // the first one is started first
	starting int       // slots of runs that are not registered yet
	phase    phase
	closed   bool
	tasks    keyed.Mutex[string]
	wait     sync.WaitGroup // for the scheduler's own goroutines
}

// phase is what a scheduler still starts.
type phase int

const (
	open     phase = iota // everything
	refusing              // no new runs; an answer may still continue a run
	draining              // nothing
)

// New makes a scheduler. busy counts the registered runs that hold a slot, and those that wait for the user and hold
// none; it is called with the scheduler locked. At most maxRuns runs work; the others wait in the queue, which holds
// at most maxQueue.
func New(busy func() (running, waiting int), maxRuns, maxQueue int) *Scheduler {
	return &Scheduler{busy: busy, maxRuns: maxRuns, maxQueue: maxQueue}
}

// Slot is the right of one run to work, reserved until the run is registered. nil is no slot.
type Slot struct {
	scheduler *Scheduler
	filled    bool // its run is registered, or it was released; guarded by Scheduler.mu
}

// Acquire reserves a slot for a run that never waits for one, however many runs work: one that a person starts, or that
// continues with an answer.
func (s *Scheduler) Acquire() (*Slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == draining {
		return nil, ErrDraining // a drain may have found that no run is left
	}
	return s.reserve(), nil
}

// TryAcquire reserves a slot for a run that is about to start; nil when none is free, or other runs wait for one.
func (s *Scheduler) TryAcquire() (*Slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != open {
		return nil, ErrDraining
	}
	if len(s.queue) > 0 || !s.hasRoom() {
		return nil, nil
	}
	return s.reserve(), nil
}

// reserve makes a slot. The caller holds mu.
func (s *Scheduler) reserve() *Slot {
	s.starting++
	return &Slot{scheduler: s}
}

// hasRoom reports whether another run may start. The caller holds mu: two callers that counted first and locked then
// would both get the last slot.
func (s *Scheduler) hasRoom() bool {
	running, _ := s.busy()
	return running+s.starting < s.maxRuns
}

// fill ends a reservation. The caller holds mu.
func (p *Slot) fill() {
	if p != nil && !p.filled {
		p.filled = true
		p.scheduler.starting--
	}
}

// Release returns a slot in which no run was registered.
func (p *Slot) Release() {
	if p == nil {
		return
	}
	p.scheduler.mu.Lock()
	p.fill()
	p.scheduler.mu.Unlock()
	p.scheduler.Dispatch()
}

// Register calls register, which adds a run to those that busy counts, and ends the reservation of its slot where
// that succeeds. Both happen with the scheduler locked, so that the run always counts exactly once.
func (s *Scheduler) Register(slot *Slot, register func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !register() {
		return false
	}
	slot.fill()
	return true
}

// Snapshot calls f with the number of starting runs, and with the scheduler locked: no run is registered until f returns.
func (s *Scheduler) Snapshot(f func(starting int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.starting)
}

// Load counts the runs of this process; one that is about to start is running. A task and the subtask that it waits for
// count as one.
func (s *Scheduler) Load() (running, waiting, queued int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running, waiting = s.busy()
	return running + s.starting, waiting, len(s.queue)
}

// Dispatch starts queued runs while there are slots. It is called whenever a slot may have become free, and does not
// wait.
func (s *Scheduler) Dispatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && s.phase == open && !s.closed && s.hasRoom() {
		next := s.queue[0]
		s.queue = s.queue[1:]
		slot := s.reserve()
		s.wait.Go(func() {
			defer slot.Release()
			next.Start(slot)
		})
	}
}

// Enqueue puts a run at the end of the queue, or back to its beginning.
func (s *Scheduler) Enqueue(q *Queued, first bool) {
	s.mu.Lock()
	at := len(s.queue)
	if first {
		at = 0
	}
	s.queue = slices.Insert(s.queue, at, q)
	s.mu.Unlock()
	s.Dispatch()
}

// EnqueueLater is Enqueue at the beginning of the queue, once pause has returned. Close waits for it.
func (s *Scheduler) EnqueueLater(q *Queued, pause func()) {
	s.wait.Go(func() {
		pause()
		s.Enqueue(q, true)
	})
}

// Dequeue removes a task's run from the queue.
func (s *Scheduler) Dequeue(task string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(q *Queued) bool { return q.Task == task })
}

// Position returns a run's position in the queue, from 1; 0 = it is not in it.
func (s *Scheduler) Position(run string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 1 + slices.IndexFunc(s.queue, func(q *Queued) bool { return q.Run == run })
}

// Full reports whether the queue takes no more.
func (s *Scheduler) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) >= s.maxQueue
}

// Refuse starts no new runs until Admit. Working runs continue, runs that wait for the user still wait and can be
// answered, and queued runs stay queued. An answer continues the run that asked, also where that run has released its
// task: it began before, and had its slot. Unlike Drain, Refuse can be reverted without a trace.
func (s *Scheduler) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = max(s.phase, refusing)
}

// Drain starts nothing until Admit, not even a run that an answer continues.
func (s *Scheduler) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = draining
}

// Admit reverts Refuse and Drain: runs start again, the queued ones first.
func (s *Scheduler) Admit() {
	s.mu.Lock()
	s.phase = open
	s.mu.Unlock()
	s.Dispatch()
}

// Refusing reports whether no new runs are started.
func (s *Scheduler) Refusing() bool { return s.now() != open }

// Draining reports whether nothing continues a run, not even an answer.
func (s *Scheduler) Draining() bool { return s.now() == draining }

func (s *Scheduler) now() phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// Close starts nothing more, and waits for the scheduler's goroutines.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wait.Wait()
}

// LockTask lets the caller alone start, queue or answer for a task, until unlock is called. A run that works on the task
// does not hold the lock.
func (s *Scheduler) LockTask(ctx context.Context, key string) (unlock func(), err error) {
	return s.tasks.Lock(ctx, key)
}
