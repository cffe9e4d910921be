package store

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/task"
)

// Deeds that put files of the workspace back are the engine's: this package knows no
// files but its own. What it needs to move both in one commit is here.

// ErrFiles: the deed put files back, and who asks cannot.
var ErrFiles = errors.New("files were put back with it, and are to be put back with this")

// PlanRewind gives the events that a rewind commits, and says what they take.
func PlanRewind(s *task.State, o RewindOptions, now int64) (Rewind, []task.Event, error) {
	return planRewind(s, o, now)
}

// OwnLean takes a task over like Own, and reads no more of it than it must.
func (s *Store) OwnLean(ctx context.Context, ref Ref) (*Owned, error) { return s.ownLean(ctx, ref) }

// putsBack reports whether a deed put files back.
func putsBack(d task.Deed) bool { return d.Kind == task.RestoreDeed || len(d.Files) > 0 }
