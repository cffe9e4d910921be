package api

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
