package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/task"
)

// shelved are the overlay's deeds of one task, and what its marks say up to there.
type shelved struct {
	deeds task.Deeds
	names map[uint64]string // of deletions of our own tasks: the folder in the trash
	title string
	tags  []string
	pin   bool
}

// shelfDeeds folds the overlay into deeds, by source and id.
func (s *Store) shelfDeeds(ctx context.Context) (map[[2]string]*shelved, error) {
	out := map[[2]string]*shelved{}
	log, err := filelog.OpenReader(s.OverlayDir())
	if errors.Is(err, journal.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the overlay %s: %w", s.OverlayDir(), err)
	}
	defer log.Close()
	err = eachMark(ctx, log, func(c journal.Commit, e mark) {
		key := [2]string{e.Source, e.ID}
		if out[key] == nil {
			out[key] = &shelved{names: map[uint64]string{}}
		}
		out[key].fold(e, c.Seq, c.At)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (d *shelved) fold(e mark, seq uint64, at int64) {
	switch {
	case e.Type == tagged:
		change := task.Changed{Title: e.Title, Tags: e.Tags, Pinned: e.Pinned}
		switch {
		case e.Undoes != 0:
			d.deeds.Undo(e.Undoes, seq, e.Head)
		case e.Redoes != 0:
			d.deeds.Redo(e.Redoes, seq, e.Head)
		case change.Kind() != "":
			d.deeds.Do(task.Deed{Kind: change.Kind(), Seq: seq, Head: e.Head, At: at, Before: change.Against(d.title, d.tags, d.pin), After: change})
		}
		if e.Title != nil {
			d.title = *e.Title
		}
		if e.Tags != nil {
			d.tags = *e.Tags
		}
		if e.Pinned != nil {
			d.pin = *e.Pinned
		}
	case e.Type != trashed || e.Deleted == nil:
	case !*e.Deleted:
		if i := d.deletion(d.deeds.Done, e.Name); i >= 0 {
			d.deeds.Undo(d.deeds.Done[i].Seq, seq, e.Head)
		}
	case e.Redoes != 0:
		d.names[e.Redoes] = e.Name
		d.deeds.Redo(e.Redoes, seq, e.Head)
	default:
		d.names[seq] = e.Name
		d.deeds.Do(task.Deed{Kind: deletion, Seq: seq, Head: e.Head, At: at})
	}
}

// deletion finds the newest deletion into a folder of the trash; that of another
// tool's task has none.
func (d *shelved) deletion(list []task.Deed, name string) int {
	for i, e := range slices.Backward(list) {
		if e.Kind == deletion && d.names[e.Seq] == name {
			return i
		}
	}
	return -1
}

// of gives the deeds of one task. Where an own task lies says whether it is deleted,
// and not the mark that was made before it moved.
func (d *shelved) of(ref Ref, bin string) task.Deeds {
	if !ref.Own {
		if d == nil {
			return task.Deeds{}
		}
		return d.deeds
	}
	var out task.Deeds
	if bin != "" {
		gone := task.Deed{Kind: deletion, Head: ^uint64(0)} // of a time that no mark knows
		if d != nil {
			if i := d.deletion(d.deeds.Done, bin); i >= 0 {
				gone = d.deeds.Done[i]
			}
		}
		return task.Deeds{Done: []task.Deed{gone}, Last: gone.Seq, Head: gone.Head}
	}
	if d != nil {
		out = d.deeds
		out.Done = nil
	}
	return out
}
