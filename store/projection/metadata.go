package projection

import (
	"strconv"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// filesKey is the list in task_metadata.json.
const filesKey = "files_in_context"

// MergeFiles is task_metadata.json with Roost's file records in it, as Roo's own tracker would leave it: entries of the
// editor keep their places, active entries of a path that Roost touched go stale, and a new entry carries the newest of
// each date of its path. Unknown members survive. Records that base holds already are not added again; with nothing to
// add, base comes back byte for byte. Without a base (nil, or not an object) the records alone make the file.
func MergeFiles(base []byte, records []task.FileRecord) []byte {
	if !esjson.Valid(base) || esjson.TypeOf(base) != esjson.TypeObject {
		return task.MetadataJSON(records)
	}
	m := merging{newest: map[string]*dates{}, held: map[FileKey]int{}}
	list, _ := esjson.Get(base, filesKey)
	for raw := range esjson.Array(list) {
		m.keep(raw)
	}
	added := false
	for _, r := range records {
		key := KeyOf(r)
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
	out, err := esjson.Compact(nil, esjson.Set(base, filesKey, esjson.List(m.entries)))
	if err != nil {
		return task.MetadataJSON(records)
	}
	return out
}

// WithoutRecords is task_metadata.json as another tool left it: without the entries that these records of Roost's made,
// and with the last entry of each path active again. It is nil when nothing is left, or when file is not an object.
func WithoutRecords(file []byte, records []task.FileRecord) []byte {
	if !esjson.Valid(file) || esjson.TypeOf(file) != esjson.TypeObject {
		return nil
	}
	ours := map[FileKey]bool{}
	for _, r := range records {
		ours[KeyOf(r)] = true
	}
	left := merging{newest: map[string]*dates{}, held: map[FileKey]int{}}
	last := map[string]int{}
	hid := map[string]bool{} // paths with an active entry of Roost's
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
	out, err := esjson.Compact(nil, esjson.Set(file, filesKey, esjson.List(left.entries)))
	if err != nil {
		return nil
	}
	return out
}

// FileKey distinguishes Roost's entries from the editor's: no other program writes the same path and source with the
// millisecond of Roost's commit.
type FileKey struct {
	path, source string
	at           int64
}

// KeyOf is the key of the entry that a record makes.
func KeyOf(r task.FileRecord) FileKey { return FileKey{r.Path, r.Source, r.RecordedAt} }

// dates are the newest dates of each kind for one path, and the indexes of its active entries.
type dates struct {
	read, edit, user int64
	active           []int
}

// merging builds a list of entries.
type merging struct {
	entries [][]byte
	newest  map[string]*dates
	held    map[FileKey]int
}

func (m *merging) of(path string) *dates {
	d := m.newest[path]
	if d == nil {
		d = &dates{}
		m.newest[path] = d
	}
	return d
}

// keep adds an entry of the file as it is.
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
func keyIn(raw []byte) FileKey {
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
	return FileKey{path, source, at}
}

// add appends the entry of a record of Roost's, and marks the active entries of its path as stale.
func (m *merging) add(r task.FileRecord) {
	d := m.of(r.Path)
	for _, i := range d.active {
		m.entries[i] = esjson.Set(m.entries[i], "record_state", []byte(`"stale"`))
	}
	read, edit, user := max(d.read, r.RooRead), max(d.edit, r.RooEdit), max(d.user, r.UserEdit)
	switch r.Source { // its own date counts as it is, also after a clock went back
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

func dateJSON(ms int64) []byte {
	if ms == 0 {
		return []byte("null")
	}
	return strconv.AppendInt(nil, ms, 10)
}
