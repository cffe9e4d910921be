package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// Deleting destroys nothing. A task of our own root moves into the trash by one
// rename, so that a kill at any moment leaves it whole, in one place or the other.
// A task in another tool's storage stays where it is, because that storage is only
// read; Roost hides it. A copy of it in the trash was considered: it would double
// the disk without being asked, and protect from nothing that Roost does.

// Trashed is a deleted task.
type Trashed struct {
	Summary
	Name      string  `json:"name"`       // what restores it
	DeletedAt *string `json:"deleted_at"` // RFC 3339; null when nothing says
	Hidden    bool    `json:"hidden"`     // its folder stands in the storage of another tool, untouched
}

// TrashedError: the task that was asked for is in the trash.
type TrashedError struct{ Given, Name string }

func (e *TrashedError) Error() string {
	return fmt.Sprintf("task %q is in the trash, as %s", e.Given, e.Name)
}

// Is makes it an ErrNotFound too.
func (e *TrashedError) Is(target error) bool { return target == ErrNotFound }

// ErrTaken: a task of that id stands where one should be put.
var ErrTaken = errors.New("a task of that id is there already")

// TrashDir holds the folders of Roost's own deleted tasks.
func (s *Store) TrashDir() string { return filepath.Join(s.opt.Root, "trash") }

// Delete takes a task out of every list, restorable. A task that somebody owns is
// not deleted: *journal.BusyError.
func (s *Store) Delete(ctx context.Context, ref Ref) (Trashed, error) {
	return s.deleteWith(ctx, ref, "")
}

// DeleteSubtask is Delete for a subtask that goes with its parent, after it: undoing the
// deletion of the parent brings it back, too.
func (s *Store) DeleteSubtask(ctx context.Context, ref, parent Ref) (Trashed, error) {
	return s.deleteWith(ctx, ref, parent.Source+":"+parent.ID)
}

func (s *Store) deleteWith(ctx context.Context, ref Ref, with string) (Trashed, error) {
	var out Trashed
	err := s.shelve(ctx, func(m Marks, keep func(...mark) error) error {
		var err error
		out, err = s.deleteAs(ctx, ref, m, 0, func(list ...mark) error {
			for i := range list {
				list[i].With = with
			}
			return keep(list...)
		})
		return err
	})
	if err != nil {
		return Trashed{}, fmt.Errorf("delete task %s: %w", ref.ID, err)
	}
	return out, nil
}

// deleteAs deletes with the overlay held. again is the commit of the deletion that
// is done again, 0 for a new one.
func (s *Store) deleteAs(ctx context.Context, ref Ref, m Marks, again uint64, keep func(...mark) error) (Trashed, error) {
	if ref.Own {
		return s.deleteOwn(ctx, ref, again, keep)
	}
	return s.hide(ctx, ref, m, again, keep)
}

func (s *Store) hide(ctx context.Context, ref Ref, m Marks, again uint64, keep func(...mark) error) (Trashed, error) {
	now := s.opt.Now()
	if m.Hidden(ref.Source, ref.ID) {
		now = m[[2]string{ref.Source, ref.ID}].at
	}
	err := s.unowned(ctx, ref, func() error {
		if m.Hidden(ref.Source, ref.ID) {
			return nil
		}
		return keep(mark{
			Type: trashed, Source: ref.Source, ID: ref.ID, Deleted: ptr(true), Purged: ptr(false), Dir: ref.Dir, Head: HeadOf(ctx, ref.Log), Redoes: again,
		})
	})
	if err != nil {
		return Trashed{}, err
	}
	sum := s.SummaryOf(ctx, ref)
	m.Apply(&sum)
	return Trashed{Summary: sum, Name: ref.Source + ":" + ref.ID, DeletedAt: stamp(now), Hidden: true}, nil
}

// unowned does something while nobody can come to own a task. One without a journal has
// nothing that could be held: there it is only looked for an owner.
func (s *Store) unowned(ctx context.Context, ref Ref, do func() error) error {
	if HasJournal(ref.Log) {
		log, err := s.LockJournal(ctx, ref, 0)
		if err != nil {
			return err
		}
		return errors.Join(do(), log.Close())
	}
	if holder, held := filelog.Holder(ref.Log); held {
		return &journal.BusyError{Dir: ref.Log, Holder: holder}
	}
	if err := MeetsExpectation(ctx, ref); err != nil {
		return err
	}
	return do()
}

func ptr[T any](v T) *T { return &v }

func (s *Store) deleteOwn(ctx context.Context, ref Ref, again uint64, keep func(...mark) error) (Trashed, error) {
	if err := CheckID(ref); err != nil {
		return Trashed{}, err
	}
	if err := s.EnsureDir(s.TrashDir(), "cannot be written"); err != nil {
		return Trashed{}, err
	}
	name := ref.ID
	for n := 2; exists(s.TrashDir(), name); n++ { // ids hold no "~"
		name = ref.ID + "~" + strconv.Itoa(n)
	}
	to := filepath.Join(s.TrashDir(), name)
	marked := false
	err := s.moveOwned(ctx, ref, to, func() error {
		err := keep(mark{Type: trashed, Source: OwnSource, ID: ref.ID, Name: name, Deleted: ptr(true), Head: HeadOf(ctx, ref.Log), Redoes: again})
		marked = err == nil
		return err
	})
	if err != nil {
		if marked { // whoever is told of the deletion is told that it did not happen, too
			err = errors.Join(err, keep(mark{Type: keptHere, Source: OwnSource, ID: ref.ID, Name: name, Deleted: ptr(false), Head: HeadOf(ctx, ref.Log)}))
		}
		return Trashed{}, err
	}
	failpoint.Hit("trash.moved")
	if err := s.SweepIndex(ctx); err != nil {
		return Trashed{}, fmt.Errorf("it is in the trash, but the history index still names it: %w", err)
	}
	return s.trashedOwn(ctx, name, s.opt.Now()), nil
}

// moveOwned moves a folder while nobody can own it. On Windows a folder with an
// open file does not move, so there the lock is let go first; an owner that comes
// in between has files open, and the move fails.
func (s *Store) moveOwned(ctx context.Context, ref Ref, to string, intent func() error) error {
	var held journal.Owner
	if !linked(ref.Dir) { // a link moves; what it leads to is not written
		log, err := s.LockJournal(ctx, ref, 0)
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: %s is not there any more", ErrNotFound, ref.Log)
		}
		if err != nil {
			return err
		}
		held = log
	}
	release := func() error {
		if held == nil {
			return nil
		}
		log := held
		held = nil
		return log.Close()
	}
	if err := intent(); err != nil {
		return errors.Join(err, release())
	}
	failpoint.Hit("trash.marked")
	if runtime.GOOS == "windows" {
		if err := release(); err != nil {
			return err
		}
	}
	err := move(ref.Log, to)
	return errors.Join(err, release())
}

// move renames a folder durably.
func move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("move %s: %w", from, err)
	}
	for _, dir := range []string{filepath.Dir(to), filepath.Dir(from)} {
		if err := filelog.OS.SyncDir(dir); err != nil {
			return fmt.Errorf("sync %s: %w", dir, err)
		}
	}
	return nil
}

// Trash lists what was deleted, newest first. It changes nothing.
func (s *Store) Trash(ctx context.Context) ([]Trashed, error) {
	all, err := s.allTrash(ctx)
	return slices.DeleteFunc(all, func(t trashedMark) bool { return t.purged }).list(), err
}

type trashedMark struct {
	Trashed
	ref    Ref
	at     int64
	purged bool
}

type trashList []trashedMark

func (l trashList) list() []Trashed {
	out := make([]Trashed, len(l))
	for i, t := range l {
		out[i] = t.Trashed
	}
	return out
}

// allTrash lists the trash, and hidden tasks whose journal of ours was purged.
func (s *Store) allTrash(ctx context.Context) (trashList, error) {
	marks, err := s.Marks(ctx)
	if err != nil {
		return nil, err
	}
	found, err := names(s.TrashDir())
	if err != nil {
		return nil, err
	}
	var out trashList
	for _, name := range found {
		at := marks[[2]string{OwnSource, name}].at
		t := trashedMark{Trashed: s.trashedOwn(ctx, name, at), at: at}
		t.ref = s.TrashRef(name)
		out = append(out, t)
	}
	refs, _, err := s.everyRef(ctx)
	if err != nil {
		return nil, err
	}
	known := map[[2]string]Ref{}
	for _, r := range refs {
		known[[2]string{r.Source, r.ID}] = r
	}
	for key, m := range marks {
		if !m.hidden() {
			continue
		}
		t := trashedMark{at: m.at, purged: m.purged()}
		t.Name, t.DeletedAt, t.Hidden = key[0]+":"+key[1], stamp(m.at), true
		if ref, ok := known[key]; ok {
			t.ref = ref
			t.Summary = s.SummaryOf(ctx, ref)
		} else { // its storage is not named any more, or its folder is gone
			t.ref = Ref{ID: key[1], Source: key[0], Dir: m.Dir, Log: filepath.Join(s.AdoptedDir(key[0]), key[1])}
			t.Summary = Summary{ID: key[1], Source: key[0], Path: m.Dir, Status: "idle"}.filled()
		}
		marks.Apply(&t.Summary)
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b trashedMark) int {
		if a.at != b.at {
			return int(min(max(b.at-a.at, -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// TrashRef is the task of a folder in the trash.
func (s *Store) TrashRef(name string) Ref {
	id, _, _ := strings.Cut(name, "~")
	dir := filepath.Join(s.TrashDir(), name)
	return Ref{ID: id, Source: OwnSource, Tool: "roost", Dir: dir, Log: dir, Own: true}
}

func (s *Store) trashedOwn(ctx context.Context, name string, at int64) Trashed {
	return Trashed{Summary: s.SummaryOf(ctx, s.TrashRef(name)), Name: name, DeletedAt: stamp(at)}
}

// inTrash resolves a name as Find does: whole, or a unique beginning or end of the
// id.
func (s *Store) inTrash(ctx context.Context, given string) (trashedMark, error) {
	all, err := s.allTrash(ctx)
	if err != nil {
		return trashedMark{}, err
	}
	source, want, named := strings.Cut(given, ":")
	if !named {
		want = given
	}
	var exact, part trashList
	for _, t := range all {
		name := t.Name
		if t.Hidden {
			name = t.ID
		}
		switch {
		case named && source != t.Source:
		case name == want:
			exact = append(exact, t)
		case len(want) >= 3 && (strings.HasPrefix(name, want) || strings.HasSuffix(name, want)):
			part = append(part, t)
		}
	}
	if len(exact) > 0 {
		part = exact
	}
	switch len(part) {
	case 0:
		return trashedMark{}, fmt.Errorf("%w in the trash: %q", ErrNotFound, given)
	case 1:
		return part[0], nil
	}
	e := &AmbiguousError{Given: given}
	for _, t := range part {
		ref := t.ref
		if !t.Hidden {
			ref.ID = t.Name
		}
		e.Candidates = append(e.Candidates, ref)
	}
	return trashedMark{}, e
}

// Word names a deleted task so that nothing else fits.
func (t Trashed) Word() string {
	if t.Hidden {
		return t.Name
	}
	return OwnSource + ":" + t.Name
}

// Trashed finds one deleted task, as Restore and Purge do.
func (s *Store) Trashed(ctx context.Context, given string) (Trashed, error) {
	t, err := s.inTrash(ctx, given)
	return t.Trashed, err
}

// Restore puts a deleted task back where it was.
func (s *Store) Restore(ctx context.Context, given string) (Ref, error) {
	return s.restore(ctx, given, func() error { return nil })
}

// restore asks, with the overlay held, whether it still is to be done.
func (s *Store) restore(ctx context.Context, given string, still func() error) (Ref, error) {
	var out Ref
	err := s.shelve(ctx, func(_ Marks, keep func(...mark) error) error {
		if err := still(); err != nil {
			return err
		}
		t, err := s.inTrash(ctx, given)
		if err != nil {
			return err
		}
		back := mark{Type: trashed, Source: t.Source, ID: t.ref.ID, Deleted: ptr(false), Head: HeadOf(ctx, t.ref.Log)}
		if t.Hidden {
			out = t.ref
			back.Purged = ptr(false)
			return keep(back)
		}
		out = s.OwnRef(t.ref.ID)
		if err := clearPlace(out.Dir); err != nil {
			return err
		}
		failpoint.Hit("restore.chosen")
		if err := move(t.ref.Dir, out.Dir); err != nil {
			return err
		}
		failpoint.Hit("restore.moved")
		// Where it lies is what counts: a kill before this costs only that the deletion
		// cannot be done again.
		back.Name = t.Name
		if err := keep(back); err != nil {
			return err
		}
		return s.IndexTask(ctx, out)
	})
	if err != nil {
		return Ref{}, fmt.Errorf("restore %s: %w", given, err)
	}
	return out, nil
}

// restoreSubtasks takes out of the trash what the deletion of a task took along.
func (s *Store) restoreSubtasks(ctx context.Context, parent Ref, deleted int64) (ids []string, err error) {
	all, err := s.allTrash(ctx)
	if err != nil {
		return nil, err
	}
	marks, err := s.Marks(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, t := range all {
		key := [2]string{t.Source, t.ID}
		word := t.Name
		if !t.Hidden {
			key, word = [2]string{OwnSource, t.Name}, OwnSource+":"+t.Name
		}
		if m := marks[key]; m.With != parent.Source+":"+parent.ID || m.at < deleted {
			continue
		}
		ref, err := s.restore(ctx, word, func() error { return nil })
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids = append(ids, ref.ID)
	}
	slices.Sort(ids)
	return ids, errors.Join(errs...)
}

// deleteSubtasks deletes again what restoreSubtasks took out of the trash, as far as nobody
// worked on it since.
func (s *Store) deleteSubtasks(ctx context.Context, parent Ref, restored int64) (ids []string, err error) {
	marks, err := s.Marks(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, m := range marks {
		if m.With != parent.Source+":"+parent.ID || m.Deleted == nil || *m.Deleted || m.at < restored {
			continue
		}
		ref, err := s.Find(ctx, m.Source+":"+m.ID)
		if err != nil || HeadOf(ctx, ref.Log) != m.Head {
			continue
		}
		if _, err := s.DeleteSubtask(ctx, ref, parent); err != nil {
			errs = append(errs, err)
			continue
		}
		ids = append(ids, ref.ID)
	}
	slices.Sort(ids)
	return ids, errors.Join(errs...)
}

// vanished reports whether a task went since it was found, into the trash or out of
// the world, and not with its whole storage: then it is no task of that place.
func vanished(ref Ref) bool {
	return !exists(ref.Dir, "") && !HasJournal(ref.Log) && exists(filepath.Dir(ref.Dir), "")
}

// clearPlace removes an empty folder: Roo makes one whenever it looks for a task. For
// anything else the place is taken.
func clearPlace(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() && os.Remove(dir) == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", dir, ErrTaken)
}

// Purge removes the bytes of a deleted task for good. Of a task in another tool's
// storage only Roost's journal is removed: its folder stays, and stays hidden.
func (s *Store) Purge(ctx context.Context, given string) (Trashed, error) {
	var out Trashed
	err := s.shelve(ctx, func(_ Marks, keep func(...mark) error) error {
		t, err := s.inTrash(ctx, given)
		if err != nil {
			return err
		}
		out = t.Trashed
		// What is on its way out has a name that no list shows: a kill in the middle
		// leaves no half task.
		doomed := filepath.Join(s.TrashDir(), ".purged-"+strconv.FormatInt(s.opt.Now(), 10)+"-"+strings.ReplaceAll(t.Name, ":", "~"))
		if t.Hidden {
			err = s.purgeHidden(ctx, t, doomed, keep)
		} else {
			err = move(t.ref.Dir, doomed)
		}
		if err != nil {
			return err
		}
		failpoint.Hit("purge.moved")
		if !t.Hidden { // where it lay says that it is gone; this tells who follows
			if err := keep(mark{Type: trashed, Source: OwnSource, ID: t.ref.ID, Name: t.Name, Purged: ptr(true)}); err != nil {
				return err
			}
		}
		return s.removePurged()
	})
	if err != nil {
		return Trashed{}, fmt.Errorf("purge %s: %w", given, err)
	}
	return out, nil
}

func (s *Store) purgeHidden(ctx context.Context, t trashedMark, doomed string, keep func(...mark) error) error {
	gone := func() error { return keep(mark{Type: trashed, Source: t.Source, ID: t.ID, Purged: ptr(true)}) }
	if !HasJournal(t.ref.Log) {
		return gone()
	}
	if err := s.EnsureDir(s.TrashDir(), "cannot be written"); err != nil {
		return err
	}
	ref := t.ref
	ref.Dir = ref.Log
	return s.moveOwned(ctx, ref, doomed, gone)
}

// FinishPurges removes what killed purges left.
func (s *Store) FinishPurges(ctx context.Context) error {
	return s.shelve(ctx, func(Marks, func(...mark) error) error { return s.removePurged() })
}

// removePurged finishes every purge, also those that were killed.
func (s *Store) removePurged() error {
	entries, err := os.ReadDir(s.TrashDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", s.TrashDir(), err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".purged-") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.TrashDir(), e.Name())); err != nil {
			return fmt.Errorf("remove %s: %w", e.Name(), err)
		}
	}
	return nil
}
