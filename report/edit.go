package report

import (
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store/actions"
)

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
	api.RewindResult
	Restore  *api.RestoreResult `json:"restore,omitempty"`
	Finished string             `json:"finished,omitempty"` // an interrupted restore that was finished first, in words
}

// NewUndo takes back what was last done to a task, or does it again.
type NewUndo struct {
	Expect string `json:"expect,omitempty"` // the ID of the action that is meant; when another one is next by now, nothing changes
	DryRun bool   `json:"dry_run,omitempty"`
}

// Undone is an action that was undone or redone, and what can be undone now.
type Undone struct {
	api.TaskActions
	DryRun  bool               `json:"dry_run"`
	Undone  *api.Action        `json:"undone"`
	Redone  *api.Action        `json:"redone"`
	Restore *api.RestoreResult `json:"restore,omitempty"`
}

// UndoneOf is the document of what engine.Undo returns.
func UndoneOf(deed api.Action, task api.TaskActions, files *api.RestoreResult, o actions.Options) Undone {
	out := Undone{TaskActions: task, DryRun: o.DryRun, Restore: files}
	if out.Undone = &deed; o.Redo {
		out.Undone, out.Redone = nil, &deed
	}
	return out
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

// CondensedOf is the document of what engine.Condense returns, or with dry engine.CondensePlan.
func CondensedOf(id string, c engine.Condensed, dry bool) Condensed {
	out := Condensed{
		Task: id, DryRun: dry, Condense: c.ID, Messages: c.Messages, Sent: c.Sent, Kept: c.Kept,
		Before: c.Before, After: c.After, Summary: c.Text,
	}
	if c.CostKnown {
		usd := money.USD(c.CostMicro)
		out.Cost = &usd
	}
	return out
}

// SavedCheckpoint is a checkpoint that was just saved; null when nothing differs from the newest one.
type SavedCheckpoint struct {
	Task       string          `json:"task_id"`
	Saved      bool            `json:"saved"`
	Checkpoint *api.Checkpoint `json:"checkpoint"`
}

// NewRestore restores the files that a task changed to a checkpoint.
type NewRestore struct {
	OnConflict string   `json:"on_conflict,omitempty"` // files that others changed: keep (the default), merge, overwrite
	Paths      []string `json:"paths,omitempty"`       // only these files or folders
	Workspace  string   `json:"workspace,omitempty"`   // where the files are now; "" = the task's
	Plan       string   `json:"plan,omitempty"`        // the plan of a dry run; when it would differ by now, nothing changes
	DryRun     bool     `json:"dry_run,omitempty"`
}
