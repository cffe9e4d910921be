package task

import (
	"encoding/json"

	"github.com/roost-dev/roost/api"
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

// Ways in which a file is put back, and what became of a restore.
const (
	HowRestore   = "restore"   // it was as the task left it
	HowMerge     = "merge"     // the task's changes were taken out of what others made of it
	HowOverwrite = "overwrite" // others had changed it, and that goes

	RestoreDone       = "done"
	RestoreRolledBack = "rolled_back"
)

// CheckpointFile is one path in a checkpoint. Was is what the path held before the agent or its command changed it;
// nil when it is not known to differ from the checkpoint before.
type CheckpointFile struct {
	Path string           `json:"path"`
	Was  *api.FileVersion `json:"was,omitempty"`
	Now  api.FileVersion  `json:"now"`
}

// CheckpointSaved is a recorded state of the files that the agent, or a command it
// ran, changed. Files are only those whose state is not already known from the
// checkpoint before.
type CheckpointSaved struct {
	Number  int              `json:"checkpoint"` // 1, 2, ... within the task; how people name it: c1
	Reason  string           `json:"reason"`     // before, command, doubt, turn, others, safety, manual, restored
	Run     string           `json:"run,omitempty"`
	Call    string           `json:"call,omitempty"`
	Message uint64           `json:"message,omitempty"` // the newest message of the API history that it belongs to
	Title   string           `json:"title,omitempty"`   // named after the files: "a.go, b.go and 3 more"
	Commit  string           `json:"commit,omitempty"`  // in the workspace's object store
	Store   string           `json:"store,omitempty"`   // the object store's folder, so that a moved workspace is noticed
	Files   []CheckpointFile `json:"files,omitempty"`
	Unkept  int              `json:"unkept,omitempty"` // files whose content was over a cap
}

// RestoreFile is one file that a restore changes.
type RestoreFile struct {
	Path string          `json:"path"`
	From api.FileVersion `json:"from"`
	To   api.FileVersion `json:"to"`
	How  string          `json:"how,omitempty"` // restore, merge, overwrite
}

// RestoreBegun is the intent to put files back. Until its RestoreEnded the task is
// restoring, and nothing runs.
type RestoreBegun struct {
	Restore string        `json:"restore"`
	To      int           `json:"to"`               // the checkpoint; 0 = the state before anything was changed
	Safety  int           `json:"safety,omitempty"` // the checkpoint of what is replaced
	Files   []RestoreFile `json:"files,omitempty"`
	Kept    []string      `json:"kept,omitempty"` // conflicts that stay as they are

	// Rewind is the line of the event that moves the histories with the files (see
	// Encode: a Rewound or an Undone), resolved, so that whoever finishes the restore
	// does the same.
	Rewind json.RawMessage `json:"rewind,omitempty"`

	// The commit of the restore that this one undoes or redoes. See Action.
	Undoes uint64 `json:"undoes,omitempty"`
	Redoes uint64 `json:"redoes,omitempty"`
}

// RestoreEnded is what became of it.
type RestoreEnded struct {
	Restore string   `json:"restore"`
	Begun   uint64   `json:"begun,omitempty"` // the commit of the intent
	Outcome string   `json:"outcome"`         // done, rolled_back
	Files   int      `json:"files"`           // that it changed
	Left    []string `json:"left,omitempty"`  // others changed these during the restore; it left them alone
	Undoes  uint64   `json:"undoes,omitempty"`
	Redoes  uint64   `json:"redoes,omitempty"`
}

// EventType is the name in the journal and in the event stream.
func (CheckpointSaved) EventType() string { return "checkpoint.saved" }
func (RestoreBegun) EventType() string    { return "checkpoint.restoring" }
func (RestoreEnded) EventType() string    { return "checkpoint.restored" }

// Checkpoint is one that the task has.
type Checkpoint struct {
	CheckpointSaved
	Seq uint64 // of its commit
	At  int64  // of that commit; Unix milliseconds
}

// Restoring is a restore that began and has not ended.
type Restoring struct {
	RestoreBegun
	Seq uint64 // of the commit of the intent
	At  int64  // of that commit; Unix milliseconds
}

// Swapped are the files of a restore the other way round: what takes it back.
func Swapped(files []RestoreFile) []RestoreFile {
	out := make([]RestoreFile, len(files))
	for i, f := range files {
		out[i] = RestoreFile{Path: f.Path, From: f.To, To: f.From, How: f.How}
	}
	return out
}
