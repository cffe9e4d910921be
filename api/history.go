package api

import "github.com/roost-dev/roost/money"

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
	Kind string       `json:"kind"` // rename, tag, pin, delete; rewind, edit, remove, branch; condense, truncate
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
	DryRun     bool     `json:"dry_run,omitempty"`
}

// Kinds of actions that show and undo describe apart.
const (
	ActionRestore  = "restore" // it restored files and moved no head
	ActionCondense = "condense"
	ActionTruncate = "truncate"
)
