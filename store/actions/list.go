package actions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/task"
)

// taskActions are the actions of a task, with what undo needs to perform them.
type taskActions struct {
	api.TaskActions
	ref    store.Ref
	folder string // in the trash
	done   actionList
	redo   actionList
	moved  uint64 // the newest commit that continued the histories
}

// qualifiedName names the task so that it fits no other.
func (t *taskActions) qualifiedName() string {
	switch {
	case t.folder != "":
		return store.OwnSource + ":" + t.folder
	case t.ref.Own:
		return store.OwnSource + ":" + t.ref.ID
	}
	return t.Name
}

// Find lists what can be undone and redone of one task, also of one in the trash. It changes nothing.
func Find(ctx context.Context, s *store.Store, given string) (api.TaskActions, error) {
	t, err := find(ctx, s, given)
	return t.TaskActions, err
}

func find(ctx context.Context, s *store.Store, given string) (taskActions, error) {
	ref, err := s.Find(ctx, given)
	var trashed *store.TrashedError
	if errors.As(err, &trashed) {
		d, err := s.FindDeleted(ctx, trashed.Name)
		if err != nil {
			return taskActions{}, err
		}
		return ofDeleted(ctx, s, d)
	} else if err != nil {
		return taskActions{}, err
	}
	t, err := ofTask(ctx, s, ref)
	if err != nil || strings.Contains(given, ":") {
		return t, err
	}
	return preferDeletedCopy(ctx, s, t)
}

// preferDeletedCopy returns a deleted copy of a task in another source when its deletion is the newest action: a user
// who deletes one of two copies and then undoes means that one.
func preferDeletedCopy(ctx context.Context, s *store.Store, t taskActions) (taskActions, error) {
	d, err := s.FindDeleted(ctx, t.ref.ID)
	if err != nil || d.Ref.ID != t.ref.ID || d.Ref.Source == t.ref.Source {
		return t, nil //nolint:nilerr // there is none, or the name fits several
	}
	copied, err := ofDeleted(ctx, s, d)
	if err != nil {
		return t, err
	}
	last, ok := copied.done.newest()
	if own, some := t.done.newest(); !ok || some && own.At >= last.At {
		return t, nil
	}
	return copied, nil
}

// newDeleted begins the actions of a deleted task.
func newDeleted(d store.DeletedTask) taskActions {
	t := taskActions{TaskActions: api.TaskActions{Trashed: true, Name: d.Name}, ref: d.Ref}
	if !d.Hidden {
		t.folder = d.Name
	}
	return t
}

// newPresent begins the actions of a task in its place.
func newPresent(ref store.Ref) taskActions {
	t := taskActions{TaskActions: api.TaskActions{Name: ref.ID}, ref: ref}
	if !ref.Own {
		t.Name = ref.Source + ":" + ref.ID
	}
	return t
}

func ofDeleted(ctx context.Context, s *store.Store, d store.DeletedTask) (taskActions, error) {
	t := newDeleted(d)
	table, err := s.Overlay(ctx)
	if err != nil {
		return t, err
	}
	t.Task = s.SummaryOfDeleted(ctx, d, table)
	all, err := readOverlay(ctx, s)
	if err != nil {
		return t, err
	}
	return t, t.readJournal(ctx, all)
}

// ofTask are the actions of a task in its place. It reads the task once.
func ofTask(ctx context.Context, s *store.Store, ref store.Ref) (taskActions, error) {
	t := newPresent(ref)
	v, err := s.Read(ctx, ref)
	if err != nil {
		return t, err
	}
	t.Task = v.Summary
	if err := v.Close(); err != nil {
		return t, err
	}
	all, err := readOverlay(ctx, s)
	if err != nil {
		return t, err
	}
	if v.Log == nil || len(v.Pending) > 0 { // a change of another program is no action until it is taken in
		return t, t.readJournal(ctx, all)
	}
	t.fill(v.State, all)
	return t, nil
}

// readJournal fills in the actions of one task from its journal.
func (t *taskActions) readJournal(ctx context.Context, all map[overlay.Key]*overlayActions) error {
	state, err := store.FoldJournal(ctx, t.ref.Log)
	if err != nil {
		return err
	}
	t.fill(state, all)
	return nil
}

// fill fills in the actions. state is nil when the task has no journal.
func (t *taskActions) fill(state *task.State, all map[overlay.Key]*overlayActions) {
	var own task.Actions
	if t.moved = 0; state != nil {
		own, t.moved = state.Actions, state.Moved
	}
	key := overlay.Key{Source: t.ref.Source, ID: t.ref.ID}
	t.done, t.redo = merge(own, all[key].of(t.ref, t.folder))
	t.redo = slices.DeleteFunc(t.redo, func(a loggedAction) bool { return a.Move && t.moved > a.Then })
	t.Undo, t.Redo = t.done.describe(t.moved), t.redo.describe(t.moved)
}

// maxReaders bounds how many tasks FindAll reads at the same time.
const maxReaders = 2

// FindAll lists the tasks of which something can be undone or redone, the one with the newest action first. It leaves
// out tasks that cannot be read.
func FindAll(ctx context.Context, s *store.Store, limit int) ([]api.TaskActions, error) {
	refs, err := s.Refs(ctx)
	if err != nil {
		return nil, err
	}
	deleted, err := s.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	table, err := s.Overlay(ctx)
	if err != nil {
		return nil, err
	}
	filed, err := readOverlay(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []taskActions
	for _, d := range deleted {
		t := newDeleted(d)
		t.Task = s.SummaryOfDeleted(ctx, d, table)
		all = append(all, t)
	}
	for _, ref := range refs {
		if ref.Own || filed[overlay.Key{Source: ref.Source, ID: ref.ID}] != nil || store.HasJournal(ref.Log) {
			all = append(all, newPresent(ref))
		}
	}
	next := make(chan *taskActions)
	var readers sync.WaitGroup
	for range maxReaders {
		readers.Go(func() {
			for t := range next {
				if t.readJournal(ctx, filed) != nil {
					t.done, t.redo = nil, nil
				}
			}
		})
	}
	for i := range all {
		next <- &all[i]
	}
	close(next)
	readers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(t taskActions) bool { return len(t.done)+len(t.redo) == 0 })
	slices.SortStableFunc(all, func(a, b taskActions) int { return int(min(max(b.newest()-a.newest(), -1), 1)) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	for i := range all {
		if t := &all[i]; !t.Trashed {
			if t.Task, err = labels.Row(ctx, s, t.ref); err != nil {
				t.Task = s.SummaryOf(ctx, t.ref)
			}
		}
	}
	out := make([]api.TaskActions, len(all))
	for i, t := range all {
		out[i] = t.TaskActions
	}
	return out, nil
}

// newest is the time of the newest action.
func (t taskActions) newest() (at int64) {
	for _, a := range slices.Concat(t.done, t.redo) {
		at = max(at, a.At)
	}
	return at
}
