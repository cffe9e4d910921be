package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// Intake is a file that another program changed, and what is made of it.
type Intake struct {
	File    string
	Event   *task.ForeignImported // nil when the change is not applied
	Refused string                // why not
	Added   int
	Changed int
	Lacking int
}

// ErrForeignBusy: another program is writing the task's files just now.
var ErrForeignBusy = errors.New("another program is writing this task")

// foreignChanges compares the folder with what we know we wrote. A file whose
// bytes are ours is never looked into.
func foreignChanges(s *task.State, folder *roofmt.Folder, w watermark) []Intake {
	var out []Intake
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		h, ours := task.UI, s.UI()
		if doc.Kind == roofmt.API {
			h, ours = task.API, s.API()
		}
		if doc.State == roofmt.Missing && doc.Source == "" {
			continue // nothing to take in; the projection puts it back
		}
		if w.wrote(doc) {
			continue
		}
		if change, foreign := judge(doc, h, ours, w.knows(doc.Name)); foreign {
			out = append(out, change)
		}
	}
	return out
}

// judge decides what a foreign file means. It is applied only when it is whole
// and has everything that we acknowledged.
func judge(doc *roofmt.Document, h task.History, ours []*task.Message, known bool) (Intake, bool) {
	change := Intake{File: doc.Name}
	switch {
	case !doc.Intact():
		change.Refused = fmt.Sprintf("it is %s", doc.State)
		return change, true
	case doc.Len() == 0 && len(ours) > 0:
		change.Refused = "it has become an empty list"
		return change, true
	}
	elements := make([][]byte, 0, doc.Len())
	for raw, err := range doc.All() {
		if err != nil {
			change.Refused = err.Error()
			return change, true
		}
		elements = append(elements, raw)
	}
	m := task.MatchForeign(ours, h, elements)
	if m.Same() {
		return change, false
	}
	if !known && len(m.Added) == 0 && len(m.Changed) == 0 && prefixOf(m, ours) {
		return change, false // an older projection of ours, for all we know
	}
	change.Added, change.Changed = len(m.Added), len(m.Changed)
	for _, msg := range m.Lacking {
		if !task.Expendable(msg, elements) {
			change.Lacking++
		}
	}
	if change.Lacking > 0 {
		change.Refused = fmt.Sprintf("it lacks %d messages that Roost has (another window wrote it from its memory)", change.Lacking)
		return change, true
	}
	event := task.ForeignImported{History: h, Blob: doc.Source, Size: doc.SourcePrint.Size, Rows: m.Rows}
	for _, list := range [][]int{m.Added, m.Changed} {
		for _, i := range list {
			event.Rows[i].Off, event.Rows[i].Len = doc.Spans[i].Off, doc.Spans[i].Len
		}
	}
	change.Event = &event
	return change, true
}

// prefixOf reports whether only our newest messages are lacking.
func prefixOf(m task.Match, ours []*task.Message) bool {
	n := len(ours) - len(m.Lacking)
	return len(m.Lacking) > 0 && m.Lacking[0] == ours[n] && n == len(m.Rows)
}

// stableWait is how long a foreign writer is waited for.
const stableWait = 3 * time.Second

// readStable reads the folder at a moment when nobody writes it.
func readStable(ctx context.Context, dir string) (*roofmt.Folder, error) {
	deadline := time.Now().Add(stableWait)
	for {
		folder, err := roofmt.Read(ctx, dir)
		if err != nil {
			return nil, err
		}
		if !locked(folder) && !folder.UI.Unstable && !folder.API.Unstable {
			return folder, nil
		}
		folder.Close()
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s: %w (lock %v)", dir, ErrForeignBusy, folder.Locks)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// staleLock is the age at which a lock of Roo has no holder any more.
const staleLock = 31 * time.Second

// locked reports whether a living program holds a lock on one of the files.
func locked(folder *roofmt.Folder) bool {
	for _, name := range folder.Locks {
		info, err := os.Lstat(filepath.Join(folder.Dir, name+".lock"))
		if err == nil && time.Since(info.ModTime()) <= staleLock {
			return true
		}
	}
	return false
}

// takeIn commits what another program changed. A state that cannot be applied is
// kept as a blob and reported; our branch stays the head.
func (t *Task) takeIn(ctx context.Context, folder *roofmt.Folder) ([]Intake, error) {
	changes := foreignChanges(t.state, folder, readWatermark(t.Ref.Log))
	var events []task.Event
	for i, change := range changes {
		doc := folder.UI
		if change.File == folder.API.Name {
			doc = folder.API
		}
		name := doc.Source
		if name == "" {
			name = doc.Name
		}
		var hash string
		var size int64
		if doc.Source != "" { // else it cannot be read, and there is nothing to keep
			var err error
			if hash, size, err = t.keepDocument(ctx, doc); err != nil {
				return nil, fmt.Errorf("task %s: keep the changed %s: %w", t.Ref.ID, name, err)
			}
		}
		if change.Event == nil {
			events = append(events, task.ForeignRefused{Name: name, Blob: hash, Size: size, Reason: change.Refused})
			continue
		}
		changes[i].Event.Blob, changes[i].Event.Size = hash, size
		changes[i].Event.Tool = t.Ref.Tool
		events = append(events, *changes[i].Event)
	}
	if len(events) == 0 {
		return changes, nil
	}
	if err := t.Commit(ctx, events...); err != nil {
		return nil, err
	}
	return changes, t.Barrier(ctx)
}
