package store

import (
	"context"

	"github.com/roost-dev/roost/task"
)

// The engine restores files of the workspace: this package knows no files but its own. Here is what the engine needs to
// move histories and files in one commit.

// PlanRewind gives the events that a rewind commits, and says what they take.
func PlanRewind(s *task.State, o RewindOptions, now int64) (Rewind, []task.Event, error) {
	return planRewind(s, o, now)
}

// OwnLean takes a task over like Own, and reads no more of it than it must.
func (s *Store) OwnLean(ctx context.Context, ref Ref) (*Owned, error) { return s.ownLean(ctx, ref) }
