// Package trash deletes, restores and purges tasks.
//
// Deleting destroys nothing. A task of Roost's own root moves into the trash with one rename, so a kill leaves it
// whole in one place or the other. A task of another tool is hidden; its folder is not touched. All moves happen one
// at a time on a root, with the overlay locked; the overlay records them for undo and for followers. Only purging
// removes bytes: the folder first gets a name that no list shows.
package trash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/drafts"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/projection"
)

// ErrTaken: another task has the id of the task that should be restored.
var ErrTaken = errors.New("another task has this id")

// purgedPrefix begins the name of a folder in the trash whose bytes are being removed.
const purgedPrefix = ".purged-"

// List lists the deleted tasks, newest first. It changes nothing.
func List(ctx context.Context, s *store.Store) ([]api.DeletedTask, error) {
	table, err := s.Overlay(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	out := []api.DeletedTask{}
	for _, d := range all {
		if !d.Purged {
			out = append(out, describe(ctx, s, d, table))
		}
	}
	return out, nil
}

// Find finds one deleted task by the names that Restore and Purge take.
func Find(ctx context.Context, s *store.Store, given string) (api.DeletedTask, error) {
	d, err := s.FindDeleted(ctx, given)
	if err != nil {
		return api.DeletedTask{}, err
	}
	table, err := s.Overlay(ctx)
	return describe(ctx, s, d, table), err
}

func describe(ctx context.Context, s *store.Store, d store.DeletedTask, table overlay.Table) api.DeletedTask {
	return api.DeletedTask{
		Summary:   s.SummaryOfDeleted(ctx, d, table),
		Name:      d.Name,
		DeletedAt: api.Date(d.At),
		Hidden:    d.Hidden,
	}
}

// Delete takes a task out of every list so that it can be restored. It fails with a *journal.BusyError while a process
// owns the task.
func Delete(ctx context.Context, s *store.Store, ref store.Ref) (api.DeletedTask, error) {
	return deleteTask(ctx, s, ref, overlay.Entry{}, nothingToCheck)
}

// DeleteSubtask is Delete for a subtask of a task that was just deleted: undoing the deletion of the parent restores
// the subtask, too.
func DeleteSubtask(ctx context.Context, s *store.Store, ref, parent store.Ref) (api.DeletedTask, error) {
	return deleteTask(ctx, s, ref, overlay.Entry{With: parent.Source + ":" + parent.ID}, nothingToCheck)
}

// DeleteAgain repeats a deletion that was undone; redoes is the commit of the overlay that undid it. check is called
// with the overlay locked, and its error leaves everything as it is.
func DeleteAgain(ctx context.Context, s *store.Store, ref store.Ref, redoes uint64, check func() error) error {
	_, err := deleteTask(ctx, s, ref, overlay.Entry{Redoes: redoes}, check)
	return err
}

func nothingToCheck() error { return nil }

// deleteTask deletes a task and records entry in the overlay, after it has set the members that all deletions have.
func deleteTask(
	ctx context.Context, s *store.Store, ref store.Ref, entry overlay.Entry, check func() error,
) (out api.DeletedTask, err error) {
	entry.Type, entry.Source, entry.ID = overlay.Deleted, ref.Source, ref.ID
	entry.Deleted, entry.Purged = new(true), new(false) // an earlier task of this id may have been purged
	err = s.ChangeOverlay(ctx, func(table overlay.Table, add overlay.Append) error {
		err := check()
		switch {
		case err != nil:
		case ref.Own:
			out, err = moveToTrash(ctx, s, ref, entry, add)
		default:
			out, err = hide(ctx, s, ref, table, entry, add)
		}
		return err
	})
	if err != nil && entry.Redoes == 0 {
		err = fmt.Errorf("delete task %s: %w", ref.ID, err)
	}
	return out, err
}

// hide records that a task of another tool is deleted.
func hide(
	ctx context.Context, s *store.Store, ref store.Ref, table overlay.Table, entry overlay.Entry, add overlay.Append,
) (api.DeletedTask, error) {
	now := s.Now()
	if table.Hidden(ref.Source, ref.ID) {
		now = table[overlay.Key{Source: ref.Source, ID: ref.ID}].At
	}
	err := whileUnowned(ctx, s, ref, func() error {
		if table.Hidden(ref.Source, ref.ID) {
			return nil
		}
		entry.Dir, entry.Head = ref.Dir, s.HeadOf(ctx, ref)
		return add(entry)
	})
	if err != nil {
		return api.DeletedTask{}, err
	}
	d := store.DeletedTask{Ref: ref, Name: ref.Source + ":" + ref.ID, At: now, Hidden: true}
	return describe(ctx, s, d, table), nil
}

// whileUnowned calls do while no process can come to own a task. A task without a journal has no lock to hold: for it,
// whileUnowned only checks that no process owns it now.
func whileUnowned(ctx context.Context, s *store.Store, ref store.Ref, do func() error) error {
	if s.HasJournal(ctx, ref) {
		log, err := s.LockJournal(ctx, ref, 0)
		if err != nil {
			return err
		}
		return errors.Join(do(), log.Close())
	}
	if holder, held := s.Holder(ctx, ref); held {
		return &journal.BusyError{Dir: ref.Log, Holder: holder}
	}
	if err := s.MeetsExpectation(ctx, ref); err != nil {
		return err
	}
	return do()
}

// moveToTrash deletes a task of our own.
func moveToTrash(
	ctx context.Context, s *store.Store, ref store.Ref, entry overlay.Entry, add overlay.Append,
) (api.DeletedTask, error) {
	if err := store.CheckID(ref); err != nil {
		return api.DeletedTask{}, err
	}
	if err := s.EnsureTrash(); err != nil {
		return api.DeletedTask{}, err
	}
	name := ref.ID
	for n := 2; s.Taken(ctx, s.TrashRef(name)); n++ { // ids hold no "~"
		name = ref.ID + "~" + strconv.Itoa(n)
	}
	entry.Name = name
	recorded := false
	err := moveUnowned(ctx, s, ref, s.TrashRef(name), func() error {
		entry.Head = s.HeadOf(ctx, ref)
		err := add(entry)
		recorded = err == nil
		return err
	})
	if err != nil {
		if recorded { // followers who got the deletion must learn that it did not happen
			entry.Type, entry.Deleted, entry.Redoes, entry.Head = overlay.Kept, new(false), 0, s.HeadOf(ctx, ref)
			err = errors.Join(err, add(entry))
		}
		return api.DeletedTask{}, err
	}
	failpoint.Hit("trash.moved")
	_ = s.Index().Sweep(ctx) // derived: until the next change, it names a task that is not there
	return describe(ctx, s, store.DeletedTask{Ref: s.TrashRef(name), Name: name, At: s.Now()}, nil), nil
}

// moveUnowned moves a task's folder while no process can own it. record is called just before the move. Windows does
// not move a folder with an open file, so there the lock is released first; an owner that comes in between has files
// open, and the move fails.
func moveUnowned(ctx context.Context, s *store.Store, ref, to store.Ref, record func() error) error {
	release := func() error { return nil }
	if !projection.Linked(ref.Dir) { // a link moves; its target is not written
		log, err := s.LockJournal(ctx, ref, 0)
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: %s is not there any more", store.ErrNotFound, ref.Log)
		}
		if err != nil {
			return err
		}
		release = sync.OnceValue(log.Close)
	}
	if err := record(); err != nil {
		return errors.Join(err, release())
	}
	failpoint.Hit("trash.marked")
	if runtime.GOOS == "windows" {
		if err := release(); err != nil {
			return err
		}
	}
	err := s.MoveTask(ctx, ref, to)
	return errors.Join(err, release())
}

// Restore puts a deleted task back where it was.
func Restore(ctx context.Context, s *store.Store, given string) (store.Ref, error) {
	return RestoreIf(ctx, s, given, nothingToCheck)
}

// RestoreIf is Restore, with a check that is called with the overlay locked; its error leaves everything as it is.
func RestoreIf(ctx context.Context, s *store.Store, given string, check func() error) (store.Ref, error) {
	var out store.Ref
	err := s.ChangeOverlay(ctx, func(_ overlay.Table, add overlay.Append) error {
		if err := check(); err != nil {
			return err
		}
		d, err := s.FindDeleted(ctx, given)
		if err != nil {
			return err
		}
		back := overlay.Entry{
			Type:    overlay.Deleted,
			Source:  d.Ref.Source,
			ID:      d.Ref.ID,
			Deleted: new(false),
			Head:    s.HeadOf(ctx, d.Ref),
		}
		if d.Hidden {
			out = d.Ref
			back.Purged = new(false)
			return add(back)
		}
		out = s.OwnRef(d.Ref.ID)
		if err := makeRoom(ctx, s, out); err != nil {
			return err
		}
		failpoint.Hit("restore.chosen")
		if err := s.MoveTask(ctx, d.Ref, out); err != nil {
			return err
		}
		failpoint.Hit("restore.moved")
		// The place of the folder decides: a kill before this only prevents that the deletion can be redone.
		back.Name = d.Name
		if err := add(back); err != nil {
			return err
		}
		_ = s.IndexTask(ctx, out) // derived: the task's next owner does it
		return nil
	})
	if err != nil {
		return store.Ref{}, fmt.Errorf("restore %s: %w", given, err)
	}
	return out, nil
}

// RestoreSubtasks restores the subtasks that were deleted with a task at a time or later.
func RestoreSubtasks(ctx context.Context, s *store.Store, parent store.Ref, deleted int64) (ids []string, err error) {
	all, err := s.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	table, err := s.Overlay(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, d := range all {
		key := overlay.Key{Source: d.Ref.Source, ID: d.Ref.ID}
		if !d.Hidden {
			key.ID = d.Name
		}
		if e := table[key]; e.With != parent.Source+":"+parent.ID || e.At < deleted {
			continue
		}
		ref, err := Restore(ctx, s, d.QualifiedName())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids = append(ids, ref.ID)
	}
	slices.Sort(ids)
	return ids, errors.Join(errs...)
}

// DeleteSubtasksAgain deletes the subtasks that RestoreSubtasks restored, except those that were changed since.
func DeleteSubtasksAgain(ctx context.Context, s *store.Store, parent store.Ref, restored int64) (ids []string, err error) {
	table, err := s.Overlay(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range table {
		if e.With != parent.Source+":"+parent.ID || e.Deleted == nil || *e.Deleted || e.At < restored {
			continue
		}
		ref, err := s.Find(ctx, e.Source+":"+e.ID)
		if err != nil || s.HeadOf(ctx, ref) != e.Head {
			continue
		}
		if _, err := DeleteSubtask(ctx, s, ref, parent); err != nil {
			errs = append(errs, err)
			continue
		}
		ids = append(ids, ref.ID)
	}
	slices.Sort(ids)
	return ids, errors.Join(errs...)
}

// makeRoom removes an empty folder from the place where a task belongs: Roo makes such a folder whenever it looks for
// a task. Anything else there is ErrTaken.
func makeRoom(ctx context.Context, s *store.Store, ref store.Ref) error {
	if !s.Taken(ctx, ref) {
		return nil
	}
	info, err := os.Lstat(ref.Dir)
	if err == nil && info.IsDir() && os.Remove(ref.Dir) == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", ref.Dir, ErrTaken)
}

// Purge removes the bytes of a deleted task for good. For a task in another tool's storage it removes only Roost's
// journal; the folder stays, and stays hidden.
func Purge(ctx context.Context, s *store.Store, given string) (api.DeletedTask, error) {
	var out api.DeletedTask
	err := s.ChangeOverlay(ctx, func(table overlay.Table, add overlay.Append) error {
		d, err := s.FindDeleted(ctx, given)
		if err != nil {
			return err
		}
		out = describe(ctx, s, d, table)
		// Before the move, so that a purge that is killed after this is only repeated.
		forget := func() error {
			if !d.Hidden && s.Taken(ctx, s.OwnRef(d.Ref.ID)) { // the draft is that of another task with the id
				return nil
			}
			return drafts.Of(s).Purge(ctx, d.Ref.Source+":"+d.Ref.ID)
		}
		// No list shows a folder of this name, so a kill in the middle leaves no half task.
		doomed := s.TrashRef(purgedPrefix + strconv.FormatInt(s.Now(), 10) + "-" + strings.ReplaceAll(d.Name, ":", "~"))
		if d.Hidden {
			err = purgeHidden(ctx, s, d, doomed, func() error {
				if err := forget(); err != nil {
					return err
				}
				return add(purgedEntry(d))
			})
		} else if err = forget(); err == nil {
			err = s.MoveTask(ctx, d.Ref, doomed)
		}
		if err != nil {
			return err
		}
		failpoint.Hit("purge.moved")
		if !d.Hidden { // the missing folder is what counts; the entry is for followers
			purged := purgedEntry(d)
			purged.Name = d.Name
			if err := add(purged); err != nil {
				return err
			}
		}
		return removePurged(ctx, s)
	})
	if err != nil {
		return api.DeletedTask{}, fmt.Errorf("purge %s: %w", given, err)
	}
	return out, nil
}

func purgedEntry(d store.DeletedTask) overlay.Entry {
	return overlay.Entry{Type: overlay.Deleted, Source: d.Ref.Source, ID: d.Ref.ID, Purged: new(true)}
}

func purgeHidden(ctx context.Context, s *store.Store, d store.DeletedTask, doomed store.Ref, record func() error) error {
	if !s.HasJournal(ctx, d.Ref) {
		return record()
	}
	if err := s.EnsureTrash(); err != nil {
		return err
	}
	ref := d.Ref
	ref.Dir = ref.Log
	return moveUnowned(ctx, s, ref, doomed, record)
}

// FinishPurges removes what killed purges left.
func FinishPurges(ctx context.Context, s *store.Store) error {
	return s.ChangeOverlay(ctx, func(overlay.Table, overlay.Append) error { return removePurged(ctx, s) })
}

// removePurged removes the bytes of all purges, also of killed ones. The caller holds the overlay.
func removePurged(ctx context.Context, s *store.Store) error {
	list, err := s.UnlistedTrash(ctx, purgedPrefix)
	if err != nil {
		return err
	}
	for _, ref := range list {
		if err := s.RemoveTask(ctx, ref); err != nil {
			return fmt.Errorf("remove %s: %w", ref.Log, err)
		}
	}
	return nil
}
