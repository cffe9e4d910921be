package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// chronicle is what a task's journal says of its runs, questions and words, of all times.
// A folded state knows the newest run and what is open; who asks for an older run, whose
// answer it was, or whether words came before, needs the whole log. Its snapshot says what
// that came to; what came since is read, and then read on from where it was left. A log
// without a snapshot is gone through once in a process. Nothing depends on it being kept.
type chronicle struct {
	mu sync.Mutex
	*task.Annals
	ref store.Ref
}

// mostChronicles bounds how many tasks' are kept.
const mostChronicles = 1024

// chronicle reads a task's up to the head of its log and lends it to f. A task without a
// journal has an empty one.
func (e *Engine) chronicle(ctx context.Context, ref store.Ref, f func(*chronicle)) error {
	key := ref.Log
	e.desk.mu.Lock()
	c := e.desk.told[key]
	if c == nil {
		if e.desk.told == nil {
			e.desk.told = map[string]*chronicle{}
		}
		for other := range e.desk.told { // any one will do
			if len(e.desk.told) < mostChronicles {
				break
			}
			delete(e.desk.told, other)
		}
		c = &chronicle{Annals: task.NewAnnals()}
		e.desk.told[key] = c
	}
	e.desk.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ref = ref
	if err := c.read(ctx, e.store); err != nil {
		return err
	}
	f(c)
	return nil
}

// read reads on. A log that does not hold the commit that was read last is another one.
func (c *chronicle) read(ctx context.Context, s *store.Store) error {
	log, err := s.Verified(c.ref)
	if errors.Is(err, journal.ErrNotFound) {
		c.Annals = task.NewAnnals()
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	if last := c.Last; last.Seq > 0 {
		same := false
		for commit, err := range log.Read(ctx, last.Seq) {
			if err == nil && !same {
				if same = commit.Seq == last.Seq && commit.Epoch == last.Epoch && commit.At == c.At; same {
					continue
				}
				break
			}
			if err := c.take(commit, err); err != nil {
				return err
			}
		}
		if same {
			return nil
		}
	}
	from := uint64(1)
	c.Annals = task.NewAnnals()
	if snap, err := log.Snapshot(ctx); err == nil {
		if known, err := task.RestoreAnnals(snap.Data); err == nil && known.Last.Seq <= snap.Seq {
			c.Annals, from = known, snap.Seq+1
		}
	}
	for commit, err := range log.Read(ctx, from) {
		if err := c.take(commit, err); err != nil {
			return err
		}
	}
	return nil
}

// take reads one commit.
func (c *chronicle) take(commit journal.Commit, err error) error {
	var lost *journal.DamageError
	if errors.As(err, &lost) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("task %s: %w", c.ref.ID, err)
	}
	c.Take(commit)
	return nil
}

// waitsFor is the question that a run waits for, with its task; "" when it does not.
func (c *chronicle) waitsFor(run *task.Chapter) string {
	if !run.Waits {
		return ""
	}
	of := run.Child
	if of == "" {
		of = c.ref.ID
	}
	return of + "." + run.Waiting
}

// info is what is told of a run.
func (c *chronicle) info(run *task.Chapter) RunInfo {
	return RunInfo{
		ID: run.ID, Ref: c.ref, Outcome: run.Outcome, Code: run.Code, Reason: run.Reason,
		Turns: run.Turns, CostMicros: run.CostMicros, CostKnown: run.CostKnown,
		Queued: run.Queued, Started: run.Started, Ended: run.Ended, Settings: run.Settings,
	}
}
