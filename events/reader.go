package events

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// reader reads a task's durable events off its journal, whichever process writes it. It is for one goroutine.
type reader struct {
	ref   store.Ref
	log   journal.Reader
	state *task.State // right behind commit seq: composed messages are read off it
	seq   uint64      // the commit that was read last
}

// openReader opens a task's journal behind a commit, or at its head when that comes first. It neither waits nor
// writes. journal.ErrNotFound: the task has no journal, because no program with a journal has changed it yet.
func openReader(ctx context.Context, s *store.Store, ref store.Ref, after uint64) (*reader, error) {
	log, err := s.Follow(ref)
	if err != nil {
		return nil, err
	}
	state, err := store.FoldTo(ctx, log, after)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("task %s: %w", ref.ID, err), log.Close())
	}
	return &reader{ref: ref, log: log, state: state, seq: state.Seq}, nil
}

func (r *reader) close() error { return r.log.Close() }

// read yields the events of each commit up to the head at the time of the call. A damaged commit has none.
func (r *reader) read(ctx context.Context) iter.Seq2[[]Event, error] {
	return r.events(r.log.Read(ctx, r.seq+1))
}

// follow yields like read and then waits for more, until ctx ends or the journal is gone (journal.ErrNotFound).
func (r *reader) follow(ctx context.Context) iter.Seq2[[]Event, error] {
	return r.events(r.log.Follow(ctx, r.seq+1))
}

func (r *reader) events(commits iter.Seq2[journal.Commit, error]) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		for c, err := range commits {
			var lost *journal.DamageError
			switch {
			case errors.As(err, &lost):
				r.state.Lost(lost.Damage)
				r.seq = max(r.seq, lost.Seq)
				continue
			case err != nil:
				yield(nil, err)
				return
			}
			r.seq = c.Seq
			if !yield(r.render(c), nil) {
				return
			}
		}
	}
}

// render folds a commit and gives its events. A commit that cannot be folded is shown as its line has it.
func (r *reader) render(c journal.Commit) []Event {
	_ = r.state.Apply(c)
	events := make([]task.Event, len(c.Events))
	for i, raw := range c.Events {
		if e, err := task.Decode(raw); err == nil {
			events[i] = e
		}
	}
	return Render(r.ref.ID, c, ContextOf(r.state, events))
}

// ReadJournal gives the durable events of a task behind a cursor that its journal has now. journal.ErrNotFound: the
// task has no journal.
func ReadJournal(ctx context.Context, s *store.Store, ref store.Ref, after Cursor, give func(Item) error) error {
	_, err := readJournal(ctx, s, ref, after, func(one Item) error {
		if !after.Before(one.Cursor) {
			return nil
		}
		return give(one)
	})
	return err
}

// readJournal gives the events of all commits of which a cursor has not all events, and the cursor behind them.
func readJournal(ctx context.Context, s *store.Store, ref store.Ref, after Cursor, give func(Item) error) (Cursor, error) {
	seq := after.Seq
	if !after.IsWhole() {
		seq-- // some events of this commit are behind the cursor
	}
	r, err := openReader(ctx, s, ref, seq)
	if err != nil {
		return after, err
	}
	for events, err := range r.read(ctx) {
		if err != nil {
			return after, errors.Join(err, r.close())
		}
		for _, one := range itemsOf(events) {
			if err := give(one); err != nil {
				return after, errors.Join(err, r.close())
			}
		}
	}
	// Damaged commits have no events.
	if head := AfterCommit(r.seq); after.Before(head) {
		after = head
	}
	return after, r.close()
}

// Newest is the cursor behind the newest event of a task's journal; ok is false while the journal has no event.
func Newest(ctx context.Context, s *store.Store, ref store.Ref) (c Cursor, ok bool, err error) {
	log, err := s.Follow(ref)
	if errors.Is(err, journal.ErrNotFound) {
		return Cursor{}, false, nil
	}
	if err != nil {
		return Cursor{}, false, err
	}
	defer log.Close()
	for c, err := range log.ReadBackward(ctx, 0) {
		var lost *journal.DamageError
		if errors.As(err, &lost) {
			continue
		}
		if err != nil {
			return Cursor{}, false, fmt.Errorf("task %s: %w", ref.ID, err)
		}
		return at(c.Epoch, c.Seq, len(c.Events)-1), true, nil
	}
	return Cursor{}, false, nil
}

// Exists reports whether a task's journal has the event that a cursor is behind. A commit that was damaged since
// counts as present: the commits behind it can still be read.
func Exists(ctx context.Context, s *store.Store, ref store.Ref, c Cursor) (bool, error) {
	if c.IsWhole() {
		newest, _, err := Newest(ctx, s, ref)
		return c.Seq <= newest.Seq, err
	}
	log, err := s.Follow(ref)
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer log.Close()
	for commit, err := range log.Read(ctx, c.Seq) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("task %s: %w", ref.ID, err)
		}
		return commit.Seq == c.Seq && commit.Epoch == c.Epoch && c.Index < len(commit.Events), nil
	}
	return false, nil
}
