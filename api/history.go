package api

import (
	"fmt"

	"github.com/roost-dev/roost/money"
)

// BranchRow is one branch of a task: its head, or a branch that a rewind or a switch left.
type BranchRow struct {
	Name   string        `json:"name"`   // head, or the name that undo, fork and resume accept
	Parent string        `json:"parent"` // the branch that it shares most messages with; "" for the head
	From   int           `json:"from"`   // the number of the last row that the two share; 0 = none
	Left   *string       `json:"left"`   // the time at which the branch was left; RFC 3339
	Why    string        `json:"why"`    // the action that left it: rewind, edit, remove, branch
	By     string        `json:"by,omitempty"`
	All    MessageCounts `json:"messages"`
	Apart  MessageCounts `json:"apart"` // its messages that the parent lacks
	First  *Row          `json:"first"` // the first row that the parent lacks
	Last   *Row          `json:"last"`  // the newest row
}

// ForkedFrom is the task from which another one was forked.
type ForkedFrom struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	At     int    `json:"at"`     // the number of the last row that the fork shares
	Branch string `json:"branch"` // the branch that it started from
}

// BranchTree holds a task's branches: first the head, then each left branch that holds a message which no other
// branch has, the newest first.
type BranchTree struct {
	ID     string      `json:"id"`
	Forked *ForkedFrom `json:"forked_from"`
	Items  []BranchRow `json:"items"`
}

// ForkResult is a fork that was made or, after a dry run, would be made.
type ForkResult struct {
	ID       string        `json:"id"` // of the new task; "" after a dry run
	From     ForkedFrom    `json:"forked_from"`
	Messages MessageCounts `json:"messages"`
	Last     *Row          `json:"last"` // the newest message of the fork
	Path     string        `json:"path"`
	DryRun   bool          `json:"dry_run"`
}

// Comparison compares two tasks, or two branches of one, after the last message that both have.
type Comparison struct {
	Common *Row           `json:"common"` // the last message that both have; null = none
	Sides  []ComparedSide `json:"sides"`  // two
	Files  []FileDiff     `json:"items"`  // differences between the files at the two ends; the first side counts as the older one
	Why    string         `json:"why"`    // why the files were not compared; "" = they were
}

// ComparedSide is one side of a comparison.
type ComparedSide struct {
	Task       Summary       `json:"task"`
	Branch     string        `json:"branch"`     // head, or a branch that a rewind left
	Messages   MessageCounts `json:"messages"`   // after the common one
	Rows       []Row         `json:"rows"`       // the newest of these, in order, without housekeeping
	Left       int           `json:"left"`       // how many older ones are not listed
	Checkpoint string        `json:"checkpoint"` // the checkpoint at its end; "" = none
	Files      []FileDiff    `json:"files"`      // files that changed after the common message, without patches
}

// Row identifies a message for the user.
type Row struct {
	Number int    `json:"number"` // as show prints it, from 1
	TS     int64  `json:"ts"`
	Kind   string `json:"kind"`
	Text   string `json:"text"` // its first words
}

// RewindResult is what a rewind removed from the histories or, after a dry run, would remove.
type RewindResult struct {
	ID       string        `json:"id"`             // the task
	Forked   string        `json:"from,omitempty"` // the original task, if it cannot be written, so that a fork of it was changed
	Kind     string        `json:"kind"`           // rewind, edit, remove
	DryRun   bool          `json:"dry_run"`
	To       *Row          `json:"to"` // the first removed message; null if the user never saw that message
	Kept     bool          `json:"kept"`
	Gone     MessageCounts `json:"gone"`
	Left     MessageCounts `json:"left"`
	Turns    int           `json:"turns"`
	Calls    []RemovedCall `json:"calls"`
	Spent    Usage         `json:"spent"` // by the removed requests; the task's total still counts it
	Files    []string      `json:"files"` // files that the model no longer knows
	Asked    int           `json:"questions"`
	Queued   int           `json:"queued"`
	Restored int           `json:"restored"` // messages that a summary or truncation hid, and that will be sent again
	Branch   string        `json:"branch"`   // the name of the branch that the rewind left; "" after a dry run

	// Unmatched counts messages of another program that match no row by id, text or time.
	Unmatched int `json:"unmatched,omitempty"`
}

// RemovedCall is a tool call that a rewind removes.
type RemovedCall struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Stays   bool   `json:"stays"` // the call stays, and only its outcome is removed
}

// Action is an act of a user on a task that can be undone or redone.
type Action struct {
	ID   string       `json:"id"`   // names the action, so that no other one is undone instead
	Kind string       `json:"kind"` // rename, tag, pin, share, delete; rewind, edit, remove, branch; condense, truncate
	At   *string      `json:"at"`   // RFC 3339; null when unknown
	From ActionLabels `json:"from"` // what undo restores
	To   ActionLabels `json:"to"`

	// For an action that moved the histories: how many messages it removed (negative: restored), the branch that it left,
	// and the tool that did it, if that was not Roost.
	Gone   *MessageCounts `json:"gone,omitempty"`
	Branch string         `json:"branch,omitempty"`
	By     string         `json:"by,omitempty"`
	WentOn bool           `json:"went_on,omitempty"` // the task was continued since, so that it can only be forked

	Covered int `json:"covered,omitempty"` // how many messages a summary or a marker replaces

	// For an action that restored files, with the histories or without.
	Files      int  `json:"files,omitempty"`
	Checkpoint *int `json:"checkpoint,omitempty"` // the restored checkpoint; 0 = the state before the first change
	Safety     int  `json:"safety,omitempty"`     // the checkpoint of the replaced files
}

// ActionLabels are the labels that an action changes; absent members stay. An empty title means the task's own title.
type ActionLabels struct {
	Title   *string   `json:"title,omitempty"`
	Tags    *[]string `json:"tags,omitempty"`
	Pinned  *bool     `json:"pinned,omitempty"`
	Deleted *bool     `json:"deleted,omitempty"`
	Access  *Access   `json:"access,omitempty"`
}

// TaskActions are the actions on one task that can be undone and redone, the newest first.
type TaskActions struct {
	Task    Summary  `json:"task"`
	Name    string   `json:"name"` // the name by which undo and redo find the task
	Trashed bool     `json:"trashed"`
	Undo    []Action `json:"undo"`
	Redo    []Action `json:"redo"`

	// Subtasks are the ids of the subtasks that the undo or redo restored or deleted with the task.
	Subtasks []string `json:"subtasks,omitempty"`
}

// QualifiedName returns a name of the task that no other task has.
func (t TaskActions) QualifiedName() string {
	if t.Task.Source == OwnSource {
		return OwnSource + ":" + t.Name
	}
	return t.Name
}

// NewRewind rewinds both histories to a message. Without members it rewinds one turn.
type NewRewind struct {
	To         string `json:"to,omitempty"`          // the first message to remove: #12, ~2 (turns), c3 (a checkpoint), or a ts
	KeepTarget bool   `json:"keep_target,omitempty"` // keep that message itself
	Edit       string `json:"edit,omitempty"`        // a new text that replaces that message, for the next run
	Delete     bool   `json:"delete,omitempty"`      // remove only that message, with its results
	Files      bool   `json:"files,omitempty"`       // also restore the files that the task changed
	OnConflict string `json:"on_conflict,omitempty"` // files that others changed: keep (the default), merge, overwrite
	Plan       string `json:"plan,omitempty"`        // with files: the plan of a dry run; if the restore would differ from the plan, nothing changes
	DryRun     bool   `json:"dry_run,omitempty"`
}

// Rewound is the result of a rewind or its dry run, with the restored files.
type Rewound struct {
	RewindResult
	Restore  *RestoreResult `json:"restore,omitempty"`
	Finished string         `json:"finished,omitempty"` // a description of an interrupted restore that was finished first
}

// NewUndo undoes the last action on a task, or redoes the action that was undone last.
type NewUndo struct {
	Expect string `json:"expect,omitempty"` // the ID of the expected action; if another one is next, nothing changes
	DryRun bool   `json:"dry_run,omitempty"`
}

// Undone is an action that was undone or redone, and the actions that can be undone now.
type Undone struct {
	TaskActions
	DryRun  bool           `json:"dry_run"`
	Undone  *Action        `json:"undone"`
	Redone  *Action        `json:"redone"`
	Restore *RestoreResult `json:"restore,omitempty"`
}

// NewHead makes a branch of a task its head.
type NewHead struct {
	Branch string `json:"branch"` // its name in the list of branches
}

// Head is the branch that a task continues from.
type Head struct {
	Task   string `json:"task_id"`
	Branch string `json:"branch"`
}

// NewFork makes a new task with the history of another one. Absent members have the values of the other task.
type NewFork struct {
	At        string `json:"at,omitempty"`     // the last message of the fork: #12, a ts, or ~2 (before the last two turns)
	Branch    string `json:"branch,omitempty"` // the branch that it starts from
	Title     string `json:"title,omitempty"`
	Workspace string `json:"workspace,omitempty"` // an absolute folder of the server's machine
	Mode      string `json:"mode,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	BaseURL   string `json:"base_url,omitempty"`
	Origin    string `json:"origin,omitempty"` // api (the default), cli, web, editor
	DryRun    bool   `json:"dry_run,omitempty"`
}

// NewCondense lets a model summarise older history of a task: the task's own model, unless another one is named.
type NewCondense struct {
	Keep      string `json:"keep,omitempty"`      // a description of what the summary must keep
	Workspace string `json:"workspace,omitempty"` // the new folder of a moved workspace
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	BaseURL   string `json:"base_url,omitempty"`
	Profile   string `json:"profile,omitempty"`
	Origin    string `json:"origin,omitempty"` // api (the default), cli, web, editor
	DryRun    bool   `json:"dry_run,omitempty"`
}

// Condensed is the result of condensing a task, or of its dry run.
type Condensed struct {
	Task     string     `json:"task_id"`
	DryRun   bool       `json:"dry_run"`
	Condense string     `json:"condense_id,omitempty"`
	Messages int        `json:"messages"` // that the summary replaces
	Sent     int        `json:"sent"`     // of these, the ones that were sent until now
	Kept     int        `json:"kept"`     // the newest ones, which stay
	Before   int64      `json:"tokens_before"`
	After    int64      `json:"tokens_after,omitempty"`
	Cost     *money.USD `json:"cost"` // null = unknown
	Summary  string     `json:"summary,omitempty"`
}

// SavedCheckpoint is a checkpoint that was just saved; null if nothing differs from the newest one.
type SavedCheckpoint struct {
	Task       string      `json:"task_id"`
	Saved      bool        `json:"saved"`
	Checkpoint *Checkpoint `json:"checkpoint"`
}

// NewRestore restores the files that a task changed to a checkpoint.
type NewRestore struct {
	OnConflict string   `json:"on_conflict,omitempty"` // files that others changed: keep (the default), merge, overwrite
	Paths      []string `json:"paths,omitempty"`       // only these files or folders
	Workspace  string   `json:"workspace,omitempty"`   // where the files are now; "" = the task's
	Plan       string   `json:"plan,omitempty"`        // the plan of a dry run; if the restore would differ from the plan, nothing changes
	Shown      *Shown   `json:"shown,omitempty"`       // with one path: undo only this difference
	DryRun     bool     `json:"dry_run,omitempty"`
}

// Shown is a difference of one file since the checkpoint of the request, or one of its hunks, that a restore undoes. If the
// difference has changed since it was shown, the restore changes nothing.
type Shown struct {
	To   string `json:"to,omitempty"`   // its newer side: a checkpoint, or now (the default)
	Hunk int    `json:"hunk,omitempty"` // the number of the hunk; 0 = all of the file
	Hash string `json:"hash"`           // of the hunk or of the file's difference, from the answer that showed it
}

// Kinds of actions that the commands show and undo describe in their own way.
const (
	ActionRestore  = "restore" // it restored files and moved no head
	ActionCondense = "condense"
	ActionShare    = "share"
	ActionTruncate = "truncate"
)

// Kinds of FileVersion.
const (
	KindFile  = "file"
	KindLink  = "link"
	KindGone  = "gone"  // there is no file
	KindOther = "other" // a folder, a socket or another kind that Roost never touches
)

// FileVersion is the content of a path at one moment.
type FileVersion struct {
	Kind string `json:"kind"`           // file, link, gone, other
	Mode uint32 `json:"mode,omitempty"` // permission bits (0o777)
	Size int64  `json:"size,omitempty"`
	Hash string `json:"hash,omitempty"` // SHA-256 of the content (of a link: of its target), hex
	Blob string `json:"blob,omitempty"` // its object in the workspace's store (git's SHA-1 blob id, hex); "" = the store lacks the content
	Dirs int    `json:"dirs,omitempty"` // of a path that is gone, or behind a link: how many of the folders above it are missing too
}

// Same reports whether two versions have the same content, kind and permissions. It is false if the content of one was never
// read.
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

// CollectedStore shows what a collection removes from one store of contents, or would remove.
type CollectedStore struct {
	Store   string   `json:"store"`
	Tasks   int      `json:"tasks"`   // how many keep their checkpoints
	Removed []string `json:"removed"` // tasks that no longer exist, whose checkpoints were removed
	Objects int      `json:"objects"` // that were removed
	Before  int64    `json:"before"`  // bytes on the disk
	After   int64    `json:"after"`
	Problem *Problem `json:"problem,omitempty"` // why nothing was removed
	Err     error    `json:"-"`
}

// NewCollection asks to remove contents of checkpoints that no task needs any more.
type NewCollection struct {
	DryRun bool `json:"dry_run,omitempty"` // only report what would be removed
}

// Collection lists the removed contents, by store.
type Collection struct {
	DryRun bool             `json:"dry_run"`
	Items  []CollectedStore `json:"items"`
}

// FileDiff is the difference of one file.
type FileDiff struct {
	Path    string      `json:"path"`
	Change  string      `json:"change"` // added, deleted, changed, mode
	From    FileVersion `json:"from"`
	To      FileVersion `json:"to"`
	Added   int         `json:"added"`         // lines
	Removed int         `json:"removed"`       // lines
	Why     string      `json:"why,omitempty"` // why it is not compared by lines
	Patch   string      `json:"patch,omitempty"`
	Hash    string      `json:"hash,omitempty"`    // of the difference, for a restore of it
	Hunks   []Hunk      `json:"hunks,omitempty"`   // of the patch, in its order
	Authors []Author    `json:"authors,omitempty"` // of its changes, the oldest first
}

// Hunk is a part of a file's difference: lines that were changed, with a few around them.
type Hunk struct {
	Number    int      `json:"hunk"`       // its number in the file, from 1
	From      int      `json:"from"`       // its first line in the older content; without lines: the line before it
	FromLines int      `json:"from_lines"` // how many lines it has there
	To        int      `json:"to"`         // its first line in the newer content
	ToLines   int      `json:"to_lines"`
	Hash      string   `json:"hash"` // of the hunk and of both versions, for a restore of it
	Authors   []Author `json:"authors,omitempty"`
}

// Authors of a change. File records use other, command, subtask and restore, too.
const (
	ByAgent   = "agent"   // a tool call of the task that names the file
	ByCommand = "command" // a command that the task ran
	BySubtask = "subtask" // a task that the task started
	ByRestore = "restore" // a restore of files through Roost
	ByOther   = "other"   // outside of the task: a person, another program, or the task that is named
	ByUnknown = "unknown" // a command of the task ran at that time: the author is that command or another program
)

// Author is the author of a file's change, as far as known.
type Author struct {
	By         string `json:"by"`                   // agent, command, subtask, restore, other, unknown
	Tool       string `json:"tool,omitempty"`       // of agent, command, unknown: the tool that was called
	Call       string `json:"call,omitempty"`       // the id of the call
	Row        int    `json:"row,omitempty"`        // the number of the call's message, as show prints it; 0 = show does not print it
	Task       string `json:"task_id,omitempty"`    // of other: the task that is known to have made it
	Checkpoint int    `json:"checkpoint,omitempty"` // the checkpoint that found the change; 0 = the change is newer than all checkpoints
}

// Diff is the difference between two states of a task's files.
type Diff struct {
	ID    string     `json:"task_id"`
	From  string     `json:"from"` // c3; c0 is the state before the first change
	To    string     `json:"to"`   // c3, or now
	Files []FileDiff `json:"items"`
}

// CommitMessage is a suggested message for a git commit of a task's changes.
type CommitMessage struct {
	Task string `json:"task_id"`
	Text string `json:"text"` // a subject, an empty line, and a list of changes
}

// Checkpoint is one checkpoint in a list.
type Checkpoint struct {
	Number  int    `json:"checkpoint"` // 0 is the state before the first change
	Reason  string `json:"reason"`     // before, command, doubt, turn, others, safety, manual, restored
	Title   string `json:"title"`
	At      int64  `json:"-"`  // Unix milliseconds
	Time    string `json:"at"` // RFC 3339
	Run     string `json:"run,omitempty"`
	Call    string `json:"call,omitempty"`
	Message uint64 `json:"message"` // the newest message of the model's history at that moment
	Row     int    `json:"row"`     // the newest row at that moment, as `show` numbers rows; 0 = none
	Commit  string `json:"commit"`
	Store   string `json:"store"`
	Files   int    `json:"files"`   // how many it records
	Tracked int    `json:"tracked"` // files with a recorded state up to that moment
	Unkept  int    `json:"unkept"`
	Damaged int    `json:"damaged,omitempty"` // files whose content is lost; counted only if the store is damaged
	Rewound bool   `json:"rewound"`           // its message was rewound
}

// Name returns the checkpoint's name for users, such as c3.
func (c Checkpoint) Name() string { return fmt.Sprintf("c%d", c.Number) }

// Checkpoints are the checkpoints of a task.
type Checkpoints struct {
	ID          string       `json:"task_id"`
	Title       string       `json:"title"`
	Status      string       `json:"status"`
	Workspace   string       `json:"workspace"`
	Store       string       `json:"store"`             // the folder of the workspace's contents
	Objects     int          `json:"objects"`           // of the task in that store
	Bytes       int64        `json:"bytes"`             // of those objects; an object that several tasks share counts for each task
	Damaged     string       `json:"damaged,omitempty"` // the damage of the store
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
	// Patch is the difference that a restore makes to the file, in the answer to a dry run that names paths.
	Patch string `json:"patch,omitempty"`
}

// RestoreResult is the plan or the outcome of a restore.
type RestoreResult struct {
	ID        string        `json:"task_id"`
	Forked    string        `json:"from,omitempty"` // the original task, if it cannot be written, so that a fork of it was changed
	DryRun    bool          `json:"dry_run"`
	Workspace string        `json:"workspace,omitempty"` // of a dry run: the folder whose files would change
	To        Checkpoint    `json:"to"`
	Safety    int           `json:"safety"`         // the checkpoint of the replaced files; 0 = no file was replaced
	Files     []RestoreItem `json:"files"`          // that change
	Conflicts []RestoreItem `json:"conflicts"`      // files that others changed since, and that stay unchanged
	Lost      []RestoreItem `json:"lost"`           // files whose content was not kept
	Left      []string      `json:"left"`           // files that others changed during the restore, and that stay unchanged
	Bytes     int64         `json:"bytes"`          // that are written
	Outcome   string        `json:"outcome"`        // done, rolled_back, nothing; "" after a dry run
	Plan      string        `json:"plan,omitempty"` // of a dry run: a hash of what it would do
}

// Kinds of changes of a file.
const (
	FileAdded   = "added"
	FileDeleted = "deleted"
	FileChanged = "changed"
	FileMode    = "mode"
)
