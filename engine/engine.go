package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/engine/budget"

	"github.com/roost-dev/roost/engine/scheduler"

	"github.com/roost-dev/roost/engine/checkpoints"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
)

// Options are what an engine needs beside the store.
type Options struct {
	Now    func() int64 // Unix milliseconds; nil = the clock
	Config setup.Config // without Keys: from the environment
	// MaxRuns is how many runs may work at once; more wait in the queue, which holds at most
	// MaxQueue. Those that wait for a person do not count. 0 = 8 and 1000.
	MaxRuns, MaxQueue int
	// Hold is how long a run that the scheduler starts waits for a user before it releases its task, as waiting.
	// 0 = 10 minutes, negative = until there is an answer.
	Hold time.Duration
	// Confined: every task that runs or is forked works in a folder that can be a project: not
	// a disk, the home folder, Roost's own data, or what holds them.
	Confined bool
	// Observe gets each durable event of every run of this process, in the order of its run, before the run's
	// subscribers. It must be quick. It may be nil.
	Observe func(events.Event)
}

// Engine runs tasks. It is safe for concurrent use.
type Engine struct {
	store       *store.Store
	opt         Options
	resolver    setup.Resolver
	checkpoints *checkpoints.Service
	pipe        *events.Pipe

	mu        sync.Mutex
	runs      map[string]*Run
	ending    map[string]*Run // runs of which it is not known yet what follows them
	began     bool            // a run has begun
	totals    budget.Totals
	closed    bool
	wait      sync.WaitGroup
	scheduler *scheduler.Scheduler
}

// ErrClosed: the engine is shutting down and starts nothing more.
var ErrClosed = errors.New("the engine is closed")

// New makes an engine.
func New(s *store.Store, o Options) *Engine {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.Config.Keys == nil {
		o.Config = setup.ConfigFromEnv(os.Getenv)
	}
	resolver := setup.Resolver{Config: o.Config, Root: s.Root(), Confined: o.Confined}
	e := &Engine{
		store:       s,
		opt:         o,
		resolver:    resolver,
		checkpoints: checkpoints.New(s, resolver, o.Now),
		pipe:        events.New(s),
		runs:        map[string]*Run{},
	}
	e.scheduler = scheduler.New(runTable{e}, cmp.Or(max(o.MaxRuns, 0), defaultMaxRuns), cmp.Or(max(o.MaxQueue, 0), defaultMaxQueue))
	return e
}

// Events is the pipe with the events of all tasks, and the live events of this engine's runs.
func (e *Engine) Events() *events.Pipe { return e.pipe }

// Runs are the ids of the tasks that run in this process.
func (e *Engine) Runs() []*Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.runs))
}

// Close cancels every run, waits until each is saved, and starts no more.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for _, r := range e.Runs() {
		if r.parent.Load() == nil { // the parent's run stops a subtask
			r.Cancel()
		}
	}
	done := make(chan struct{})
	go func() { e.wait.Wait(); e.scheduler.Close(); e.pipe.Close(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the engine: %w", ctx.Err())
	}
}
