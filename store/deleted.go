package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store/overlay"
)

// Deleting destroys nothing. A task of Roost's own root moves into the trash with one rename, so a kill leaves it whole
// in one place or the other. A task in another tool's storage stays where it is, because that storage is only read;
// Roost hides it. A copy of it in the trash was considered: it would double the disk space without being asked, and
// protect from nothing that Roost does.

// TrashDir holds the folders of Roost's own deleted tasks.
func (s *Store) TrashDir() string { return filepath.Join(s.home(), "trash") }

// TrashRef returns the task of a folder in the trash.
func (s *Store) TrashRef(name string) Ref {
	id, _, _ := strings.Cut(name, "~")
	dir := filepath.Join(s.TrashDir(), name)
	return Ref{ID: id, Source: OwnSource, Tool: "roost", Dir: dir, Log: dir, Own: true}
}

// TrashedError: the task that was asked for is in the trash.
type TrashedError struct{ Given, Name string }

func (e *TrashedError) Error() string {
	return fmt.Sprintf("task %q is in the trash, as %s", e.Given, e.Name)
}

// Is makes it an ErrNotFound too.
func (e *TrashedError) Is(target error) bool { return target == ErrNotFound }

// DeletedTask is where a deleted task is.
type DeletedTask struct {
	Ref    Ref
	Name   string // the name that restores it
	At     int64  // when it was deleted, in Unix milliseconds; 0 = unknown
	Hidden bool   // its folder is untouched in the storage of another tool
	Purged bool   // it is hidden, and its journal was purged

	missing bool // its storage is not configured any more, or its folder was removed
}

// id returns the id by which a user names the deleted task.
func (d DeletedTask) id() string {
	if d.Hidden {
		return d.Ref.ID
	}
	return d.Name
}

// QualifiedName returns a name of the deleted task that matches no other task.
func (d DeletedTask) QualifiedName() string {
	if d.Hidden {
		return d.Name
	}
	return OwnSource + ":" + d.Name
}

// Deleted lists the deleted tasks, newest first, and the hidden ones whose journal was purged. It reads tasks only
// for a caller who may find only some of them.
func (s *Store) Deleted(ctx context.Context) ([]DeletedTask, error) {
	all, err := s.everyDeleted(ctx)
	if err != nil || sightOf(ctx) == nil {
		return all, err
	}
	return slices.DeleteFunc(all, func(d DeletedTask) bool { return !s.Sees(ctx, d.Ref) }), ctx.Err()
}

func (s *Store) everyDeleted(ctx context.Context) ([]DeletedTask, error) {
	table, err := s.Overlay(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.logs.names(ctx, s.TrashDir())
	if err != nil {
		return nil, err
	}
	out := api.Each(found, func(name string) DeletedTask {
		return DeletedTask{Ref: s.TrashRef(name), Name: name, At: table[overlay.Key{Source: OwnSource, ID: name}].At}
	})
	refs, _, err := s.everyRef(ctx)
	if err != nil {
		return nil, err
	}
	known := map[overlay.Key]Ref{}
	for _, r := range refs {
		known[overlay.Key{Source: r.Source, ID: r.ID}] = r
	}
	for key, e := range table {
		if !e.IsHidden() {
			continue
		}
		d := DeletedTask{Name: key.Source + ":" + key.ID, At: e.At, Hidden: true, Purged: e.IsPurged()}
		if ref, ok := known[key]; ok {
			d.Ref = ref
		} else {
			d.Ref = Ref{ID: key.ID, Source: key.Source, Dir: e.Dir, Log: filepath.Join(s.AdoptedDir(key.Source), key.ID)}
			d.missing = true
		}
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b DeletedTask) int {
		return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// vanished reports whether a task disappeared since it was found, into the trash or for good, while its storage is
// still there. Then it is not a task of that storage any more.
func (s *Store) vanished(ctx context.Context, ref Ref) bool {
	return !exists(ref.Dir, "") && !s.HasJournal(ctx, ref) && (s.Shared() || exists(filepath.Dir(ref.Dir), ""))
}

// OverlayDir returns the folder of the overlay: the journal of labels and deletions that no task's own journal holds.
func (s *Store) OverlayDir() string { return filepath.Join(s.home(), "overlay") }

// OpenOverlay opens the journal of the overlay for reading.
func (s *Store) OpenOverlay(ctx context.Context) (journal.Reader, error) {
	return s.OpenJournal(ctx, s.OverlayRef())
}

// Overlay reads the overlay. It writes nothing.
func (s *Store) Overlay(ctx context.Context) (overlay.Table, error) {
	table := overlay.Table{}
	if err := s.EachInOverlay(ctx, table.Fold); err != nil {
		return nil, err
	}
	return table, nil
}

// EachInOverlay calls f with every entry of the overlay that can be read.
func (s *Store) EachInOverlay(ctx context.Context, f func(journal.Commit, overlay.Entry)) error {
	log, err := s.OpenOverlay(ctx)
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the overlay: %w", err)
	}
	return errors.Join(overlay.Each(ctx, log, f), log.Close())
}

// ApplyLabels puts the overlay's title, tags and pin of a task into the task's row. It may be called again.
func ApplyLabels(t *api.Summary, table overlay.Table) {
	have, ok := table[overlay.Key{Source: t.Source, ID: t.ID}]
	if !ok || t.Source == OwnSource {
		return
	}
	if have.Title != nil && *have.Title != "" {
		t.Title = *have.Title
		t.Inferred = slices.DeleteFunc(slices.Clone(t.Inferred), func(f string) bool { return f == "title" })
	}
	if have.Tags != nil {
		t.Tags = slices.Clone(*have.Tags)
	}
	if have.Pinned != nil {
		t.Pinned = *have.Pinned
	}
}

// overlayWait bounds how long a change waits for another process that holds the overlay. That process holds it for one
// change.
const overlayWait = 10 * time.Second

// ChangeOverlay calls f with the overlay locked and read, and a function that appends to it. Everything that moves
// tasks into or out of the trash goes through here, so it happens one at a time on a root.
func (s *Store) ChangeOverlay(ctx context.Context, f func(overlay.Table, overlay.Append) error) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	log, err := s.logs.own(ctx, s.OverlayDir(), filelog.Options{
		FS:          s.opt.FS,
		Clock:       s.opt.Now,
		By:          s.opt.Program,
		WaitForLock: overlayWait,
		Synced:      s.overlaySynced(),
		Seal:        s.Seal("overlay"),
	})
	if err != nil {
		return fmt.Errorf("open the overlay: %w", err)
	}
	add := func(entries ...overlay.Entry) error {
		draft := journal.Draft{At: s.opt.Now(), By: s.opt.Program}
		for _, e := range entries {
			raw, err := json.Marshal(e)
			if err != nil {
				return fmt.Errorf("write the overlay: %w", err)
			}
			draft.Events = append(draft.Events, raw)
		}
		if _, err := log.Append(ctx, draft); err != nil {
			return fmt.Errorf("write the overlay: %w", err)
		}
		return log.Barrier(ctx)
	}
	table := overlay.Table{}
	err = overlay.Each(ctx, log, table.Fold)
	if err == nil {
		err = s.repairDeletions(ctx, table, log.Epoch(), add)
	}
	if err == nil {
		err = f(table, add)
	}
	return errors.Join(err, log.Close())
}

// The feed names the overlay like a task, with a source and an id that no source and no task can have.
const (
	overlaySource = "~"
	overlayID     = "overlay"
)

// IsOverlay reports whether a reference, made by LogRef, names the overlay.
func IsOverlay(ref Ref) bool { return ref.Source == overlaySource }

// OverlayRef returns the overlay, whose journal is kept like a task's.
func (s *Store) OverlayRef() Ref {
	return Ref{ID: overlayID, Source: overlaySource, Dir: s.OverlayDir(), Log: s.OverlayDir()}
}

// overlaySynced reports the first and the last sync of a change of the overlay to the feed. The first one shows that
// a process holds the overlay; the last one follows all that the process did, so a task that the feed reports as
// deleted has moved. When the process is killed between the two, a server with followers reports the rest: see
// Announce.
func (s *Store) overlaySynced() func(epoch, head uint64, last bool) {
	report := s.announcer(s.OverlayRef())
	begun := false
	return func(epoch, head uint64, last bool) {
		if last || !begun {
			begun = true
			report(epoch, head, last)
		}
	}
}

// A deletion of an own task is recorded, and then its folder moves; a restore moves the folder first. A kill in between
// leaves an entry that is not true. The place of the folder decides, so nothing that looks for a task is misled. But
// the followers of all tasks got the event that the task was deleted, and would never get one that it is there.
//
// So the next holder of the overlay records it. To move first and then record was the alternative: then a kill makes a
// deletion that no follower ever gets, and finding it means comparing the whole trash with the overlay each time.

// untrueDeletions returns entries for own tasks that the overlay records as deleted although they are in their place.
// epoch is that of the overlay's holder.
func (s *Store) untrueDeletions(ctx context.Context, table overlay.Table, epoch uint64) (list []overlay.Entry) {
	for key, e := range table {
		if key.Source != OwnSource || e.Deleted == nil || !*e.Deleted || e.IsPurged() {
			continue
		}
		id, _, _ := strings.Cut(key.ID, "~") // ids hold none
		if s.Taken(ctx, s.TrashRef(key.ID)) || !s.HasJournal(ctx, s.OwnRef(id)) {
			continue
		}
		// When the previous owner recorded the deletion, the folder never moved. When an earlier owner did, others
		// followed that owner, so the folder came back out of the trash, which also undoes the deletion.
		kind := overlay.Kept
		if e.Epoch+1 < epoch {
			kind = overlay.Deleted
		}
		list = append(list, overlay.Entry{
			Type:    kind,
			Source:  OwnSource,
			ID:      id,
			Name:    key.ID,
			Deleted: new(false),
		})
	}
	return list
}

// repairDeletions records what became of deletions and restores that were killed half way. The caller holds the
// overlay.
func (s *Store) repairDeletions(ctx context.Context, table overlay.Table, epoch uint64, add overlay.Append) error {
	list := s.untrueDeletions(ctx, table, epoch)
	if len(list) == 0 {
		return nil
	}
	for i := range list {
		list[i].Head = s.HeadOf(ctx, s.OwnRef(list[i].ID))
	}
	if err := add(list...); err != nil {
		return err
	}
	for _, e := range list {
		table.Add(e, s.opt.Now())
	}
	return nil
}
