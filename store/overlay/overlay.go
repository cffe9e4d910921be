// Package overlay reads the overlay: the journal of what users file under tasks whose own journals cannot hold it.
//
// It holds the titles, tags and pins of other tools' tasks, and the deletions, restores and purges of all tasks. It
// is one journal in Roost's root, so a crash loses nothing that was acknowledged, and two processes take turns. A
// file for each task was the alternative: it would keep no history, and a list of ten thousand tasks would open as
// many files.
//
// A damaged commit loses its change and no other. Unknown events are skipped.
package overlay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
)

// Types of entries.
const (
	Changed = "task.changed" // title, tags or pin
	Deleted = "task.deleted" // deleted, restored or purged

	// Kept changes nothing: a deletion was recorded, and the folder did not move.
	Kept = "task.kept"
)

// Entry is one event of the overlay. Absent members stay as they are.
type Entry struct {
	Type    string    `json:"type"`
	Source  string    `json:"source"`
	ID      string    `json:"id"`
	Title   *string   `json:"title,omitempty"`
	Tags    *[]string `json:"tags,omitempty"`
	Pinned  *bool     `json:"pinned,omitempty"`
	Deleted *bool     `json:"deleted,omitempty"` // a foreign task is hidden; a task of our own was moved
	Purged  *bool     `json:"purged,omitempty"`
	Name    string    `json:"name,omitempty"` // name of our own task's folder in the trash
	Dir     string    `json:"dir,omitempty"`  // path of the task's folder, for when its storage is not configured any more
	Head    uint64    `json:"head,omitempty"` // the newest commit of the task's journal at that time
	Undoes  uint64    `json:"undoes,omitempty"`
	Redoes  uint64    `json:"redoes,omitempty"` // commits of the overlay: see task.Changed
	With    string    `json:"with,omitempty"`   // SOURCE:ID of the parent whose deletion deleted this subtask

	At    int64  `json:"-"` // time of the deletion or change, in Unix milliseconds
	Epoch uint64 `json:"-"` // epoch of the owner that deleted it
}

// IsHidden reports whether the entry hides a task of another tool.
func (e Entry) IsHidden() bool { return e.Source != api.OwnSource && e.Deleted != nil && *e.Deleted }

// IsPurged reports whether the task was purged.
func (e Entry) IsPurged() bool { return e.Purged != nil && *e.Purged }

// Key names a task in a Table: the source and the id, or, for a deletion of our own task, its folder in the trash.
type Key struct{ Source, ID string }

// Table is the folded overlay.
type Table map[Key]Entry

// Append adds entries to the overlay with one durable commit.
type Append func(...Entry) error

// Fold folds an entry of a commit in.
func (t Table) Fold(c journal.Commit, e Entry) {
	if e.Type == Changed || e.Type == Deleted || e.Type == Kept {
		e.Epoch = c.Epoch
		t.Add(e, c.At)
	}
}

// Each calls f with every entry of an open overlay that can be read.
func Each(ctx context.Context, log journal.Reader, f func(journal.Commit, Entry)) error {
	for c, err := range journal.Whole(log.Read(ctx, 1)) {
		if err != nil {
			return fmt.Errorf("read the overlay: %w", err)
		}
		for _, e := range Entries(c) {
			f(c, e)
		}
	}
	return nil
}

// Entries returns the entries of a commit that can be read.
func Entries(c journal.Commit) []Entry {
	return api.Some(c.Events, func(raw journal.Event) (e Entry, ok bool) {
		ok = json.Unmarshal(raw, &e) == nil
		return e, ok
	})
}

// Add folds one more entry in.
func (t Table) Add(e Entry, at int64) {
	key := Key{e.Source, e.ID}
	if e.Name != "" {
		key.ID = e.Name // its folder names the deletion of our own task
	}
	have := t[key]
	e.Tags, e.Title, e.Pinned = cmp.Or(e.Tags, have.Tags), cmp.Or(e.Title, have.Title), cmp.Or(e.Pinned, have.Pinned)
	e.Purged = cmp.Or(e.Purged, have.Purged)
	e.At = at
	if e.Deleted == nil || !*e.Deleted {
		e.With = have.With
	}
	if e.Deleted == nil {
		e.Deleted, e.At, e.Epoch = have.Deleted, have.At, have.Epoch
	}
	e.Dir = cmp.Or(e.Dir, have.Dir)
	t[key] = e
}

// Hidden reports whether a task of another tool's storage was deleted in Roost.
func (t Table) Hidden(source, id string) bool { return t[Key{source, id}].IsHidden() }

// HasTitle reports whether a task of another tool got a title in Roost.
func (t Table) HasTitle(source, id string) bool {
	title := t[Key{source, id}].Title
	return title != nil && *title != ""
}
