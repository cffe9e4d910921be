package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// A request that was cut off by a kill comes again, and must not do its work twice. So
// what it commits carries its name, in the same write: a note beside the log could be
// left without the deed, or the deed without the note.

type actorKey struct{}

// Acting names who commits under a context, in the place of the run. "" changes nothing.
func Acting(ctx context.Context, name string) context.Context {
	if name == "" {
		return ctx
	}
	return context.WithValue(ctx, actorKey{}, name)
}

func actor(ctx context.Context, run string) string {
	if name, ok := ctx.Value(actorKey{}).(string); ok {
		return name
	}
	return run
}

// CommitsBy are the commits of a task that were made under a name (see Acting) from a
// time on, in Unix milliseconds, the oldest first; and behind them the end of a restore
// that one of them began, if another process has finished it.
func (s *Store) CommitsBy(ctx context.Context, ref Ref, name string, since int64) ([]journal.Commit, error) {
	if next, ok := s.Continued(ref); ok {
		ref = next
	}
	log, err := s.Follow(ref)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var own []journal.Commit
	ends := map[uint64]journal.Commit{} // of restores, by the commit that began them
	for c, err := range log.ReadBackward(ctx, 0) {
		var lost *journal.DamageError
		if errors.As(err, &lost) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("task %s: read journal: %w", ref.ID, err)
		}
		if c.At < since {
			break
		}
		if c.By == name {
			own = append(own, c)
		} else if e, ok := lastEvent(c).(task.RestoreEnded); ok {
			ends[e.Begun] = c
		}
	}
	slices.Reverse(own)
	if n := len(own); n > 0 {
		if end, ok := ends[own[n-1].Seq]; ok {
			own = append(own, end)
		}
	}
	return own, nil
}

func lastEvent(c journal.Commit) task.Event {
	if len(c.Events) == 0 {
		return nil
	}
	e, err := task.Decode(c.Events[len(c.Events)-1])
	if err != nil {
		return nil
	}
	return e
}

// RewoundBy says what a rewind took that was done already, in commits that CommitsBy
// gave: the same as Rewind said then. done is false when it was not done.
func (s *Store) RewoundBy(ctx context.Context, ref Ref, o RewindOptions, commits []journal.Commit) (r Rewind, done bool, err error) {
	seq := uint64(0)
	for _, c := range commits {
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil && e.EventType() == (task.Rewound{}).EventType() {
				seq = c.Seq
			}
		}
	}
	if seq == 0 {
		return Rewind{}, false, nil
	}
	given := ref.ID
	if next, ok := s.Continued(ref); ok {
		ref = next
	}
	log, err := s.Follow(ref)
	if err != nil {
		return Rewind{}, false, err
	}
	state, err := FoldTo(ctx, log, commits[0].Seq-1)
	if err == nil {
		r, _, err = planRewind(state, o, s.opt.Now())
	}
	if r.ID, r.Branch = ref.ID, BranchName(seq); ref.ID != given {
		r.Forked = given
	}
	return r, true, errors.Join(err, log.Close())
}

// ForkOf is what Fork said of a fork that was made, found by its id; ErrNotFound when
// there is none.
func (s *Store) ForkOf(ctx context.Context, id string) (ForkResult, error) {
	ref := s.OwnRef(id)
	if !HasJournal(ref.Log) {
		return ForkResult{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return ForkResult{}, err
	}
	out := ForkResult{ID: id, Path: ref.Dir, Messages: MessageCounts{UI: len(v.State.UI()), API: len(v.State.API())}}
	if f := v.State.Fork; f != nil {
		out.From = ForkedFrom{ID: f.From, Source: f.Source, At: f.At, Branch: HeadBranch}
		if f.Branch != 0 {
			out.From.Branch = BranchName(f.Branch)
		}
		if f.At > 0 && f.At <= len(v.State.UI()) {
			last := rowAt(v.State, f.At-1)
			out.Last, out.Messages.UI = &last, f.At
		}
	}
	return out, v.Close()
}
