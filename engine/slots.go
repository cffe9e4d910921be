package engine

import (
	"context"
	"slices"
	"sync"
	"time"
)

// The desk is where people and programs leave what they want of tasks: it gives runs their
// places, keeps the queue, and passes words and answers on. What it promises is on disk, in
// each task's journal; what it holds in memory is only who waits for what in this process.

const (
	usualRuns  = 8
	usualQueue = 1000
	usualHold  = 10 * time.Minute
	usualWords = 256 // that may wait in one task's queue
)

// desk is that of an engine. The zero value is ready.
type desk struct {
	mu       sync.Mutex
	queue    []*pending          // runs that wait for a place, the first comes first
	starting int                 // places given to runs that are about to start
	draining bool                // nothing more is started
	leaving  bool                // nor gone on with: see Drain
	shut     bool                // the engine is closed
	turns    map[string]*turning // by task
	wait     sync.WaitGroup      // for what the desk does by itself
}

// pending is a run in the queue. What it is to do lies in the task's journal.
type pending struct {
	key string // of the task
	run string
	req Request
}

func (e *Engine) maxRuns() int {
	if e.opt.MaxRuns > 0 {
		return e.opt.MaxRuns
	}
	return usualRuns
}

func (e *Engine) maxQueue() int {
	if e.opt.MaxQueue > 0 {
		return e.opt.MaxQueue
	}
	return usualQueue
}

// hold is how long a run of the desk's waits for a person; 0 = until somebody answers.
func (e *Engine) hold() time.Duration {
	switch h := e.opt.Hold; {
	case h < 0:
		return 0
	case h == 0:
		return usualHold
	default:
		return h
	}
}

// turning is one task's turn at the desk.
type turning struct {
	free  chan struct{} // room for one
	count int           // who has it or waits for it
}

// turn lets the caller alone start, queue or answer for a task, until done is called. A
// run that works on the task takes no turn.
func (e *Engine) turn(ctx context.Context, key string) (done func(), err error) {
	d := &e.desk
	d.mu.Lock()
	if d.turns == nil {
		d.turns = map[string]*turning{}
	}
	t := d.turns[key]
	if t == nil {
		t = &turning{free: make(chan struct{}, 1)}
		d.turns[key] = t
	}
	t.count++
	d.mu.Unlock()
	leave := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if t.count--; t.count == 0 {
			delete(d.turns, key)
		}
	}
	select {
	case t.free <- struct{}{}:
		return sync.OnceFunc(func() { <-t.free; leave() }), nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// Load counts the runs of this process; what is about to start works. A task and the
// subtask that it waits for are one.
func (e *Engine) Load() (running, waiting, queued int) {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	running, waiting = e.busy()
	return running + e.desk.starting, waiting, len(e.desk.queue)
}

// busy counts the runs that have a place, and those that gave it back while they wait for
// a person. Who gives places counts under the desk's lock: two who counted first and
// took the lock then would both get the last one.
func (e *Engine) busy() (running, waiting int) {
	for _, r := range e.Runs() {
		switch {
		case r.parent.Load() != nil:
		case r.asking():
			waiting++
		default:
			running++
		}
	}
	return running, waiting
}

// place is one of those in which runs work, kept for one that is about to start. From the
// moment on in which that one works it counts itself. nil is none.
type place struct {
	engine *Engine
	filled bool // or given back; of desk.mu
}

// seat takes a place for a run that is not kept waiting, however many work: who answers a
// run's question, or starts one by himself.
func (e *Engine) seat() (*place, error) {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	if e.desk.leaving {
		return nil, ErrDraining // a drain may have found that nothing is left
	}
	return e.sit(), nil
}

// sit takes a place. The caller holds the desk's mu.
func (e *Engine) sit() *place {
	e.desk.starting++
	return &place{engine: e}
}

// reserve takes a place for a run that is about to start; nil when none is free, or others
// wait for one.
func (e *Engine) reserve() (*place, error) {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	if e.desk.draining {
		return nil, ErrDraining // since it was asked
	}
	if running, _ := e.busy(); len(e.desk.queue) > 0 || running+e.desk.starting >= e.maxRuns() {
		return nil, nil
	}
	return e.sit(), nil
}

// fill is for a place whose run counts itself from now on. The caller holds the desk's mu.
func (p *place) fill() {
	if p != nil && !p.filled {
		p.filled = true
		p.engine.desk.starting--
	}
}

// give gives a place back in which no run works.
func (p *place) give() {
	if p == nil {
		return
	}
	p.engine.desk.mu.Lock()
	p.fill()
	p.engine.desk.mu.Unlock()
	p.engine.dispatch()
}

// dispatch starts queued runs while there are places. It is called whenever one may have
// become free, and does not wait.
func (e *Engine) dispatch() {
	d := &e.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	running, _ := e.busy()
	for len(d.queue) > 0 && !d.draining && !d.shut && running+d.starting < e.maxRuns() {
		next := d.queue[0]
		d.queue = d.queue[1:]
		at := e.sit()
		d.wait.Go(func() { e.startQueued(next, at) })
	}
}

// join puts a run at the end of the queue, or back to its beginning.
func (e *Engine) join(p *pending, first bool) {
	e.desk.mu.Lock()
	if first {
		e.desk.queue = slices.Insert(e.desk.queue, 0, p)
	} else {
		e.desk.queue = append(e.desk.queue, p)
	}
	e.desk.mu.Unlock()
	e.dispatch()
}

// quit takes a task's run out of the queue; nil when it has none there.
func (e *Engine) quit(key string) *pending {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	i := slices.IndexFunc(e.desk.queue, func(p *pending) bool { return p.key == key })
	if i < 0 {
		return nil
	}
	p := e.desk.queue[i]
	e.desk.queue = slices.Delete(e.desk.queue, i, i+1)
	return p
}

// position is a run's place in the queue, from 1; 0 = it is not there.
func (e *Engine) position(run string) int {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	return 1 + slices.IndexFunc(e.desk.queue, func(p *pending) bool { return p.run == run })
}

// full reports whether the queue takes no more.
func (e *Engine) full() bool {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	return len(e.desk.queue) >= e.maxQueue()
}

// admits is nil while new runs are started.
func (e *Engine) admits() error {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case e.Draining():
		return ErrDraining
	}
	return nil
}

// working is the run of this process that works on a task, or has just ended and may be
// followed by another one: who took the task in between would have it under that one's
// hands. nil when there is none.
func (e *Engine) working(key string) *Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, of := range []map[string]*Run{e.runs, e.ending} {
		for _, r := range of {
			if keyOf(r.task.Ref) == key {
				return r
			}
		}
	}
	return nil
}
