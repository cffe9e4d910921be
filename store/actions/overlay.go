package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/task"
)

// overlayActions are the overlay's actions of one task, and the labels that its entries give.
type overlayActions struct {
	actions task.Actions
	folders map[uint64]string // of deletions of our own tasks: the folder in the trash
	title   string
	tags    []string
	pinned  bool
}

// readOverlay folds the overlay into the actions of each task.
func readOverlay(ctx context.Context, s *store.Store) (map[overlay.Key]*overlayActions, error) {
	out := map[overlay.Key]*overlayActions{}
	log, err := filelog.OpenReader(s.OverlayDir())
	if errors.Is(err, journal.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the overlay %s: %w", s.OverlayDir(), err)
	}
	defer log.Close()
	err = overlay.Each(ctx, log, func(c journal.Commit, e overlay.Entry) {
		key := overlay.Key{Source: e.Source, ID: e.ID}
		if out[key] == nil {
			out[key] = &overlayActions{folders: map[uint64]string{}}
		}
		out[key].fold(e, c.Seq, c.At)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (o *overlayActions) fold(e overlay.Entry, seq uint64, at int64) {
	switch {
	case e.Type == overlay.Changed:
		o.foldLabels(e, seq, at)
	case e.Type != overlay.Deleted || e.Deleted == nil:
	case !*e.Deleted:
		if i := o.findDeletion(e.Name); i >= 0 {
			o.actions.Undo(o.actions.Done[i].Seq, seq, e.Head)
		}
	case e.Redoes != 0:
		o.folders[e.Redoes] = e.Name
		o.actions.Redo(e.Redoes, seq, e.Head)
	default:
		o.folders[seq] = e.Name
		o.actions.Do(task.Action{Kind: deletion, Seq: seq, Head: e.Head, At: at})
	}
}

func (o *overlayActions) foldLabels(e overlay.Entry, seq uint64, at int64) {
	change := task.Changed{Title: e.Title, Tags: e.Tags, Pinned: e.Pinned}
	switch {
	case e.Undoes != 0:
		o.actions.Undo(e.Undoes, seq, e.Head)
	case e.Redoes != 0:
		o.actions.Redo(e.Redoes, seq, e.Head)
	case change.Kind() != "":
		o.actions.Do(task.Action{
			Kind:   change.Kind(),
			Seq:    seq,
			Head:   e.Head,
			At:     at,
			Before: change.Against(o.title, o.tags, o.pinned),
			After:  change,
		})
	}
	if e.Title != nil {
		o.title = *e.Title
	}
	if e.Tags != nil {
		o.tags = *e.Tags
	}
	if e.Pinned != nil {
		o.pinned = *e.Pinned
	}
}

// findDeletion is the index of the newest deletion into a folder of the trash; the folder is "" for another tool's
// task.
func (o *overlayActions) findDeletion(folder string) int {
	for i, d := range slices.Backward(o.actions.Done) {
		if d.Kind == deletion && o.folders[d.Seq] == folder {
			return i
		}
	}
	return -1
}

// of are the actions of one task. folder is its folder in the trash, "" when it is not there. The place of an own task
// decides whether it is deleted, and not the entry that was written before it moved.
func (o *overlayActions) of(ref store.Ref, folder string) task.Actions {
	if !ref.Own {
		if o == nil {
			return task.Actions{}
		}
		return o.actions
	}
	var out task.Actions
	if folder != "" {
		deleted := task.Action{Kind: deletion, Head: ^uint64(0)} // of a deletion that no entry records
		if o != nil {
			if i := o.findDeletion(folder); i >= 0 {
				deleted = o.actions.Done[i]
			}
		}
		return task.Actions{Done: []task.Action{deleted}, Last: deleted.Seq, Head: deleted.Head}
	}
	if o != nil {
		out = o.actions
		out.Done = nil
	}
	return out
}
