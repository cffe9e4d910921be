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
	Left   *string       `json:"left"`   // when it was left; RFC 3339
	Why    string        `json:"why"`    // what left it: rewind, edit, remove, branch
	By     string        `json:"by,omitempty"`
	All    MessageCounts `json:"messages"`
	Apart  MessageCounts `json:"apart"` // of its messages, those that the parent lacks
	First  *Row          `json:"first"` // the first row that the parent lacks
	Last   *Row          `json:"last"`  // the newest row
}

// ForkedFrom is the task that another one began as a fork of.
type ForkedFrom struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	At     int    `json:"at"`     // the number of the last row that the fork shares
	Branch string `json:"branch"` // the branch that it started from
}

// BranchTree holds a task's branches: the head first, then each branch that was left and holds a message that no other
// branch shows, the newest first.
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
	Last     *Row          `json:"last"` // the newest message that it has
	Path     string        `json:"path"`
	DryRun   bool          `json:"dry_run"`
}

// Comparison is what two tasks, or two branches of one, did since the last message that both have.
type Comparison struct {
	Common *Row           `json:"common"` // that message; null = they have none
	Sides  []ComparedSide `json:"sides"`  // two
	Files  []FileDiff     `json:"items"`  // what differs between the files at their ends, the first side older
	Why    string         `json:"why"`    // why the files are not compared; "" = they are
}

// ComparedSide is one side of a comparison.
type ComparedSide struct {
	Task       Summary       `json:"task"`
	Branch     string        `json:"branch"`     // head, or a branch that a rewind left
	Messages   MessageCounts `json:"messages"`   // behind the common one
	Rows       []Row         `json:"rows"`       // the newest of these, in order, without those that only keep the books
	Left       int           `json:"left"`       // how many older ones are not listed
	Checkpoint string        `json:"checkpoint"` // at its end; "" = it has none
	Files      []FileDiff    `json:"files"`      // that differ from the common message, without patches
}

// Row names a message for the user.
type Row struct {
	Number int    `json:"number"` // as show prints it, from 1
	TS     int64  `json:"ts"`
	Kind   string `json:"kind"`
	Text   string `json:"text"` // its first words
}

// RewindResult is what a rewind removed from the histories or, after a dry run, would remove.
type RewindResult struct {
	ID       string        `json:"id"`             // the task
	Forked   string        `json:"from,omitempty"` // the task that it continues, when that one cannot be written
	Kind     string        `json:"kind"`           // rewind, edit, remove
	DryRun   bool          `json:"dry_run"`
	To       *Row          `json:"to"` // the first message that it removes; null when the user never saw that message
	Kept     bool          `json:"kept"`
	Gone     MessageCounts `json:"gone"`
	Left     MessageCounts `json:"left"`
	Turns    int           `json:"turns"`
	Calls    []RemovedCall `json:"calls"`
	Spent    Usage         `json:"spent"` // by the removed requests; the task's total still counts it
	Files    []string      `json:"files"` // files that the model does not know any more
	Asked    int           `json:"questions"`
	Queued   int           `json:"queued"`
	Restored int           `json:"restored"` // messages that a summary or truncation hid, and that are sent again
	Branch   string        `json:"branch"`   // the name of the branch that it left; "" after a dry run

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

// Action is something that a user did to a task and that can be undone or redone.
type Action struct {
	ID   string       `json:"id"`   // names it, so that no other action is undone instead
	Kind string       `json:"kind"` // rename, tag, pin, share, delete; rewind, edit, remove, branch; condense, truncate
	At   *string      `json:"at"`   // RFC 3339; null when unknown
	From ActionLabels `json:"from"` // what undo restores
	To   ActionLabels `json:"to"`

	// Of an action that moved the histories: how many messages it removed (negative: brought back), the branch that it
	// left, and the tool that did it, when that was not Roost.
	Gone   *MessageCounts `json:"gone,omitempty"`
	Branch string         `json:"branch,omitempty"`
	By     string         `json:"by,omitempty"`
	WentOn bool           `json:"went_on,omitempty"` // the task was continued since: it can only be forked

	Covered int `json:"covered,omitempty"` // how many messages a summary or a marker stands for

	// Of an action that restored files, with the histories or without.
	Files      int  `json:"files,omitempty"`
	Checkpoint *int `json:"checkpoint,omitempty"` // to which; 0 = before the first change
	Safety     int  `json:"safety,omitempty"`     // the checkpoint of what was replaced
}

// Labels are what an action changes; it leaves absent members. An empty title means the task's own title.
type ActionLabels struct {
	Title   *string   `json:"title,omitempty"`
	Tags    *[]string `json:"tags,omitempty"`
	Pinned  *bool     `json:"pinned,omitempty"`
	Deleted *bool     `json:"deleted,omitempty"`
	Access  *Access   `json:"access,omitempty"`
}

// TaskActions are what was done to one task, the newest first: what undo takes back, and what redo does again.
type TaskActions struct {
	Task    Summary  `json:"task"`
	Name    string   `json:"name"` // by which undo and redo find it
	Trashed bool     `json:"trashed"`
	Undo    []Action `json:"undo"`
	Redo    []Action `json:"redo"`

	// Subtasks are the ids of the subtasks that the undo or redo restored or deleted with the task.
	Subtasks []string `json:"subtasks,omitempty"`
}

// QualifiedName names the task so that it fits no other.
func (t TaskActions) QualifiedName() string {
	if t.Task.Source == OwnSource {
		return OwnSource + ":" + t.Name
	}
	return t.Name
}

// NewRewind takes both histories back to a message. Without members it takes back one turn.
type NewRewind struct {
	To         string `json:"to,omitempty"`          // the first message that goes: #12, ~2 (turns), c3 (a checkpoint), or a ts
	KeepTarget bool   `json:"keep_target,omitempty"` // that message itself stays
	Edit       string `json:"edit,omitempty"`        // new words in its place, for the next run
	Delete     bool   `json:"delete,omitempty"`      // only that message goes, with what belongs to it
	Files      bool   `json:"files,omitempty"`       // files that the task changed go back as well
	OnConflict string `json:"on_conflict,omitempty"` // files that others changed: keep (the default), merge, overwrite
	Plan       string `json:"plan,omitempty"`        // with files: the plan of a dry run; when it would differ by now, nothing changes
	DryRun     bool   `json:"dry_run,omitempty"`
}

// Rewound is what a rewind removed from the histories, or would, and which files it restored.
type Rewound struct {
	RewindResult
	Restore  *RestoreResult `json:"restore,omitempty"`
	Finished string         `json:"finished,omitempty"` // an interrupted restore that was finished first, in words
}

// NewUndo takes back what was last done to a task, or does it again.
type NewUndo struct {
	Expect string `json:"expect,omitempty"` // the ID of the action that is meant; when another one is next by now, nothing changes
	DryRun bool   `json:"dry_run,omitempty"`
}

// Undone is an action that was undone or redone, and what can be undone now.
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

// NewFork makes a new task with the history of another one. Members that are absent come from the other task.
type NewFork struct {
	At        string `json:"at,omitempty"`     // the last message that it has: #12, a ts, or ~2 (before the last two turns)
	Branch    string `json:"branch,omitempty"` // that it starts from
	Title     string `json:"title,omitempty"`
	Workspace string `json:"workspace,omitempty"` // an absolute folder of the server's machine
	Mode      string `json:"mode,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	BaseURL   string `json:"base_url,omitempty"`
	Origin    string `json:"origin,omitempty"` // api (the default), cli, web, editor
	DryRun    bool   `json:"dry_run,omitempty"`
}

// NewCondense has older history of a task summarised, by the task's own model unless another one is named.
type NewCondense struct {
	Keep      string `json:"keep,omitempty"`      // what the summary must keep, in words
	Workspace string `json:"workspace,omitempty"` // when it has moved
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	BaseURL   string `json:"base_url,omitempty"`
	Profile   string `json:"profile,omitempty"`
	Origin    string `json:"origin,omitempty"` // api (the default), cli, web, editor
	DryRun    bool   `json:"dry_run,omitempty"`
}

// Condensed is the result of condensing a task, or what it would be.
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

// SavedCheckpoint is a checkpoint that was just saved; null when nothing differs from the newest one.
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
	Plan       string   `json:"plan,omitempty"`        // the plan of a dry run; when it would differ by now, nothing changes
	Shown      *Shown   `json:"shown,omitempty"`       // with one path: only this difference is taken back
	DryRun     bool     `json:"dry_run,omitempty"`
}

// Shown is the difference of one file, from the checkpoint of the request on, that a restore takes back: all of it or one
// hunk. When the difference is not that one by now, nothing changes.
type Shown struct {
	To   string `json:"to,omitempty"`   // its newer side: a checkpoint, or now (the default)
	Hunk int    `json:"hunk,omitempty"` // the number of the hunk; 0 = all of the file
	Hash string `json:"hash"`           // of the hunk or of the file's difference, as the difference has it
}

// Kinds of actions that show and undo describe apart.
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
	Problem *Problem `json:"problem,omitempty"` // why nothing was removed
	Err     error    `json:"-"`
}

// NewCollection asks to remove contents of checkpoints that no task needs any more.
type NewCollection struct {
	DryRun bool `json:"dry_run,omitempty"` // only report what would go
}

// Collection is what was removed, by store.
type Collection struct {
	DryRun bool             `json:"dry_run"`
	Items  []CollectedStore `json:"items"`
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
	Hash    string      `json:"hash,omitempty"`    // of the difference, for a restore of it
	Hunks   []Hunk      `json:"hunks,omitempty"`   // of the patch, in its order
	Authors []Author    `json:"authors,omitempty"` // of its changes, the oldest first
}

// Hunk is a part of a file's difference: lines that were changed, with a few around them.
type Hunk struct {
	Number    int      `json:"hunk"`       // in the file, from 1
	From      int      `json:"from"`       // its first line in the older content; without lines: the line before it
	FromLines int      `json:"from_lines"` // how many lines it has there
	To        int      `json:"to"`         // its first line in the newer content
	ToLines   int      `json:"to_lines"`
	Hash      string   `json:"hash"` // of the hunk and of both versions, for a restore of it
	Authors   []Author `json:"authors,omitempty"`
}

// Who may have made a change, besides other, command, subtask and restore, which file records name as well.
const (
	ByAgent   = "agent"   // a tool call of the task that names the file
	ByCommand = "command" // a command that the task ran
	BySubtask = "subtask" // a task that the task started
	ByRestore = "restore" // files were put back through Roost
	ByOther   = "other"   // something outside of the task: a person, another program, or the task that is named
	ByUnknown = "unknown" // a command of the task ran then: it or something else
)

// Author is what made a change of a file, as far as that is known.
type Author struct {
	By         string `json:"by"`                   // agent, command, subtask, restore, other, unknown
	Tool       string `json:"tool,omitempty"`       // of agent, command, unknown: the tool that was called
	Call       string `json:"call,omitempty"`       // the id of the call
	Row        int    `json:"row,omitempty"`        // the number of the call's message, as show prints it; 0 = it is not shown
	Task       string `json:"task_id,omitempty"`    // of other: the task that is known to have made it
	Checkpoint int    `json:"checkpoint,omitempty"` // at which the change was found; 0 = after the newest one
}

// Diff is what differs between two states of a task's files.
type Diff struct {
	ID    string     `json:"task_id"`
	From  string     `json:"from"` // c3; c0 is before anything was changed
	To    string     `json:"to"`   // c3, or now
	Files []FileDiff `json:"items"`
}

// CommitMessage is a suggestion for the message of a commit of what a task changed.
type CommitMessage struct {
	Task string `json:"task_id"`
	Text string `json:"text"` // a subject, an empty line, and what was done
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
	// Patch is the difference that a restore makes to the file, in the answer to a dry run that names paths.
	Patch string `json:"patch,omitempty"`
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
