package projection

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/infer"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// image is what the projections of a state are made from. It is taken while no commit can change the state, so rendering
// it needs no lock.
type image struct {
	seq     uint64
	ui, api []roofmt.Element
	files   []task.FileRecord
	unknown []task.FileRecord // records that a rewind removed
	item    []byte            // the item as another tool wrote it
	meta    string            // blob with the task_metadata.json that another tool wrote
	row     usage.Row
	outputs []artifact
	gone    []artifact // outputs of calls that left the history
}

// artifact is a command's full output, projected to command-output/.
type artifact struct {
	name, blob string
	size       int64
}

func imageOf(s *task.State, now int64) (image, error) {
	img := image{seq: s.Seq, files: slices.Clone(s.Files), row: HistoryRow(s)}
	img.row.Now = now
	known := api.SetOf(api.Each(img.files, KeyOf))
	img.unknown = api.Some(s.FilesEver(), func(r task.FileRecord) (task.FileRecord, bool) { return r, !known[KeyOf(r)] })
	if s.Adopted != nil {
		img.item = s.Adopted.Item
	}
	img.meta = MetadataBlob(s)
	var err error
	if img.ui, err = elementsOf(s, s.UI()); err != nil {
		return img, err
	}
	if img.api, err = elementsOf(s, s.API()); err != nil {
		return img, err
	}
	waiting, err := s.ResultsSoFar()
	if err != nil {
		return img, err
	}
	if waiting != nil {
		img.api = append(img.api, roofmt.Element{Raw: waiting, Made: true})
	}
	for _, c := range s.Calls() {
		if c.Finished != nil && c.Finished.Output != "" && c.Finished.Artifact != "" {
			a := artifact{name: c.Finished.Artifact, blob: c.Finished.Output, size: c.Finished.Size}
			if m := s.Message(c.Message); m != nil && m.Hidden != "" {
				img.gone = append(img.gone, a)
				continue
			}
			img.outputs = append(img.outputs, a)
		}
	}
	return img, nil
}

// MetadataBlob returns the blob with the task_metadata.json that another tool wrote, "" when there is none.
func MetadataBlob(s *task.State) string {
	if s.Adopted != nil {
		for _, f := range s.Adopted.Files {
			if f.Name == roofmt.MetadataName {
				return f.Blob
			}
		}
	}
	if s.Fork != nil {
		return s.Fork.Metadata
	}
	return ""
}

// elementsOf reads messages. It fails when it cannot read one of them: a file that looks whole must lack no message.
func elementsOf(s *task.State, list []*task.Message) ([]roofmt.Element, error) {
	raws, err := s.Raws(list)
	if err != nil {
		return nil, err
	}
	out := make([]roofmt.Element, len(list))
	for i, m := range list {
		out[i] = roofmt.Element{Raw: raws[i], Made: !m.Foreign}
	}
	return out, nil
}

// renderItem returns the history row. Unknown members that another tool wrote stay in their places.
func (img image) renderItem(size int64) []byte {
	rows := api.Each(img.ui, func(e roofmt.Element) []byte { return e.Raw })
	row := img.row
	row.Size = size
	item := usage.HistoryItem(rows, row)
	if len(img.item) == 0 {
		return item
	}
	out := OverItem(img.item, item)
	compact, err := esjson.Compact(nil, out)
	if err != nil {
		return item
	}
	return compact
}

// itemKey returns the digest of the item without the time at which it was rendered.
func (img image) itemKey() string {
	img.row.Now, img.item = 0, nil
	return FileOf(img.renderItem(0)).SHA256
}

// render makes one file's bytes in memory.
func render(list []roofmt.Element) ([]byte, File, error) {
	var buf bytes.Buffer
	size := 2
	for _, e := range list {
		size += len(e.Raw) + 1
	}
	buf.Grow(size) // WriteArray may spell our own messages a little longer
	err := roofmt.WriteArray(&buf, func(yield func(roofmt.Element, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, File{}, fmt.Errorf("render history: %w", err)
	}
	return buf.Bytes(), FileOf(buf.Bytes()), nil
}

// RenderItem returns the history item that Roost would write for a task. size is the size of the task's files in
// bytes.
func RenderItem(s *task.State, now, size int64) ([]byte, error) {
	img, err := imageOf(s, now)
	if err != nil {
		return nil, err
	}
	return img.renderItem(size), nil
}

// metadata returns the task_metadata.json of an image: base without the records that a rewind removed, and with the
// records that count.
func (img image) metadata(base []byte) []byte {
	if len(img.unknown) > 0 {
		base = WithoutRecords(base, img.unknown)
	}
	return MergeFiles(base, img.files)
}

// HistoryRow holds the fields of Roo's history row that do not follow from a task's messages. The caller adds size and
// time.
func HistoryRow(s *task.State) usage.Row {
	row := usage.Row{
		ID: s.ID, RootTask: s.RootTask, ParentTask: s.Parent, Number: int64(s.Number),
		Workspace: s.Settings.Workspace, Mode: s.Settings.Mode, Profile: s.Settings.Profile,
	}
	if s.Parent == "" && len(s.Children) == 0 {
		return row // Roo gives a status only to tasks that have a parent or children
	}
	row.Status = "active"
	if run := s.Run; s.Parent != "" && (run != nil && run.Outcome == "completed" || run == nil && infer.Completed(s)) {
		row.Status = "completed"
	}
	for _, c := range s.Children {
		row.Family.Children = append(row.Family.Children, c.ID)
		row.Family.Delegated = c.ID
		if c.Ended && c.Outcome == "completed" {
			row.Family.Completed, row.Family.Result = c.ID, c.Result
		}
	}
	if c := s.Awaited(); c != nil {
		row.Status, row.Family.Delegated, row.Family.Awaiting = "delegated", c.ID, c.ID
	}
	return row
}

// OverItem puts a new history row over the item of another tool: unknown members keep their places, and a child that the
// task no longer waits for is removed.
func OverItem(item, row []byte) []byte {
	out := item
	for _, key := range usage.FamilyKeys {
		if _, has := esjson.Get(row, key); !has {
			if _, has := esjson.Get(out, key); has {
				out = esjson.Remove(out, key)
			}
		}
	}
	for key, val := range esjson.Members(row) {
		out = esjson.Set(out, key, val)
	}
	return out
}

// filesKey is the list in task_metadata.json.
const filesKey = "files_in_context"

// MergeFiles returns task_metadata.json with Roost's file records in it, as Roo's own tracker would leave it: entries
// of the editor keep their places, active entries of a path that Roost touched become stale, and a new entry carries
// the newest of each date of its path. Unknown members survive. Records that base holds already are not added again;
// with nothing to add, base comes back byte for byte. Without a base (nil, or not an object) the records alone make
// the file.
func MergeFiles(base []byte, records []task.FileRecord) []byte {
	if !esjson.Valid(base) || esjson.TypeOf(base) != esjson.TypeObject {
		return task.MetadataJSON(records)
	}
	m := merging{newest: map[string]*dates{}, held: map[FileKey]int{}}
	for raw := range esjson.Array(esjson.Member(base, filesKey)) {
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

// WithoutRecords returns task_metadata.json as another tool left it: without the entries that Roost made for these
// records, and with the last entry of each path active again. It is nil when nothing is left, or when file is not an
// object.
func WithoutRecords(file []byte, records []task.FileRecord) []byte {
	if !esjson.Valid(file) || esjson.TypeOf(file) != esjson.TypeObject {
		return nil
	}
	ours := api.SetOf(api.Each(records, KeyOf))
	left := merging{newest: map[string]*dates{}, held: map[FileKey]int{}}
	last := map[string]int{}
	hid := map[string]bool{} // paths with an active entry of Roost's
	for raw := range esjson.Array(esjson.Member(file, filesKey)) {
		key := keyIn(raw)
		if !ours[key] {
			last[key.path] = len(left.entries)
			left.keep(raw)
		} else if esjson.TextOf(raw, "record_state") == "active" {
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

// KeyOf returns the key of the entry that a record makes.
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
	d := m.of(esjson.TextOf(raw, "path"))
	d.read = max(d.read, esjson.IntOf(raw, "roo_read_date"))
	d.edit = max(d.edit, esjson.IntOf(raw, "roo_edit_date"))
	d.user = max(d.user, esjson.IntOf(raw, "user_edit_date"))
	if esjson.TextOf(raw, "record_state") == "active" {
		d.active = append(d.active, len(m.entries))
	}
	m.held[keyIn(raw)]++
	m.entries = append(m.entries, raw)
}

// keyIn returns the key of an entry of a file.
func keyIn(raw []byte) FileKey {
	source, member := esjson.TextOf(raw, "record_source"), "roo_read_date"
	switch source {
	case "user_edited":
		member = "user_edit_date"
	case "roo_edited":
		member = "roo_edit_date"
	}
	return FileKey{esjson.TextOf(raw, "path"), source, esjson.IntOf(raw, member)}
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
