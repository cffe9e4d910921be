package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/overlay"
)

// Deleting destroys nothing. A task of Roost's own root moves into the trash with one rename, so a kill leaves it whole
// in one place or the other. A task in another tool's storage stays where it is, because that storage is only read;
// Roost hides it. A copy of it in the trash was considered: it would double the disk space without being asked, and
// protect from nothing that Roost does.

// TrashDir holds the folders of Roost's own deleted tasks.
func (s *Store) TrashDir() string { return filepath.Join(s.opt.Root, "trash") }

// TrashRef is the task of a folder in the trash.
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
	Name   string // restores it
	At     int64  // when it was deleted, in Unix milliseconds; 0 = unknown
	Hidden bool   // its folder is untouched in the storage of another tool
	Purged bool   // it is hidden, and its journal was purged

	missing bool // its storage is not configured any more, or its folder was removed
}

// QualifiedName names the deleted task so that it fits no other.
func (d DeletedTask) QualifiedName() string {
	if d.Hidden {
		return d.Name
	}
	return OwnSource + ":" + d.Name
}

// SummaryOfDeleted is the row of a deleted task, with its labels.
func (s *Store) SummaryOfDeleted(ctx context.Context, d DeletedTask, table overlay.Table) api.Summary {
	if d.missing {
		sum := api.Summary{ID: d.Ref.ID, Source: d.Ref.Source, Path: d.Ref.Dir, Status: "idle"}.Filled()
		ApplyLabels(&sum, table)
		return sum
	}
	sum := s.SummaryOf(ctx, d.Ref)
	ApplyLabels(&sum, table) // our own tasks have none there
	return sum
}

// Deleted lists the deleted tasks, newest first, and the hidden ones whose journal was purged. It reads no task.
func (s *Store) Deleted(ctx context.Context) ([]DeletedTask, error) {
	table, err := s.Overlay(ctx)
	if err != nil {
		return nil, err
	}
	found, err := names(s.TrashDir())
	if err != nil {
		return nil, err
	}
	var out []DeletedTask
	for _, name := range found {
		out = append(out, DeletedTask{Ref: s.TrashRef(name), Name: name, At: table[overlay.Key{Source: OwnSource, ID: name}].At})
	}
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
		if a.At != b.At {
			return int(min(max(b.At-a.At, -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// FindDeleted resolves the name of a deleted task as Find does: the whole name, or a unique beginning or end of the id.
func (s *Store) FindDeleted(ctx context.Context, given string) (DeletedTask, error) {
	all, err := s.Deleted(ctx)
	if err != nil {
		return DeletedTask{}, err
	}
	part := matching(given, all, func(d DeletedTask, source string) bool { return d.Ref.Source == source },
		func(d DeletedTask) string {
			if d.Hidden {
				return d.Ref.ID
			}
			return d.Name
		})
	switch len(part) {
	case 0:
		return DeletedTask{}, fmt.Errorf("%w in the trash: %q", ErrNotFound, given)
	case 1:
		return part[0], nil
	}
	e := &AmbiguousError{Given: given}
	for _, d := range part {
		ref := d.Ref
		if !d.Hidden {
			ref.ID = d.Name
		}
		e.Candidates = append(e.Candidates, ref)
	}
	return DeletedTask{}, e
}

// vanished reports whether a task disappeared since it was found, into the trash or for good, while its storage is
// still there. Then it is not a task of that storage any more.
func vanished(ref Ref) bool {
	return !exists(ref.Dir, "") && !HasJournal(ref.Log) && exists(filepath.Dir(ref.Dir), "")
}
