package store

import (
	"errors"
	"io"
	"strconv"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// filesKey is the list in task_metadata.json.
const filesKey = "files_in_context"

// mergeMetadata is task_metadata.json with our file records in it, as Roo's own
// tracker would have left it: entries of the editor stay where they are, active
// ones of a path that we touched go stale, and a new entry carries the newest of
// each date of its path. Members that nobody knows survive. Records that base
// holds already are not added again; with nothing to add, base comes back byte
// for byte. Without a base (nil, or no object) the records alone make the file.
func mergeMetadata(base []byte, records []task.FileRecord) []byte {
	if !esjson.Valid(base) || esjson.TypeOf(base) != esjson.TypeObject {
		return task.MetadataJSON(records)
	}
	m := merging{newest: map[string]*dates{}, held: map[entryKey]int{}}
	list, _ := esjson.Get(base, filesKey)
	for raw := range esjson.Array(list) {
		m.keep(raw)
	}
	added := false
	for _, r := range records {
		key := keyOf(r)
		if m.held[key] > 0 {
			m.held[key]--
			continue
		}
		m.add(r)
		added = true
	}
	if !added {
		return base
	}
	out, err := esjson.Compact(nil, esjson.Set(base, filesKey, m.bytes()))
	if err != nil {
		return task.MetadataJSON(records)
	}
	return out
}

// metadata is task_metadata.json of an image: base without the records that a rewind took, and with those that count.
func (img image) metadata(base []byte) []byte {
	if len(img.unknown) > 0 {
		base = withoutRecords(base, img.unknown)
	}
	return mergeMetadata(base, img.files)
}

// maxKnownFiles bounds, in bytes, the task_metadata.json that FilesKnownElsewhere reads: the file is held in memory.
const maxKnownFiles = 256 << 20

// FilesKnownElsewhere is what another tool knows of the files of a task: its entries of task_metadata.json, from the task's
// folder or, when that file is unreadable, from the adoption. Roost's own entries are left out: a fork derives those from
// its history.
func (v *View) FilesKnownElsewhere() []byte {
	var data []byte
	if f, err := roofmt.OpenFile(v.Ref.Dir, roofmt.MetadataName); err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxKnownFiles+1))
		if err = errors.Join(err, f.Close()); err != nil || len(data) > maxKnownFiles || !esjson.Valid(data) {
			data = nil
		}
	}
	if data == nil {
		if blob := metadataOf(v.State); blob != "" && v.Log != nil {
			data, _ = fold.Payloads(v.Log).Range(blob, 0, -1) // a payload that is lost counts as none
		}
	}
	return withoutRecords(data, v.State.FilesEver())
}

// withoutRecords is task_metadata.json as another tool left it: without the entries that
// these records of ours made, and with the last entry of each path active again. nil when
// nothing is left, or it is no object.
func withoutRecords(file []byte, records []task.FileRecord) []byte {
	if !esjson.Valid(file) || esjson.TypeOf(file) != esjson.TypeObject {
		return nil
	}
	ours := map[entryKey]bool{}
	for _, r := range records {
		ours[keyOf(r)] = true
	}
	left := merging{newest: map[string]*dates{}, held: map[entryKey]int{}}
	last := map[string]int{}
	hid := map[string]bool{} // paths with an active entry of ours
	list, _ := esjson.Get(file, filesKey)
	for raw := range esjson.Array(list) {
		key := keyIn(raw)
		if !ours[key] {
			last[key.path] = len(left.entries)
			left.keep(raw)
		} else if state, _ := esjson.GetString(raw, "record_state"); state == "active" {
			hid[key.path] = true
		}
	}
	if len(left.entries) == 0 {
		return nil
	}
	for path := range hid {
		if i, ok := last[path]; ok && len(left.of(path).active) == 0 {
			left.entries[i] = esjson.Set(left.entries[i], "record_state", []byte(`"active"`))
		}
	}
	out, err := esjson.Compact(nil, esjson.Set(file, filesKey, left.bytes()))
	if err != nil {
		return nil
	}
	return out
}

// entryKey tells our entries from the editor's: nobody else writes the same path
// and source with the millisecond of our commit.
type entryKey struct {
	path, source string
	at           int64
}

func keyOf(r task.FileRecord) entryKey { return entryKey{r.Path, r.Source, r.RecordedAt} }

// dates are the newest of each kind of one path, and its entries that are active.
type dates struct {
	read, edit, user int64
	active           []int
}

// merging is a list of entries in the making.
type merging struct {
	entries [][]byte
	newest  map[string]*dates
	held    map[entryKey]int
}

func (m *merging) of(path string) *dates {
	d := m.newest[path]
	if d == nil {
		d = &dates{}
		m.newest[path] = d
	}
	return d
}

// keep takes over an entry as it stands.
func (m *merging) keep(raw []byte) {
	path, _ := esjson.GetString(raw, "path")
	state, _ := esjson.GetString(raw, "record_state")
	read, _ := esjson.GetInt(raw, "roo_read_date")
	edit, _ := esjson.GetInt(raw, "roo_edit_date")
	user, _ := esjson.GetInt(raw, "user_edit_date")
	d := m.of(path)
	d.read, d.edit, d.user = max(d.read, read), max(d.edit, edit), max(d.user, user)
	if state == "active" {
		d.active = append(d.active, len(m.entries))
	}
	m.held[keyIn(raw)]++
	m.entries = append(m.entries, raw)
}

// keyIn is the key of an entry of a file.
func keyIn(raw []byte) entryKey {
	path, _ := esjson.GetString(raw, "path")
	source, _ := esjson.GetString(raw, "record_source")
	member := "roo_read_date"
	switch source {
	case "user_edited":
		member = "user_edit_date"
	case "roo_edited":
		member = "roo_edit_date"
	}
	at, _ := esjson.GetInt(raw, member)
	return entryKey{path, source, at}
}

// add appends a record of ours.
func (m *merging) add(r task.FileRecord) {
	d := m.of(r.Path)
	for _, i := range d.active {
		m.entries[i] = esjson.Set(m.entries[i], "record_state", []byte(`"stale"`))
	}
	read, edit, user := max(d.read, r.RooRead), max(d.edit, r.RooEdit), max(d.user, r.UserEdit)
	switch r.Source { // its own date is what it is, also after a clock went back
	case "user_edited":
		user = r.UserEdit
	case "roo_edited":
		read, edit = r.RooRead, r.RooEdit
	default:
		read = r.RooRead
	}
	d.read, d.edit, d.user = max(d.read, read), max(d.edit, edit), max(d.user, user)
	d.active = []int{len(m.entries)}
	var o esjson.Object
	o.String("path", r.Path)
	o.String("record_state", "active")
	o.String("record_source", r.Source)
	o.Raw("roo_read_date", dateJSON(read))
	o.Raw("roo_edit_date", dateJSON(edit))
	o.Raw("user_edit_date", dateJSON(user))
	m.entries = append(m.entries, o.Bytes())
}

func (m *merging) bytes() []byte {
	out := []byte{'['}
	for i, e := range m.entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

func dateJSON(ms int64) []byte {
	if ms == 0 {
		return []byte("null")
	}
	return strconv.AppendInt(nil, ms, 10)
}
