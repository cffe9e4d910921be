package projection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/roofmt"
)

// indexTries bounds how often another process may change the index between our read and our write. When very many
// tasks end at the same time, each may change it once during another one's attempt.
const indexTries = 500

// Index is Roo's history index in Roost's own root, so that a copied root works in an editor. Roost does not read it.
// For the index of another tool's storage see Unlist.
//
// It collects the tasks that end while the index is being written. They share the next write, because each write writes
// the whole index.
type Index struct {
	tasks   string                   // the folder of task folders
	folders func() ([]string, error) // their names
	now     func() int64

	mu      sync.Mutex
	writing bool
	next    *indexWrite // of the tasks that ended since the write began
}

// NewIndex returns the index in a folder of task folders, whose names folders returns.
func NewIndex(tasks string, folders func() ([]string, error), now func() int64) *Index {
	return &Index{tasks: tasks, folders: folders, now: now}
}

type indexWrite struct {
	ids  []string
	done chan struct{}
	err  error
}

type indexItem struct {
	id  string
	raw []byte
}

// Put puts a task's history item into the index.
func (x *Index) Put(ctx context.Context, id string) error {
	if _, ok := readItem(filepath.Join(x.tasks, id), id); !ok {
		return nil // nothing was projected yet
	}
	x.mu.Lock()
	w := x.next
	if w == nil {
		w = &indexWrite{done: make(chan struct{})}
		x.next = w
	}
	w.ids = append(w.ids, id)
	first := !x.writing
	x.writing = true
	x.mu.Unlock()
	if first {
		x.write(context.WithoutCancel(ctx))
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlist removes a task's entry from the index of another tool's storage when the entry differs from
// history_item.json: Roo reads that file only for tasks that its index does not name, and would use the entry and write
// it back. An index of another shape stays as it is. done is false while Roo holds the lock or writes the index.
func Unlist(ctx context.Context, dir, id string, now int64) (done bool, err error) {
	tasks := filepath.Dir(dir)
	info, err := os.Lstat(filepath.Join(tasks, roofmt.IndexName))
	if err != nil || !info.Mode().IsRegular() {
		return true, nil //nolint:nilerr // there is none, or it is not Roo's
	}
	item, ok := readItem(dir, id)
	if !ok {
		return true, nil // Roo could not read the task again
	}
	index, err := roofmt.ReadIndex(tasks)
	if errors.Is(err, roofmt.ErrIndex) || errors.Is(err, fs.ErrPermission) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if entry, ok := index.Get(id); !ok || sameValue(entry, item) {
		return true, nil
	}
	index.Remove(id)
	err = replaceIndex(ctx, tasks, index, now, roofmt.Options{Once: true})
	switch {
	case errors.Is(err, roofmt.ErrLocked), errors.Is(err, roofmt.ErrChanged):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return true, nil
	}
	return err == nil, err
}

// write writes for all waiting tasks, until none waits.
func (x *Index) write(ctx context.Context) {
	for {
		x.mu.Lock()
		w := x.next
		x.next, x.writing = nil, w != nil
		x.mu.Unlock()
		if w == nil {
			return
		}
		w.err = x.put(ctx, w.ids, true)
		close(w.done)
	}
}

// put puts the history items of tasks into the index, and tries again when another process changed it since it was read.
func (x *Index) put(ctx context.Context, ids []string, sweep bool) error {
	for try := range indexTries {
		err := x.putOnce(ctx, x.items(ids), sweep)
		if !errors.Is(err, roofmt.ErrChanged) {
			return err
		}
		// a random pause, so that not all processes read it again at the same time
		if !sleep.For(ctx, rand.N(time.Duration(min(try, 10)+1)*time.Millisecond)) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("history index of %s: %w, again and again", x.tasks, roofmt.ErrChanged)
}

// putOnce puts items into the index; sweep also takes out the entries of tasks whose folders are gone. It builds a missing or
// broken index again from the folders: the index is derived. The file, also a broken one, is replaced only if it is
// still as it was read: another process may be building the index now.
func (x *Index) putOnce(ctx context.Context, items []indexItem, sweep bool) error {
	index, err := roofmt.ReadIndex(x.tasks)
	if err != nil && !errors.Is(err, roofmt.ErrIndex) {
		return err
	}
	changed := err != nil || !index.Print.Exists
	if changed {
		ids, err := x.folders()
		if err != nil {
			return err
		}
		items = append(x.items(ids), items...)
		changed = len(items) > 0
	}
	at := map[string]int{}
	for i, e := range index.Entries {
		if id, ok := esjson.GetString(e, "id"); ok {
			at[id] = i
		}
	}
	for _, item := range items {
		i, ok := at[item.id]
		switch {
		case !ok:
			at[item.id] = len(index.Entries)
			index.Entries = append(index.Entries, item.raw)
		case sameValue(index.Entries[i], item.raw):
			continue
		default:
			index.Entries[i] = item.raw
		}
		changed = true
	}
	before := len(index.Entries)
	if sweep {
		index.Entries = slices.DeleteFunc(index.Entries, x.orphan)
	}
	if !changed && len(index.Entries) == before {
		// A writer of the index may have been killed.
		if err := roofmt.Sweep(ctx, x.tasks); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return replaceIndex(ctx, x.tasks, index, x.now(), roofmt.Options{})
}

// replaceIndex writes an index, if its file is still as it was read.
func replaceIndex(ctx context.Context, tasks string, index *roofmt.Index, now int64, o roofmt.Options) error {
	data, err := index.Bytes(now)
	if err != nil {
		return err
	}
	return roofmt.Replace(ctx, tasks, []roofmt.Replacement{{Name: roofmt.IndexName, Bytes: data, Expect: &index.Print}}, o)
}

// items returns the projected history items of tasks; it leaves out tasks without one.
func (x *Index) items(ids []string) []indexItem {
	return api.Some(ids, func(id string) (indexItem, bool) {
		item, ok := readItem(filepath.Join(x.tasks, id), id)
		return indexItem{id, item}, ok
	})
}

// sameValue compares an entry with an item without regard to blanks, which an editor may have written.
func sameValue(entry, item []byte) bool {
	a, errA := esjson.Compact(nil, entry)
	b, errB := esjson.Compact(nil, item)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// readItem reads a projected history item that names its own folder.
func readItem(dir, id string) ([]byte, bool) {
	f, err := roofmt.OpenFile(dir, roofmt.ItemName)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(f); err != nil || !esjson.Valid(buf.Bytes()) {
		return nil, false
	}
	named, ok := esjson.GetString(buf.Bytes(), "id")
	return buf.Bytes(), ok && named == id
}

// Update puts the history items of many tasks into the index with one write: one write for each task would cost the
// square of their number.
func (x *Index) Update(ctx context.Context, ids []string) error { return x.put(ctx, ids, false) }

// Sweep removes the entries of the index whose task folders are gone.
func (x *Index) Sweep(ctx context.Context) error { return x.put(ctx, nil, true) }

func (x *Index) orphan(entry []byte) bool {
	id, ok := esjson.GetString(entry, "id")
	return ok && api.ValidTaskID(id) && !Exists(filepath.Join(x.tasks, id))
}

// Verify compares the index with the task folders: lacking counts tasks whose entry is missing or differs from their
// folder, orphans counts entries without a folder. An owned task may differ: its owner writes the entry later. Verify
// returns an error for an index that cannot be read. When the folder of tasks cannot be read it returns zeros: the state of
// the source reports that.
func (x *Index) Verify(owned func(id string) bool) (lacking, orphans int, err error) {
	ids, err := x.folders()
	if err != nil {
		return 0, 0, nil //nolint:nilerr // see above
	}
	index, err := roofmt.ReadIndex(x.tasks)
	if err != nil {
		return 0, 0, err
	}
	for _, item := range x.items(ids) {
		if have, ok := index.Get(item.id); (!ok || !esjson.Equal(have, item.raw)) && !owned(item.id) {
			lacking++
		}
	}
	for _, e := range index.Entries {
		if x.orphan(e) {
			orphans++
		}
	}
	return lacking, orphans, nil
}

// Rebuild makes the index again from the task folders. An index that cannot be read is kept beside it.
func (x *Index) Rebuild(ctx context.Context, unreadable bool) error {
	if unreadable {
		path := filepath.Join(x.tasks, roofmt.IndexName)
		if err := atomicfile.Rename(path, path+".damaged-"+strconv.FormatInt(x.now(), 10)); err != nil {
			return fmt.Errorf("keep the damaged history index: %w", err)
		}
	}
	ids, err := x.folders()
	if err != nil {
		return err
	}
	return x.put(ctx, ids, true)
}

// Exists reports whether there is anything at a path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Linked reports whether a folder is a symbolic link. Roost reads its target and never writes it.
func Linked(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}
