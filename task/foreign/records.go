package foreign

import (
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// Records returns the entries of a task_metadata.json that another program wrote, with the member names of Roo and of
// Cline. They hold dates and nothing about the content. A file of another shape has no records; an entry without a
// path is left out. RecordedAt is the date of what the entry records, or the newest date when the entry does not name
// its source.
func Records(metadata []byte) []task.FileRecord {
	if !esjson.Valid(metadata) || esjson.TypeOf(metadata) != esjson.TypeObject {
		return nil
	}
	list, _ := esjson.Get(metadata, "files_in_context")
	if esjson.TypeOf(list) != esjson.TypeArray {
		return nil
	}
	var out []task.FileRecord
	for raw := range esjson.Array(list) {
		if esjson.TypeOf(raw) != esjson.TypeObject {
			continue
		}
		date := func(names ...string) (ms int64) {
			for _, name := range names {
				n, _ := esjson.GetInt(raw, name)
				ms = max(ms, n)
			}
			return ms
		}
		r := task.FileRecord{
			RooRead: date("roo_read_date", "cline_read_date"), RooEdit: date("roo_edit_date", "cline_edit_date"),
			UserEdit: date("user_edit_date"),
		}
		r.Path, _ = esjson.GetString(raw, "path")
		r.State, _ = esjson.GetString(raw, "record_state")
		r.Source, _ = esjson.GetString(raw, "record_source")
		if r.Path == "" || strings.IndexByte(r.Path, 0) >= 0 {
			continue
		}
		switch r.Source {
		case "cline_edited":
			r.Source = "roo_edited"
			fallthrough
		case "roo_edited":
			r.RecordedAt = r.RooEdit
		case "user_edited":
			r.RecordedAt = r.UserEdit
		case "read_tool", "file_mentioned":
			r.RecordedAt = r.RooRead
		}
		if r.RecordedAt == 0 {
			r.RecordedAt = max(r.RooRead, r.RooEdit, r.UserEdit)
		}
		out = append(out, r)
	}
	return out
}
