package store

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// CreateOnce makes a task in Roost's own root, or owns the one that an earlier call made under the same id; made reports
// which. When a kill cuts off the first call, the second one finishes its work.
func (s *Store) CreateOnce(ctx context.Context, created task.Created, events ...task.Event) (owned *Owned, made bool, err error) {
	if err := s.Prepare(); err != nil {
		return nil, false, err
	}
	ref := s.OwnRef(created.Task)
	if err := CheckID(ref); err != nil {
		return nil, false, err
	}
	if linked(ref.Dir) {
		return nil, false, fmt.Errorf("task %s: %s is a symbolic link: %w", ref.ID, ref.Dir, ErrLinked)
	}
	if roofmt.IsFolder(ref.Dir) && !HasJournal(ref.Log) { // another program put it there
		owned, err := s.Own(ctx, ref)
		return owned, false, err
	}
	t, err := s.take(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	if !empty(t.state) {
		if err := t.Close(ctx); err != nil {
			return nil, false, err
		}
		owned, err := s.Own(ctx, ref)
		return owned, false, err
	}
	if t, err = t.begin(ctx, created, events); err != nil {
		return nil, false, err
	}
	return &Owned{Task: t}, true, nil
}

// FindChild finds a child of a task by its whole id, in Roost's own root or in the parent's storage. Otherwise the error
// is ErrNotFound.
func (s *Store) FindChild(ctx context.Context, parent Ref, id string) (Ref, error) {
	if !api.ValidTaskID(id) {
		return Ref{}, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if own := s.OwnRef(id); exists(own.Dir, "") {
		return own, nil
	}
	all, _, err := s.refs(ctx)
	if err != nil {
		return Ref{}, err
	}
	for _, r := range all {
		if r.ID == id && r.Source == parent.Source {
			return r, nil
		}
	}
	if t, err := s.FindDeleted(ctx, id); err == nil {
		return Ref{}, &TrashedError{Given: id, Name: t.Name}
	}
	return Ref{}, fmt.Errorf("%w: %q", ErrNotFound, id)
}
