package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/task"
)

// Deeds tells what can be taken back and done again of one task, also of one in the
// trash. It changes nothing.
func (s *Store) Deeds(ctx context.Context, given string) (Deeds, error) {
	ref, err := s.Find(ctx, given)
	var gone *TrashedError
	if errors.As(err, &gone) {
		t, err := s.inTrash(ctx, gone.Name)
		if err != nil {
			return Deeds{}, err
		}
		return s.deedsOfTrashed(ctx, t)
	} else if err != nil {
		return Deeds{}, err
	}
	d, err := s.deedsOf(ctx, ref)
	if err != nil || strings.Contains(given, ":") {
		return d, err
	}
	return s.newestOfCopies(ctx, d)
}

// newestOfCopies prefers a deleted copy of a task in another source, when its deletion is the
// newest deed: who deletes one of two copies and says undo means that one.
func (s *Store) newestOfCopies(ctx context.Context, d Deeds) (Deeds, error) {
	t, err := s.inTrash(ctx, d.ref.ID)
	if err != nil || t.ID != d.ref.ID || t.Source == d.ref.Source {
		return d, nil //nolint:nilerr // there is none, or it is not clear which
	}
	copied, err := s.deedsOfTrashed(ctx, t)
	if err != nil {
		return d, err
	}
	last, ok := copied.done.top()
	if own, some := d.done.top(); !ok || some && own.At >= last.At {
		return d, nil
	}
	return copied, nil
}

// deedsOfTrashed is Deeds of a deleted task.
func (s *Store) deedsOfTrashed(ctx context.Context, t trashedMark) (Deeds, error) {
	d := Deeds{Task: t.Summary, Trashed: true, ref: t.ref, Name: t.Name}
	if !t.Hidden {
		d.bin = t.Name
	}
	shelf, err := s.shelfDeeds(ctx)
	if err != nil {
		return d, err
	}
	return d, s.tell(ctx, &d, shelf)
}

// deedsOf is Deeds of a task that lies in its place, in one reading.
func (s *Store) deedsOf(ctx context.Context, ref Ref) (Deeds, error) {
	d := Deeds{ref: ref, Name: ref.ID}
	if !ref.Own {
		d.Name = ref.Source + ":" + ref.ID
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return d, err
	}
	d.Task = v.Summary
	if err := v.Close(); err != nil {
		return d, err
	}
	shelf, err := s.shelfDeeds(ctx)
	if err != nil {
		return d, err
	}
	if v.Log == nil || len(v.Pending) > 0 { // what another program did is no deed until it is taken in
		return d, s.tell(ctx, &d, shelf)
	}
	d.move = v.State.Moved
	d.fill(v.State.Deeds, shelf[[2]string{ref.Source, ref.ID}].of(ref, ""))
	return d, nil
}

// tell fills in the deeds of one task.
func (s *Store) tell(ctx context.Context, d *Deeds, shelf map[[2]string]*shelved) error {
	var own task.Deeds
	state, err := FoldJournal(ctx, d.ref.Log)
	if err != nil {
		return err
	}
	if d.move = 0; state != nil {
		own, d.move = state.Deeds, state.Moved
	}
	d.fill(own, shelf[[2]string{d.ref.Source, d.ref.ID}].of(d.ref, d.bin))
	return nil
}

func (d *Deeds) fill(own, shelf task.Deeds) {
	d.done, d.redo = ordered(own, shelf)
	d.redo = slices.DeleteFunc(d.redo, func(e keptDeed) bool { return e.Move && d.move > e.Then })
	d.Undo, d.Redo = d.done.shown(d.move), d.redo.shown(d.move)
}

// AllDeeds lists the tasks of which something can be taken back or done again, that
// with the newest deed first. One that cannot be read is left out.
func (s *Store) AllDeeds(ctx context.Context, limit int) ([]Deeds, error) {
	refs, _, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	bin, err := s.allTrash(ctx)
	if err != nil {
		return nil, err
	}
	shelf, err := s.shelfDeeds(ctx)
	if err != nil {
		return nil, err
	}
	var all []Deeds
	for _, t := range bin {
		d := Deeds{Task: t.Summary, Name: t.Name, Trashed: true, ref: t.ref}
		if !t.Hidden {
			d.bin = t.Name
		}
		all = append(all, d)
	}
	for _, ref := range refs {
		if ref.Own || shelf[[2]string{ref.Source, ref.ID}] != nil || HasJournal(ref.Log) {
			d := Deeds{Name: ref.ID, ref: ref}
			if !ref.Own {
				d.Name = ref.Source + ":" + ref.ID
			}
			all = append(all, d)
		}
	}
	next := make(chan *Deeds)
	var readers sync.WaitGroup
	for range scanners {
		readers.Go(func() {
			for d := range next {
				if s.tell(ctx, d, shelf) != nil {
					d.done, d.redo = nil, nil
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
	all = slices.DeleteFunc(all, func(d Deeds) bool { return len(d.done)+len(d.redo) == 0 })
	slices.SortStableFunc(all, func(a, b Deeds) int { return int(min(max(b.at()-a.at(), -1), 1)) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	for i := range all {
		if d := &all[i]; !d.Trashed {
			if d.Task, err = s.row(ctx, d.ref); err != nil {
				d.Task = s.SummaryOf(ctx, d.ref)
			}
		}
	}
	return all, nil
}

// at is the time of the newest deed.
func (d Deeds) at() (at int64) {
	for _, e := range slices.Concat(d.done, d.redo) {
		at = max(at, e.At)
	}
	return at
}
