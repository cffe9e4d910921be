package task

import (
	"slices"
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
	list := make([][]byte, len(records))
	for i, r := range records {
		list[i] = esjson.ObjectOf("path", r.Path, "record_state", r.State, "record_source", r.Source,
			"roo_read_date", date(r.RooRead), "roo_edit_date", date(r.RooEdit),
			"user_edit_date", date(r.UserEdit))
	}
	return esjson.ObjectOf("files_in_context", esjson.List(list))
}

func date(ms int64) []byte {
	if ms == 0 {
		return []byte("null")
	}
	return strconv.AppendInt(nil, ms, 10)
}

// addFile follows Roo's tracker: older records of the path go stale, the new one
// carries the newest of each date forward.
func (s *State) addFile(e FileChanged, seq uint64, at int64) {
	next := FileRecord{
		Path: e.Path, Source: e.Source, By: e.By, Task: e.Task, Hash: e.Hash, Size: e.Size,
		MTime: e.MTime, CTime: e.CTime, Inode: e.Inode, Device: e.Device, RecordedAt: at, Seq: seq,
	}
	if len(s.Branches) > 0 {
		s.filed = append(s.filed, next)
		s.fileAt = append(s.fileAt, uint64(len(s.filed)))
	}
	s.addRecord(next)
}

// fileAll begins the list of all records.
func (s *State) fileAll() {
	s.filed = slices.Clone(s.Files)
	s.fileAt = numbersIn([]Run64{{1, uint64(len(s.filed))}}, len(s.filed))
}

// FilesEver are all records, also those that a rewind took away. Some come twice.
func (s *State) FilesEver() []FileRecord { return slices.Concat(s.filed, s.Files) }

// showFiles makes the records with these numbers all that there are.
func (s *State) showFiles(numbers []uint64) {
	s.Files, s.records, s.fileAt = nil, nil, numbers
	for _, n := range numbers {
		s.addRecord(s.filed[n-1])
	}
}

func (s *State) addRecord(next FileRecord) {
	next.State, next.RooRead, next.RooEdit, next.UserEdit = "active", 0, 0, 0
	at := next.RecordedAt
	if known := s.records[next.Path]; known != nil {
		// Only the newest one can be active: looking at all of them would take
		// the square of their number.
		s.Files[known.last].State = "stale"
		next.RooRead, next.RooEdit, next.UserEdit = known.read, known.edit, known.user
	}
	switch next.Source {
	case "user_edited":
		next.UserEdit = at
	case "roo_edited":
		next.RooRead, next.RooEdit = at, at
	case "read_tool", "file_mentioned":
		next.RooRead = at
	}
	s.Files = append(s.Files, next)
	s.noteRecord(len(s.Files)-1, next)
}

// noteRecord sums up one of s.Files, in their order.
func (s *State) noteRecord(i int, f FileRecord) {
	if s.records == nil {
		s.records = map[string]*records{}
	}
	known := s.records[f.Path]
	if known == nil {
		known = &records{}
		s.records[f.Path] = known
	}
	known.last = i
	known.read, known.edit, known.user = max(known.read, f.RooRead), max(known.edit, f.RooEdit), max(known.user, f.UserEdit)
}
