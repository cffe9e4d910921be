package api

import "fmt"

// Kinds of FileVersion.
const (
	KindFile  = "file"
	KindLink  = "link"
	KindGone  = "gone"  // there is no file
	KindOther = "other" // a folder, a socket or what else is never touched
)

// FileVersion is what a path held at one moment.
type FileVersion struct {
	Kind string `json:"kind"`           // file, link, gone, other
	Mode uint32 `json:"mode,omitempty"` // permission bits (0o777)
	Size int64  `json:"size,omitempty"`
	Hash string `json:"hash,omitempty"` // SHA-256 of the content (of a link: of its target), hex
	Blob string `json:"blob,omitempty"` // its object in the workspace's store (git's SHA-1 blob id, hex); "" = the content is not kept
	Dirs int    `json:"dirs,omitempty"` // of a path that is gone: how many of the folders above it are missing too
}

// Same reports whether two versions are the same thing: content, kind and permission.
// Two whose content was never read are not known to be.
func (v FileVersion) Same(o FileVersion) bool {
	switch {
	case v.Kind != o.Kind:
		return false
	case v.Kind == KindFile:
		return v.Hash != "" && v.Hash == o.Hash && v.Mode == o.Mode
	case v.Kind == KindLink:
		return v.Hash != "" && v.Hash == o.Hash
	}
	return true
}

// CollectedStore is what collecting one store of contents removes, or would remove.
type CollectedStore struct {
	Store   string   `json:"store"`
	Tasks   int      `json:"tasks"`   // whose checkpoints stay
	Removed []string `json:"removed"` // tasks that no longer exist, whose checkpoints were removed
	Objects int      `json:"objects"` // that were removed
	Before  int64    `json:"before"`  // bytes on the disk
	After   int64    `json:"after"`
	Err     error    `json:"-"`
}

// FileDiff is what differs in one file.
type FileDiff struct {
	Path    string      `json:"path"`
	Change  string      `json:"change"` // added, deleted, changed, mode
	From    FileVersion `json:"from"`
	To      FileVersion `json:"to"`
	Added   int         `json:"added"`         // lines
	Removed int         `json:"removed"`       // lines
	Why     string      `json:"why,omitempty"` // why it is not compared by lines
	Patch   string      `json:"patch,omitempty"`
}

// Diff is what differs between two states of a task's files.
type Diff struct {
	ID    string     `json:"task_id"`
	From  string     `json:"from"` // c3; c0 is before anything was changed
	To    string     `json:"to"`   // c3, or now
	Files []FileDiff `json:"items"`
}

// Checkpoint is one checkpoint in a list.
type Checkpoint struct {
	Number  int    `json:"checkpoint"` // 0 is the state before anything was changed
	Reason  string `json:"reason"`     // before, command, doubt, turn, others, safety, manual, restored
	Title   string `json:"title"`
	At      int64  `json:"-"`  // Unix milliseconds
	Time    string `json:"at"` // RFC 3339
	Run     string `json:"run,omitempty"`
	Call    string `json:"call,omitempty"`
	Message uint64 `json:"message"` // the newest of the model's history that it belongs to
	Row     int    `json:"row"`     // the newest row then, as `show` numbers rows; 0 = none
	Commit  string `json:"commit"`
	Store   string `json:"store"`
	Files   int    `json:"files"`   // that it records
	Tracked int    `json:"tracked"` // of which the task has recorded a state by then
	Unkept  int    `json:"unkept"`
	Damaged int    `json:"damaged,omitempty"` // files whose content is lost; counted only when the store is found damaged
	Rewound bool   `json:"rewound"`           // its message is not in the history any more
}

// Name is the checkpoint's name for users, such as c3.
func (c Checkpoint) Name() string { return fmt.Sprintf("c%d", c.Number) }

// List is the checkpoints of a task.
type Checkpoints struct {
	ID          string       `json:"task_id"`
	Title       string       `json:"title"`
	Status      string       `json:"status"`
	Workspace   string       `json:"workspace"`
	Store       string       `json:"store"`             // the folder of the workspace's contents
	Objects     int          `json:"objects"`           // of the task in that store
	Bytes       int64        `json:"bytes"`             // of those objects; one that several tasks share counts for each of them
	Damaged     string       `json:"damaged,omitempty"` // what is wrong with the store
	Checkpoints []Checkpoint `json:"items"`             // the oldest first
}

// RestoreItem is one file of a restore.
type RestoreItem struct {
	Path   string `json:"path"`
	Change string `json:"change"`        // added, changed, deleted
	How    string `json:"how,omitempty"` // restore, merge, overwrite
	Why    string `json:"why,omitempty"` // why a conflict stays as it is, or why a file is lost
	// Doubt marks a conflict that changed while a command of the task ran: the command or another program changed it.
	Doubt bool  `json:"doubt,omitempty"`
	Size  int64 `json:"size,omitempty"` // bytes that are written
}

// RestoreResult is what a restore does, or did.
type RestoreResult struct {
	ID        string        `json:"task_id"`
	Forked    string        `json:"from,omitempty"` // the task that it continues, when that one cannot be written
	DryRun    bool          `json:"dry_run"`
	To        Checkpoint    `json:"to"`
	Safety    int           `json:"safety"`         // the checkpoint of what is replaced; 0 = nothing was
	Files     []RestoreItem `json:"files"`          // that change
	Conflicts []RestoreItem `json:"conflicts"`      // that others changed since, and that stay as they are
	Lost      []RestoreItem `json:"lost"`           // whose content was not kept
	Left      []string      `json:"left"`           // that others changed while files were put back, and that stay as they are
	Bytes     int64         `json:"bytes"`          // that are written
	Outcome   string        `json:"outcome"`        // done, rolled_back, nothing; "" after a dry run
	Plan      string        `json:"plan,omitempty"` // of a dry run: a hash of what it would do
}

// What happened to a file, in a word.
const (
	FileAdded   = "added"
	FileDeleted = "deleted"
	FileChanged = "changed"
	FileMode    = "mode"
)
