package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// What the overlay says of tasks are events of theirs that no journal of theirs holds: the
// labels of other tools' tasks, and what was deleted, put back or purged. The feed names the
// overlay like a task, by names that no source and no task can have.
const (
	shelfSource = "~"
	shelfName   = "overlay"
)

// keptHere is a mark that changes nothing: a deletion was marked, and the folder did not
// move.
const keptHere = "task.kept"

// IsOverlay reports whether a reference of LogRef is the overlay.
func IsOverlay(ref Ref) bool { return ref.Source == shelfSource }

func (s *Store) overlayRef() Ref {
	return Ref{ID: shelfName, Source: shelfSource, Dir: s.OverlayDir(), Log: s.OverlayDir()}
}

// Marked is what the overlay says of a task in one event. Nil members stay as they are.
type Marked struct {
	Type    string // task.changed, or task.deleted
	Source  string
	Task    string
	Head    uint64 // the newest commit of the task's journal then; 0 = it had none
	Title   *string
	Tags    *[]string
	Pinned  *bool
	Deleted *bool  // false: it is back, or never went
	Purged  bool   // for good
	Hidden  bool   // its folder stands where it stood, in the storage of another tool
	Name    string // what restores a deleted task
}

// MarkedCommit is one change of the overlay.
type MarkedCommit struct {
	Epoch, Seq uint64
	At         int64 // Unix milliseconds
	Events     []Marked
}

// OverlayCommits yields the changes of the overlay from a commit on, up to its head. Those
// that are damaged are passed over.
func (s *Store) OverlayCommits(ctx context.Context, from uint64) iter.Seq2[MarkedCommit, error] {
	return func(yield func(MarkedCommit, error) bool) {
		log, err := filelog.OpenReader(s.OverlayDir())
		if err != nil {
			yield(MarkedCommit{}, fmt.Errorf("open the overlay %s: %w", s.OverlayDir(), err))
			return
		}
		defer log.Close()
		for c, err := range log.Read(ctx, max(from, 1)) {
			var lost *journal.DamageError
			if errors.As(err, &lost) {
				continue
			}
			if err != nil {
				yield(MarkedCommit{}, fmt.Errorf("read the overlay: %w", err))
				return
			}
			if !yield(MarkedCommit{Epoch: c.Epoch, Seq: c.Seq, At: c.At, Events: markedOf(c)}, nil) {
				return
			}
		}
	}
}

// markedOf are a commit's events as followers get them.
func markedOf(c journal.Commit) (out []Marked) {
	for _, raw := range c.Events {
		if e, ok := readMark(raw); ok {
			if m, ok := e.marked(); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

func (m mark) marked() (Marked, bool) {
	out := Marked{Type: tagged, Source: m.Source, Task: m.ID, Head: m.Head, Name: m.Name}
	hidden := m.Source != OwnSource
	switch {
	case m.Type == tagged:
		out.Title, out.Pinned = m.Title, m.Pinned
		if m.Tags != nil {
			out.Tags = ptr(slices.Clone(*m.Tags))
		}
		return out, out.Title != nil || out.Tags != nil || out.Pinned != nil
	case m.Type == keptHere, m.Type == trashed && m.Deleted != nil && !*m.Deleted:
		out.Deleted, out.Name = ptr(false), ""
		return out, true
	case m.Type == trashed && (m.Deleted != nil || m.purged()):
		out.Type, out.Deleted, out.Purged, out.Hidden = trashed, ptr(true), m.purged(), hidden
		if hidden {
			out.Name = m.Source + ":" + m.ID
		}
		return out, true
	}
	return out, false
}

// tellingShelf tells the feed of what a change of the overlay synced: that somebody has it,
// and what came of it behind all that he did, so that a task that is told of as deleted has
// gone. Of who is killed in between a server with followers tells: see Tell.
func (s *Store) tellingShelf() func(epoch, head uint64, last bool) {
	tell := s.telling(s.overlayRef())
	begun := false
	return func(epoch, head uint64, last bool) {
		if last || !begun {
			begun = true
			tell(epoch, head, last)
		}
	}
}
