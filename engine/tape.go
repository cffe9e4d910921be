package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Tape reads a task's durable events off its log, whichever process writes it: the
// same bytes that a run's own stream shows. It is for one goroutine.
type Tape struct {
	ref   store.Ref
	log   journal.Reader
	state *task.State // behind the commit that was read last: what composed messages are read off
	seq   uint64
}

// OpenTape opens a task's log behind a commit, or at its head when that comes first.
// Nothing is waited for and nothing is written. journal.ErrNotFound: there is no log,
// because no program with a journal has changed the task yet.
func OpenTape(ctx context.Context, s *store.Store, ref store.Ref, after uint64) (*Tape, error) {
	log, err := s.Follow(ref)
	if err != nil {
		return nil, err
	}
	state, err := store.FoldTo(ctx, log, after)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("task %s: %w", ref.ID, err), log.Close())
	}
	return &Tape{ref: ref, log: log, state: state, seq: state.Seq}, nil
}

// Seq is the commit that was read last.
func (t *Tape) Seq() uint64 { return t.seq }

// Close lets go of the log.
func (t *Tape) Close() error { return t.log.Close() }

// Read yields the events of each commit up to the head at the time of the call. A
// commit that is damaged has none.
func (t *Tape) Read(ctx context.Context) iter.Seq2[[]Event, error] {
	return t.events(t.log.Read(ctx, t.seq+1))
}

// Follow yields like Read and then waits for what comes, until ctx ends or the log is
// gone (journal.ErrNotFound).
func (t *Tape) Follow(ctx context.Context) iter.Seq2[[]Event, error] {
	return t.events(t.log.Follow(ctx, t.seq+1))
}

func (t *Tape) events(commits iter.Seq2[journal.Commit, error]) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		for c, err := range commits {
			var lost *journal.DamageError
			switch {
			case errors.As(err, &lost):
				t.state.Lost(lost.Damage)
				t.seq = max(t.seq, lost.Seq)
				continue
			case err != nil:
				yield(nil, err)
				return
			}
			t.seq = c.Seq
			if !yield(t.render(c), nil) {
				return
			}
		}
	}
}

// render folds a commit and gives its events. One that cannot be folded is shown as
// far as it spells out what happened.
func (t *Tape) render(c journal.Commit) []Event {
	_ = t.state.Apply(c)
	events := make([]task.Event, len(c.Events))
	for i, raw := range c.Events {
		if e, err := task.Decode(raw); err == nil {
			events[i] = e
		}
	}
	return render(t.ref.ID, c, noteOf(t.state, events))
}

// Mark is a place in a task's events: behind event Index of commit Seq.
type Mark struct {
	Epoch, Seq uint64
	Index      int
}

// String is the mark as events have it as their ID.
func (m Mark) String() string { return fmt.Sprintf("%d.%d-%d", m.Epoch, m.Seq, m.Index) }

// Newest is the place behind the newest event of a task's log; ok is false while it
// holds none.
func Newest(ctx context.Context, s *store.Store, ref store.Ref) (m Mark, ok bool, err error) {
	log, err := s.Follow(ref)
	if errors.Is(err, journal.ErrNotFound) {
		return Mark{}, false, nil
	}
	if err != nil {
		return Mark{}, false, err
	}
	defer log.Close()
	for c, err := range log.ReadBackward(ctx, 0) {
		var lost *journal.DamageError
		if errors.As(err, &lost) {
			continue
		}
		if err != nil {
			return Mark{}, false, fmt.Errorf("task %s: %w", ref.ID, err)
		}
		return Mark{Epoch: c.Epoch, Seq: c.Seq, Index: len(c.Events) - 1}, true, nil
	}
	return Mark{}, false, nil
}

// Knows reports whether a task's log has the event that a mark stands behind. A
// commit that was damaged since counts as known: what came behind it is still there.
func Knows(ctx context.Context, s *store.Store, ref store.Ref, m Mark) (bool, error) {
	log, err := s.Follow(ref)
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer log.Close()
	for c, err := range log.Read(ctx, m.Seq) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("task %s: %w", ref.ID, err)
		}
		return c.Seq == m.Seq && c.Epoch == m.Epoch && m.Index < len(c.Events), nil
	}
	return false, nil
}
