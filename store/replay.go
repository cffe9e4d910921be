package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// FoldTo gives the state that a followed log had behind commit `to`, or at its head
// when that comes first. It keeps the newest messages in memory only, and is meant to
// be folded on: commits that were damaged are noted in it.
func FoldTo(ctx context.Context, log journal.Reader, to uint64) (*task.State, error) {
	src := ground{ctx: context.WithoutCancel(ctx), log: log}
	s, ok := restore(ctx, log, src)
	if !ok || s.Seq > to {
		s = task.New(nil).Lean(src, room)
	}
	if s.Seq >= to {
		return s, nil
	}
	for c, err := range log.Read(ctx, s.Seq+1) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			if lost.Seq > to {
				return s, nil
			}
			s.Lost(lost.Damage)
			continue
		case err != nil:
			return nil, fmt.Errorf("read journal: %w", err)
		case c.Seq > to:
			return s, nil
		}
		_ = s.Apply(c) // what cannot be folded is noted in the state's problems
	}
	return s, nil
}
