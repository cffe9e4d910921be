package task

import (
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// FileRecord is one entry of Roo's task_metadata.json, plus what Roost knows of
// the file's content at that moment. Dates are Unix milliseconds, 0 = never.
type FileRecord struct {
	Path       string
	State      string // active, stale
	Source     string // read_tool, user_edited, roo_edited, file_mentioned
	By, Task   string // as in FileChanged
	RooRead    int64
	RooEdit    int64
	UserEdit   int64
	Hash       string
	Size       int64
	MTime      int64
	CTime      int64
	Inode      uint64
	Device     uint64
	RecordedAt int64
	Seq        uint64 // of the commit that recorded it
}

// Gone reports whether a record means that there is no file any more: the agent removed it, or the model got notice
// that another program did.
func (r FileRecord) Gone() bool {
	return r.Hash == "" && r.MTime == 0 && (r.Source == "roo_edited" || r.Source == "user_edited")
}

// Judgeable reports whether a record holds enough to decide whether the file has changed. Records that other programs
// made do not.
func (r FileRecord) Judgeable() bool { return r.Hash != "" || r.MTime != 0 || r.Gone() }

// records sums up the records of one path: the place of the newest in State.Files
// and the newest date of each kind.
type records struct {
	last             int
	read, edit, user int64
}

// MetadataJSON is Roo's task_metadata.json for these records.
func MetadataJSON(records []FileRecord) []byte {
	out := []byte(`{"files_in_context":[`)
	for i, r := range records {
		if i > 0 {
			out = append(out, ',')
		}
		var o esjson.Object
		o.String("path", r.Path)
		o.String("record_state", r.State)
		o.String("record_source", r.Source)
		o.Raw("roo_read_date", date(r.RooRead))
		o.Raw("roo_edit_date", date(r.RooEdit))
		o.Raw("user_edit_date", date(r.UserEdit))
		out = append(out, o.Bytes()...)
	}
	return append(out, `]}`...)
}

func date(ms int64) []byte {
	if ms == 0 {
		return []byte("null")
	}
	return strconv.AppendInt(nil, ms, 10)
}
