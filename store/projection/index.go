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
	"github.com/roost-dev/roost/roofmt"
)

// indexTries bounds how often another process may change the index between our read and our write. When very many tasks
// end at the same time, each may do so once to all others.
const indexTries = 500

// retried changes the index, and tries again when another process changed it since it was read.
func (x *Index) retried(ctx context.Context, change func() error) error {
	for try := range indexTries {
		err := change()
		if !errors.Is(err, roofmt.ErrChanged) {
			return err
		}
		select { // a random pause, so that not all processes read it again at the same time
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(time.Duration(min(try, 10)+1) * time.Millisecond)):
		}
	}
	return fmt.Errorf("history index of %s: %w, again and again", x.tasks, roofmt.ErrChanged)
}

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

// NewIndex is the index in a folder of task folders, whose names folders returns.
func NewIndex(tasks string, folders func() ([]string, error), now func() int64) *Index {
	return &Index{tasks: tasks, folders: folders, now: now}
}

type indexWrite struct {
	items []indexItem
	done  chan struct{}
	err   error
}

type indexItem struct {
	id  string
	raw []byte
}

// Put puts a task's history item into the index.
func (x *Index) Put(ctx context.Context, id string) error {
	item, ok := readItem(filepath.Join(x.tasks, id), id)
	if !ok {
		return nil // nothing was projected yet
	}
	x.mu.Lock()
	w := x.next
	if w == nil {
		w = &indexWrite{done: make(chan struct{})}
		x.next = w
	}
	w.items = append(w.items, indexItem{id, item})
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
	data, err := index.Bytes(now)
	if err != nil {
		return false, err
	}
	err = roofmt.Replace(ctx, tasks, []roofmt.Replacement{
		{Name: roofmt.IndexName, Bytes: data, Expect: &index.Print},
	}, roofmt.Options{Once: true})
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
		w.err = x.retried(ctx, func() error { return x.putItems(ctx, w.items) })
		close(w.done)
	}
}

func (x *Index) putItems(ctx context.Context, items []indexItem) error {
	index, err := roofmt.ReadIndex(x.tasks)
	if err != nil && !errors.Is(err, roofmt.ErrIndex) {
		return err
	}
	// The file, also a broken one, is replaced only if it is still as it was read: another process may be building the
	// index now.
	expect := index.Print
	if err != nil || !expect.Exists {
		// It is derived: build it again from the folders.
		if index, err = x.fresh(); err != nil {
			return err
		}
	} else if !slices.ContainsFunc(items, func(item indexItem) bool {
		have, ok := index.Get(item.id)
		return !ok || !sameValue(have, item.raw)
	}) {
		return nil
	}
	for _, item := range items {
		if err := index.Put(item.raw); err != nil {
			return err
		}
	}
	index.Entries = slices.DeleteFunc(index.Entries, x.orphan)
	data, err := index.Bytes(x.now())
	if err != nil {
		return err
	}
	return roofmt.Replace(ctx, x.tasks, []roofmt.Replacement{
		{Name: roofmt.IndexName, Bytes: data, Expect: &expect},
	}, roofmt.Options{})
}

// sameValue compares an entry with an item without regard to blanks, which an editor may have written.
func sameValue(entry, item []byte) bool {
	a, errA := esjson.Compact(nil, entry)
	b, errB := esjson.Compact(nil, item)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// fresh is the index that the folders give.
func (x *Index) fresh() (*roofmt.Index, error) {
	ids, err := x.folders()
	if err != nil {
		return nil, err
	}
	index := &roofmt.Index{Version: 1}
	for _, id := range ids {
		if item, ok := readItem(filepath.Join(x.tasks, id), id); ok {
			if err := index.Put(item); err != nil {
				return nil, err
			}
		}
	}
	return index, nil
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

// Update puts the history items of many tasks into the index with one write: one write
// for each task would cost the square of their number.
func (x *Index) Update(ctx context.Context, ids []string) error {
	return x.retried(ctx, func() error { return x.putAll(ctx, ids) })
}

func (x *Index) putAll(ctx context.Context, ids []string) error {
	index, err := roofmt.ReadIndex(x.tasks)
	if err != nil && !errors.Is(err, roofmt.ErrIndex) {
		return err
	}
	expect := index.Print
	if err != nil || !expect.Exists { // it is derived: it is built again from the folders
		if ids, err = x.folders(); err != nil {
			return err
		}
	}
	at := map[string]int{}
	for i, e := range index.Entries {
		if id, ok := esjson.GetString(e, "id"); ok {
			at[id] = i
		}
	}
	put := false
	for _, id := range ids {
		item, ok := readItem(filepath.Join(x.tasks, id), id)
		if !ok || esjson.TypeOf(item) != esjson.TypeObject {
			continue
		}
		if item, err = esjson.Compact(nil, item); err != nil { // as the index will hold it
			return fmt.Errorf("history item of %s: %w", id, err)
		}
		i, ok := at[id]
		switch {
		case ok && bytes.Equal(index.Entries[i], item):
			continue
		case ok:
			index.Entries[i] = item
		default:
			at[id] = len(index.Entries)
			index.Entries = append(index.Entries, item)
		}
		put = true
	}
	if !put {
		// A writer of the index may have been killed.
		if err := roofmt.Sweep(ctx, x.tasks); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := index.Bytes(x.now())
	if err != nil {
		return err
	}
	return roofmt.Replace(ctx, x.tasks, []roofmt.Replacement{{Name: roofmt.IndexName, Bytes: data, Expect: &expect}}, roofmt.Options{})
}

// Sweep removes the entries of the index whose task folders are gone. A missing or broken index is left
// to its next writer.
func (x *Index) Sweep(ctx context.Context) error {
	return x.retried(ctx, func() error {
		index, err := roofmt.ReadIndex(x.tasks)
		if err != nil || !index.Print.Exists {
			return nil //nolint:nilerr // it is derived
		}
		before := len(index.Entries)
		index.Entries = slices.DeleteFunc(index.Entries, x.orphan)
		if len(index.Entries) == before {
			return nil
		}
		data, err := index.Bytes(x.now())
		if err != nil {
			return err
		}
		return roofmt.Replace(ctx, x.tasks, []roofmt.Replacement{
			{Name: roofmt.IndexName, Bytes: data, Expect: &index.Print},
		}, roofmt.Options{})
	})
}

func (x *Index) orphan(entry []byte) bool {
	id, ok := esjson.GetString(entry, "id")
	return ok && api.ValidTaskID(id) && !exists(filepath.Join(x.tasks, id))
}

// Verify compares the index with the task folders: how many tasks are not in it as their folders have them, and how many
// of its tasks have no folder. It returns an error for an index that cannot be read. A folder of tasks that cannot be
// read gives nothing: the state of the source reports it.
func (x *Index) Verify() (lacking, orphans int, err error) {
	ids, err := x.folders()
	if err != nil {
		return 0, 0, nil //nolint:nilerr // see above
	}
	index, err := roofmt.ReadIndex(x.tasks)
	if err != nil {
		return 0, 0, err
	}
	for _, id := range ids {
		item, ok := readItem(filepath.Join(x.tasks, id), id)
		if !ok || esjson.TypeOf(item) != esjson.TypeObject {
			continue
		}
		if have, ok := index.Get(id); !ok || !esjson.Equal(have, item) {
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
	if err := x.Update(ctx, ids); err != nil {
		return err
	}
	return x.Sweep(ctx)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// linked reports whether a folder is a symbolic link. Roost reads its target and never writes it.
func linked(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}
