package roofmt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/esjson"
)

// Index is tasks/_index.json: Roo's list of history items. Entries are raw, so unknown members stay. It is not safe
// for several goroutines at once.
type Index struct {
	Version   int64
	UpdatedAt int64 // milliseconds
	Entries   [][]byte
	Print     Fingerprint // of the file it was read from
	extra     []byte      // the object as it was read, for members we do not know
}

// ErrIndex is wrapped when an index file is no index: it is left as it is, and can be built again from the folders.
var ErrIndex = errors.New("not a history index")

// ReadIndex reads the index in a tasks directory. A missing one is an empty index and no error. Entries without an id are kept.
// With an error that wraps ErrIndex the index holds nothing but Print: the broken file can be replaced as it was seen.
func ReadIndex(tasksDir string) (*Index, error) {
	path := filepath.Join(tasksDir, IndexName)
	raw, print, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Index{Version: 1}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history index: %w", err)
	}
	x, err := ParseIndex(raw)
	if err != nil {
		return &Index{Version: 1, Print: print}, fmt.Errorf("reading %s: %w", path, err)
	}
	x.Print = print
	return x, nil
}

// ParseIndex reads the text of an index.
func ParseIndex(raw []byte) (*Index, error) {
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return nil, fmt.Errorf("not a JSON object: %w", ErrIndex)
	}
	x := &Index{extra: raw}
	x.Version, _ = esjson.GetInt(raw, "version")
	x.UpdatedAt, _ = esjson.GetInt(raw, "updatedAt")
	list, ok := esjson.Get(raw, "entries")
	if x.Version != 1 || !ok || esjson.TypeOf(list) != esjson.TypeArray {
		return nil, fmt.Errorf("version %d, entries %v: %w", x.Version, esjson.TypeOf(list), ErrIndex)
	}
	for e := range esjson.Array(list) {
		x.Entries = append(x.Entries, e)
	}
	return x, nil
}

// Get returns the entry of a task.
func (x *Index) Get(id string) ([]byte, bool) {
	for _, e := range x.Entries {
		if text(e, "id") == id {
			return e, true
		}
	}
	return nil, false
}

// Remove removes the entries of a task, and reports whether there were any.
func (x *Index) Remove(id string) bool {
	n := len(x.Entries)
	x.Entries = slices.DeleteFunc(x.Entries, func(e []byte) bool { return text(e, "id") == id })
	return len(x.Entries) < n
}

// Bytes returns the text to be written: entries newest first (those without ts last, equal ones in their order), compact.
// now is the time of the change in milliseconds.
func (x *Index) Bytes(now int64) ([]byte, error) {
	entries := slices.Clone(x.Entries)
	slices.SortStableFunc(entries, func(a, b []byte) int {
		ta, _ := esjson.GetFloat(a, "ts")
		tb, _ := esjson.GetFloat(b, "ts")
		return cmp.Compare(tb, ta)
	})
	for i, e := range entries {
		var err error
		if entries[i], err = esjson.Compact(nil, e); err != nil {
			return nil, fmt.Errorf("writing entry %d of the history index: %w", i, err)
		}
	}
	var o esjson.Object
	o.Int("version", 1)
	o.Int("updatedAt", now)
	o.Raw("entries", esjson.List(entries))
	for k, v := range esjson.Members(x.extra) {
		if k != "version" && k != "updatedAt" && k != "entries" {
			o.Raw(k, v)
		}
	}
	return o.Bytes(), nil
}
