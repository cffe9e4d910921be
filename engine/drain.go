package engine

import (
	"context"
	"maps"
	"slices"
	"time"
)

// drainLook is how often a drain looks for runs that have begun to wait for a person.
const drainLook = 50 * time.Millisecond

// Drain starts nothing more, and takes no answer for a run that let its task go: that one
// stays as it is, waiting, for the next process. Runs that wait for a person are let go, saved, as waiting;
// queued ones stay queued for the next process; the others are finished until ctx ends and
// are interrupted then: they go on with `resume`, or with Recover where that is asked for.
// Drain returns when no run is left, or when Admit was called.
func (e *Engine) Drain(ctx context.Context) error {
	e.desk.mu.Lock()
	e.desk.draining, e.desk.leaving = true, true
	e.desk.mu.Unlock()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	over, hurry := ctx.Done(), false
	for e.Draining() {
		left, more := e.unfinished()
		if len(left) == 0 && !more {
			return nil
		}
		for _, r := range left {
			if r.asking() {
				r.Release()
			}
			if hurry && r.parent.Load() == nil {
				r.interrupt() // also one that began to work in between
			}
		}
		select {
		case <-look.C:
		case <-over:
			over, hurry = nil, true
		}
	}
	return nil
}

// unfinished are the runs that work, and whether one is about to start, or what follows
// one is not known yet: all at one moment. Looked at one after the other, a run that begins
// in between would be seen nowhere.
func (e *Engine) unfinished() (left []*Run, more bool) {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.runs)), e.desk.starting > 0 || len(e.ending) > 0
}

// Draining reports whether Drain was called, and Admit not since.
func (e *Engine) Draining() bool {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	return e.desk.draining
}

// Admit takes a drain back: runs are started again, the queued ones first.
func (e *Engine) Admit() {
	e.desk.mu.Lock()
	e.desk.draining, e.desk.leaving = false, false
	e.desk.mu.Unlock()
	e.dispatch()
}

// shutDesk ends what the desk does by itself, and waits for it.
func (e *Engine) shutDesk() {
	e.desk.mu.Lock()
	e.desk.shut = true
	e.desk.mu.Unlock()
	e.desk.wait.Wait()
}
