package task

import "slices"

// addFile follows Roo's tracker: older records of the path go stale, the new one
// carries the newest of each date forward.
func (s *State) addFile(e FileChanged, seq uint64, at int64) {
	next := FileRecord{
		Path: e.Path, Source: e.Source, By: e.By, Task: e.Task, Hash: e.Hash, Size: e.Size,
		MTime: e.MTime, CTime: e.CTime, Inode: e.Inode, Device: e.Device, RecordedAt: at, Seq: seq,
	}
	if len(s.Branches) > 0 {
		s.fileAt = append(s.fileAt, len(s.filed))
		s.filed = append(s.filed, next)
	}
	s.addRecord(next)
}

// FilesEver are all records, also those that a rewind took away. Some come twice.
func (s *State) FilesEver() []FileRecord { return slices.Concat(s.filed, s.Files) }

// showFiles makes the records at these places all that there are.
func (s *State) showFiles(at []int) {
	s.Files, s.records, s.fileAt = nil, nil, at
	for _, i := range at {
		s.addRecord(s.filed[i])
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
