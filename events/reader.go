package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// reader reads a task's durable events off its journal, whichever process writes it. It is for one goroutine.
type reader struct {
	store *store.Store
	ref   store.Ref
	log   journal.Reader
	seq   uint64         // the commit that was read last
	state *task.State    // right behind commit seq: composed messages are read off it; nil until a commit needs it
	under journal.Reader // what state loads its messages from
	run   string         // the newest run at commit seq, while state is nil
	owner func() *Owner
}

// openReader opens a task's journal behind a commit, or at its head when that comes first. owner gives the run of this
// process that owns the task, if one does. openReader neither waits nor writes. journal.ErrNotFound: the task has no
// journal, because no program with a journal has changed it yet.
func openReader(ctx context.Context, s *store.Store, ref store.Ref, after uint64, owner func() *Owner) (*reader, error) {
	log, err := s.Follow(ref)
	if err != nil {
		return nil, err
	}
	head, err := log.Head(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("task %s: %w", ref.ID, err), log.Close())
	}
	return &reader{store: s, ref: ref, log: log, seq: min(after, head), owner: owner}, nil
}

func (r *reader) close() error { return errors.Join(r.dropState(), r.log.Close()) }

func (r *reader) dropState() error {
	if r.state == nil {
		return nil
	}
	r.state = nil
	return r.under.Close()
}

// events yields the events of each commit behind the reader's position. A damaged commit has none.
func (r *reader) events(commits iter.Seq2[journal.Commit, error]) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		for c, err := range commits {
			var lost *journal.DamageError
			switch {
			case errors.As(err, &lost):
				if r.state != nil {
					r.state.Lost(lost.Damage)
				}
				r.seq = max(r.seq, lost.Seq)
				continue
			case err != nil:
				yield(nil, err)
				return
			}
			events, err := r.render(c)
			if err != nil {
				yield(nil, err)
				return
			}
			r.seq = c.Seq
			if !yield(events, nil) {
				return
			}
		}
	}
}

// render gives a commit's events. A commit that cannot be folded is shown as its line has it.
func (r *reader) render(c journal.Commit) ([]Event, error) {
	if known, ok := r.ownerContext(c); ok {
		r.run = known.Run
		return Render(r.ref.ID, c, known), r.dropState()
	}
	if err := r.fold(c.Seq - 1); err != nil {
		return nil, err
	}
	_ = r.state.Apply(c)
	events := make([]task.Event, len(c.Events))
	for i, raw := range c.Events {
		if e, err := task.Decode(raw); err == nil {
			events[i] = e
		}
	}
	return Render(r.ref.ID, c, ContextOf(r.state, events)), nil
}

// ownerContext is the context of a commit that the task's owner in this process made. The owner does not note the
// commits that the store makes by itself, for example for a queued input; those have no messages, and start no run.
func (r *reader) ownerContext(c journal.Commit) (Context, bool) {
	if r.owner == nil {
		return Context{}, false
	}
	owner := r.owner()
	if known, ok := owner.context(c.Seq); ok {
		return known, true
	}
	if owner == nil || r.run == "" || r.state != nil {
		return Context{}, false
	}
	for _, raw := range c.Events {
		if typ, _ := esjson.GetString(raw, "type"); strings.HasPrefix(typ, "message.") || strings.HasPrefix(typ, "run.") {
			return Context{}, false
		}
	}
	return Context{Run: r.run}, true
}

// fold makes the state right behind a commit, unless it is there. It reads the journal through a reader of its own,
// because the caller is reading this one.
func (r *reader) fold(seq uint64) error {
	if r.state != nil {
		return nil
	}
	log, err := r.store.Follow(r.ref)
	if err != nil {
		return err
	}
	state, err := fold.To(context.Background(), log, seq)
	if err != nil {
		return errors.Join(fmt.Errorf("task %s: %w", r.ref.ID, err), log.Close())
	}
	r.state, r.under = state, log
	return nil
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
	r, err := openReader(ctx, s, ref, seq, nil)
	if err != nil {
		return after, err
	}
	for events, err := range r.events(r.log.Read(ctx, r.seq+1)) {
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
