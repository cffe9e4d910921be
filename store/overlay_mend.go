package store

import (
	"context"
	"strings"
)

// A deletion of an own task is marked, and then its folder moves; back out of the trash it
// is the other way round. A kill between the two leaves a mark that is not true. Where the
// task lies is what counts, so nothing that asks for a task sees that; but who follows the
// events of all tasks was told that it went, and would never be told that it is there.
//
// So the next one who holds the overlay tells it. To move first and to mark then was the
// alternative: then the kill makes a deletion that nobody is ever told of, and finding it
// means comparing the whole trash with the overlay each time.

// untrue are the marks that say of own tasks that they are in the trash, while they lie
// where they were. epoch is that of who holds the overlay now.
func (s *Store) untrue(m Marks, epoch uint64) (list []mark) {
	for key, e := range m {
		if key[0] != OwnSource || e.Deleted == nil || !*e.Deleted || e.purged() {
			continue
		}
		id, _, _ := strings.Cut(key[1], "~") // ids hold none
		if exists(s.TrashDir(), key[1]) || !HasJournal(s.OwnRef(id).Log) {
			continue
		}
		// Of the owner just before it never went. One who deleted it and lived was followed by
		// others: so it came back out of the trash, which also undoes the deletion.
		typ := keptHere
		if e.epoch+1 < epoch {
			typ = trashed
		}
		list = append(list, mark{Type: typ, Source: OwnSource, ID: id, Name: key[1], Deleted: ptr(false)})
	}
	return list
}

// mend tells what became of deletions and returns that were killed half way, with the
// overlay held.
func (s *Store) mend(ctx context.Context, m Marks, epoch uint64, keep func(...mark) error) error {
	list := s.untrue(m, epoch)
	if len(list) == 0 {
		return nil
	}
	for i := range list {
		list[i].Head = HeadOf(ctx, s.OwnRef(list[i].ID).Log)
	}
	if err := keep(list...); err != nil {
		return err
	}
	for _, e := range list {
		m.apply(e, s.opt.Now())
	}
	return nil
}

// mended does the same for a server that looks after owners that were killed.
func (s *Store) mended(ctx context.Context) error {
	marks, err := s.Marks(ctx)
	if err != nil || len(s.untrue(marks, 0)) == 0 {
		return err
	}
	return s.shelve(ctx, func(Marks, func(...mark) error) error { return nil })
}
