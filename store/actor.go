package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// A client repeats a request that a kill cut off, and the request must not do its work twice. So its commits carry its
// name, in the same write: of two writes, a note and a commit, a kill could leave one without the other.

type actorKey struct{}

// Acting names the author of commits made under a context, in the place of the run. "" changes nothing.
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

// CommitsBy are the commits of a task made under a name (see Acting) since a time in Unix milliseconds, oldest first. The
// end of a restore that the last of them began follows, if another process has finished it.
func (s *Store) CommitsBy(ctx context.Context, ref Ref, name string, since int64) ([]journal.Commit, error) {
	log, err := s.Follow(s.Latest(ref))
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
