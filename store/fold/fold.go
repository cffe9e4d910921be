// Package fold computes a task's state from its journal.
//
// A reader starts from the journal's snapshot when there is a usable one, and keeps only the newest messages in
// memory. Damaged commits, and commits that cannot be folded, are recorded in the state's problems; they are not
// errors.
package fold

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// MessageMemory bounds the bytes of messages that a reader keeps in memory. Older messages are read again on demand.
const MessageMemory = 8 << 20

// All folds a whole journal into memory, for its owner.
func All(ctx context.Context, log journal.Reader) (*task.State, error) {
	s := task.New(FromLog(ctx, log))
	return s, Into(ctx, s, log, 1)
}

// Lean is the state of a journal for a reader: it starts from the snapshot if there is one.
func Lean(ctx context.Context, log journal.Reader) (*task.State, error) {
	if s, ok := restore(ctx, log); ok {
		return s, Into(ctx, s, log, s.Seq+1)
	}
	return EveryCommit(ctx, log)
}

// EveryCommit is Lean without the snapshot: it reads every commit, so it finds damage that a snapshot would hide.
func EveryCommit(ctx context.Context, log journal.Reader) (*task.State, error) {
	s := task.New(nil).Lean(FromLog(ctx, log), MessageMemory)
	return s, Into(ctx, s, log, 1)
}

// Runs gives the runs, the questions and the inputs of a journal: see task.NewRuns.
func Runs(ctx context.Context, log journal.Reader) (*task.State, error) {
	src := FromLog(ctx, log)
	if snap, err := log.Snapshot(ctx); err == nil {
		if s, err := task.RestoreRuns(snap.Data, src); err == nil && s.Seq == snap.Seq {
			return s, Into(ctx, s, log, s.Seq+1)
		}
	}
	s := task.NewRuns(src)
	return s, Into(ctx, s, log, 1)
}

// To gives the state of a journal after commit `to`, or at the journal's head when that comes first. It is Lean and
// meant to be folded further.
func To(ctx context.Context, log journal.Reader, to uint64) (*task.State, error) {
	s, ok := restore(ctx, log)
	if !ok || s.Seq > to {
		s = task.New(nil).Lean(FromLog(ctx, log), MessageMemory)
	}
	if s.Seq >= to {
		return s, nil
	}
	return s, between(ctx, s, log, s.Seq+1, to)
}

// Into folds the commits of a journal from a sequence on into a state.
func Into(ctx context.Context, s *task.State, log journal.Reader, from uint64) error {
	return between(ctx, s, log, from, math.MaxUint64)
}

func between(ctx context.Context, s *task.State, log journal.Reader, from, to uint64) error {
	for c, err := range log.Read(ctx, from) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			if lost.Seq > to {
				return nil
			}
			s.Lost(lost.Damage)
			continue
		case err != nil:
			return fmt.Errorf("read journal: %w", err)
		case c.Seq > to:
			return nil
		}
		_ = s.Apply(c) // the state records a commit that it cannot fold
	}
	return nil
}

// restore starts from the journal's snapshot. The snapshot is derived: an unusable one costs time and is no error.
func restore(ctx context.Context, log journal.Reader) (*task.State, bool) {
	snap, err := log.Snapshot(ctx)
	if err != nil {
		return nil, false
	}
	s, err := task.Restore(snap.Data, FromLog(ctx, log), MessageMemory)
	if err != nil || s.Seq != snap.Seq {
		return nil, false
	}
	return s, true
}
