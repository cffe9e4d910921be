package task

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// Reasons of a checkpoint.
const (
	ReasonBefore   = "before"   // before the first change of a turn
	ReasonCommand  = "command"  // a command changed something
	ReasonDoubt    = "doubt"    // files changed while a command ran for long: by it, or by another program
	ReasonTurn     = "turn"     // after the tools of a turn
	ReasonSafety   = "safety"   // before a restore
	ReasonManual   = "manual"   // a user asked for it
	ReasonOthers   = "others"   // others changed files of this reply before the model got notice
	ReasonRestored = "restored" // after a restore; see State.Checkpoints
)

// How a restore changes a file, and the outcomes of a restore.
const (
	HowRestore   = "restore"   // the file was as the task left it
	HowMerge     = "merge"     // the restore removed the task's changes from a file that others had changed
	HowOverwrite = "overwrite" // others had changed it, and the restore discards their changes

	RestoreDone       = "done"
	RestoreRolledBack = "rolled_back"
)

// Checkpoint is a checkpoint of a task.
type Checkpoint struct {
	CheckpointSaved
	Seq uint64 // of its commit
	At  int64  // time of that commit; Unix milliseconds
}

// Restoring is a restore that began and has not ended.
type Restoring struct {
	RestoreBegun
	Seq uint64 // the commit of the intent
	At  int64  // time of that commit; Unix milliseconds
}

// NextCheckpoint returns the number that the next checkpoint gets.
func (s *State) NextCheckpoint() int {
	if n := len(s.Checkpoints); n > 0 {
		return s.Checkpoints[n-1].Number + 1
	}
	return 1
}

// Checkpoint finds a checkpoint by its number; nil when there is none.
func (s *State) Checkpoint(number int) *Checkpoint {
	i, ok := slices.BinarySearchFunc(s.Checkpoints, number, func(c Checkpoint, n int) int { return c.Number - n })
	if !ok {
		return nil
	}
	return &s.Checkpoints[i]
}

// CheckpointAt returns the number of the newest checkpoint that is not newer than a message: it shows the files
// before that message changed anything. 0 = nothing was changed before it. Messages of all branches count, because
// files have only one past. A checkpoint that a person made while the message was the newest one comes after the
// message.
func (s *State) CheckpointAt(message uint64) int {
	number := 0
	for _, c := range s.Checkpoints {
		if c.Message > message || c.Message == message && slices.Contains([]string{ReasonSafety, ReasonManual, ReasonRestored}, c.Reason) {
			break
		}
		number = c.Number
	}
	return number
}

// RewoundCheckpoint reports whether the message that a checkpoint belongs to is not in the visible history any more.
// Such a checkpoint stays, and can be restored.
func (s *State) RewoundCheckpoint(c Checkpoint) bool {
	m := s.Message(c.Message)
	return m != nil && m.Hidden != ""
}

// ChangedSince returns the newest checkpoint in which the task changed one of a restore's files after that restore
// was last done, undone or redone, and that file; 0 when there is none. Such a restore cannot be undone as a whole
// any more: undoing would also remove later changes of the task, or leave half of the files. The user can instead
// restore the checkpoint of the replaced files, which asks about each such file. Changes of others do not count here:
// the restore finds them when it reads the files.
func (s *State) ChangedSince(d Action) (checkpoint int, path string) {
	mine := api.SetOf(api.Each(d.Files, func(f RestoreFile) string { return f.Path }))
	for _, c := range slices.Backward(s.Checkpoints) {
		if c.Seq <= d.Then {
			break
		}
		if c.Reason != ReasonBefore && c.Reason != ReasonCommand && c.Reason != ReasonTurn {
			continue
		}
		if i := slices.IndexFunc(c.Files, func(f CheckpointFile) bool { return mine[f.Path] }); i >= 0 {
			return c.Number, c.Files[i].Path
		}
	}
	return 0, ""
}

// saveCheckpoint keeps a checkpoint. The list is in the order of the numbers.
func (s *State) saveCheckpoint(e CheckpointSaved, c journal.Commit) error {
	one := Checkpoint{CheckpointSaved: e, Seq: c.Seq, At: c.At}
	if n := len(s.Checkpoints); n > 0 {
		if last := &s.Checkpoints[n-1]; last.Number == e.Number && last.Seq == c.Seq && last.Reason == ReasonRestored &&
			e.Reason == ReasonRestored {
			*last = one
			return nil
		}
	}
	if e.Number < s.NextCheckpoint() || e.Number > s.NextCheckpoint()+maxGap {
		return fmt.Errorf("checkpoint %d comes after checkpoint %d", e.Number, s.NextCheckpoint()-1)
	}
	s.Checkpoints = append(s.Checkpoints, one)
	return nil
}

// endRestore records the outcome of a restore, the resulting files, and the action.
func (s *State) endRestore(e RestoreEnded, c journal.Commit) {
	r := s.Restoring
	if r == nil || r.Restore != e.Restore {
		r = &Restoring{} // its intent is lost, and with it which files it was
	} else {
		s.Restoring = nil
	}
	if e.Outcome != RestoreDone {
		return
	}
	left := api.SetOf(e.Left)
	files := slices.DeleteFunc(slices.Clone(r.Files), func(f RestoreFile) bool { return left[f.Path] })
	if n := len(s.Checkpoints); len(files) > 0 && (n == 0 || s.Checkpoints[n-1].Seq != c.Seq ||
		s.Checkpoints[n-1].Reason != ReasonRestored) {
		s.Checkpoints = append(s.Checkpoints, s.afterRestore(r, files, c))
	}
	switch {
	case e.Undoes != 0:
		s.Actions.turn(e.Undoes, 0, c.Seq)
		s.Actions.refile(e.Undoes, Swapped(files))
	case e.Redoes != 0:
		s.Actions.turn(0, e.Redoes, c.Seq)
		s.Actions.refile(e.Redoes, files)
	case len(files) > 0:
		s.Actions.Do(Action{Kind: api.ActionRestore, Seq: c.Seq, At: c.At, Files: files, To: r.To, Safety: r.Safety})
	}
}

// afterRestore returns the checkpoint that a restore makes. The checkpoint has no event of its own, because the
// intent holds all of it. Without the checkpoint, a later check would take what the restore wrote for a change by
// another program.
func (s *State) afterRestore(r *Restoring, files []RestoreFile, c journal.Commit) Checkpoint {
	e := CheckpointSaved{Number: s.NextCheckpoint(), Reason: ReasonRestored, Title: fmt.Sprintf("after restoring c%d", r.To)}
	if safety := s.Checkpoint(r.Safety); safety != nil {
		e.Message, e.Store = safety.Message, safety.Store
	}
	for _, f := range files {
		e.Files = append(e.Files, CheckpointFile{Path: f.Path, Was: new(f.From), Now: f.To})
	}
	return Checkpoint{CheckpointSaved: e, Seq: c.Seq, At: c.At}
}

// FileRecord is one entry of Roo's task_metadata.json, plus what Roost knew of the file's content at that moment.
// Dates are Unix milliseconds, 0 = never.
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
	Seq        uint64 // the commit that recorded it
}

// Gone reports whether a record means that the file does not exist any more: the agent removed it, or the model was
// notified that another program did.
func (r FileRecord) Gone() bool {
	return r.Hash == "" && r.MTime == 0 && (r.Source == "roo_edited" || r.Source == "user_edited")
}

// Judgeable reports whether a record holds enough to decide whether the file has changed. Records that other programs
// made hold too little.
func (r FileRecord) Judgeable() bool { return r.Hash != "" || r.MTime != 0 || r.Gone() }

// records summarises the records of one path: the index of the newest in State.Files, and the newest date of each
// kind.
type records struct {
	last             int
	read, edit, user int64
}

// MetadataJSON is Roo's task_metadata.json for these records.
func MetadataJSON(records []FileRecord) []byte {
	list := api.Each(records, func(r FileRecord) []byte {
		return esjson.ObjectOf("path", r.Path, "record_state", r.State, "record_source", r.Source,
			"roo_read_date", date(r.RooRead), "roo_edit_date", date(r.RooEdit),
			"user_edit_date", date(r.UserEdit))
	})
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

// fileAll starts the list of all records with the present ones.
func (s *State) fileAll() {
	s.filed = slices.Clone(s.Files)
	s.fileAt = numbersIn([]Run64{{1, uint64(len(s.filed))}}, len(s.filed))
}

// FilesEver returns all records, also those that a rewind removed. Some occur twice.
func (s *State) FilesEver() []FileRecord { return slices.Concat(s.filed, s.Files) }

// showFiles replaces s.Files by the records with these numbers.
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
		// Only the newest one can be active. Visiting all of them would take time that grows with the square of their
		// number.
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

// noteRecord adds s.Files[i] to the summary of its path. Calls come in the order of s.Files.
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
