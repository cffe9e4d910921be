package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// indexTries bounds how often another process may come in between.
const indexTries = 20

// indexed puts a task's history item into the index of Roost's own root, so that
// a copied root works in an editor. The index of another tool's storage is left
// to that tool.
func (s *Store) indexed(ctx context.Context, ref Ref) error {
	if !ref.Own {
		return nil
	}
	item, ok := readItem(ref.Dir, ref.ID)
	if !ok {
		return nil // nothing was projected yet
	}
	for range indexTries {
		err := s.putIndex(ctx, ref.ID, item)
		if !errors.Is(err, roofmt.ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("history index of %s: %w, again and again", s.tasksDir(), roofmt.ErrChanged)
}

func (s *Store) putIndex(ctx context.Context, id string, item []byte) error {
	index, err := roofmt.ReadIndex(s.tasksDir())
	if err != nil && !errors.Is(err, roofmt.ErrIndex) {
		return err
	}
	// Whatever stands there, also a broken file, is only replaced as it was read:
	// another process may be building the index just now.
	expect := index.Print
	if err != nil || !expect.Exists {
		// It is derived: build it again from the folders.
		if index, err = s.newIndex(); err != nil {
			return err
		}
	} else if have, ok := index.Get(id); ok && sameValue(have, item) {
		return nil
	}
	if err := index.Put(item); err != nil {
		return err
	}
	index.Entries = slices.DeleteFunc(index.Entries, func(e []byte) bool {
		id, ok := esjson.GetString(e, "id")
		return ok && roofmt.ValidID(id) && !exists(s.tasksDir(), id)
	})
	data, err := index.Bytes(s.opt.Now())
	if err != nil {
		return err
	}
	return roofmt.Replace(ctx, s.tasksDir(), []roofmt.Replacement{
		{Name: roofmt.IndexName, Bytes: data, Expect: &expect},
	}, roofmt.Options{})
}

// sameValue compares an entry with an item as it would stand in the index: an editor
// may have written it with blanks.
func sameValue(entry, item []byte) bool {
	a, errA := esjson.Compact(nil, entry)
	b, errB := esjson.Compact(nil, item)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// newIndex is the index that the folders give.
func (s *Store) newIndex() (*roofmt.Index, error) {
	ids, err := names(s.tasksDir())
	if err != nil {
		return nil, err
	}
	index := &roofmt.Index{Version: 1}
	for _, id := range ids {
		if item, ok := readItem(filepath.Join(s.tasksDir(), id), id); ok {
			if err := index.Put(item); err != nil {
				return nil, err
			}
		}
	}
	return index, nil
}

// readItem reads a projected history item that names its own folder.
func readItem(dir, id string) ([]byte, bool) {
	f, err := os.OpenInRoot(dir, roofmt.ItemName)
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
