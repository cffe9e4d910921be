package report

import (
	"encoding/json"

	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Run is one stretch of work on a task, as every door shows it.
type Run struct {
	ID       string `json:"id"`
	Task     string `json:"task_id"`
	State    string `json:"state"`    // queued, running, waiting, completed, failed, cancelled, interrupted
	Outcome  string `json:"outcome"`  // as run.ended has it, which also knows limit and denied; "" before
	Code     string `json:"code"`     // what kind of failure or limit; "" = none
	Reason   string `json:"reason"`   // in words: of a completed run its result
	Question string `json:"question"` // that it waits for, as answers name it; "" = none

	Position int        `json:"position"`         // in the queue, from 1; 0 = not queued
	Here     bool       `json:"here"`             // it is worked on by the process that answers
	Silent   string     `json:"silent,omitempty"` // the process that works on it, where that does not answer; only of a run that is asked for by its id
	Turns    int        `json:"turns"`
	Cost     *money.USD `json:"cost"` // null = unknown

	QueuedAt  *string `json:"queued_at"`
	StartedAt *string `json:"started_at"`
	EndedAt   *string `json:"ended_at"`

	Mode     string `json:"mode"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Limits   Limits `json:"limits"` // that end it; what is absent has none
	Resume   string `json:"resume_command"`
}

// Question is an open question, or the request for an approval, of some task.
type Question struct {
	ID    string `json:"id"` // as answers name it: over all tasks
	Task  string `json:"task_id"`
	Title string `json:"title"` // the task's
	Run   string `json:"run_id"`
	At    string `json:"opened_at"`
	Event string `json:"event"` // the id of the event that opened it: what an answer may name as seen
	Here  bool   `json:"here"`  // a run of the process that answers waits with it
	task.QuestionOpened
}

// Found is what was looked through for a list or a search.
type Found struct {
	Sources []store.SourceState `json:"sources"`
	Copies  int                 `json:"copies"` // places that hold a copy of a listed task
	Tasks   int                 `json:"tasks"`
	Unread  []store.Damage      `json:"unread"` // tasks that could not be read
	Notes   []string            `json:"notes"`
}

// Queued is input that a task has not used yet.
type Queued struct {
	ID     string   `json:"id"`
	Text   string   `json:"text"`
	Images []string `json:"images"`
}

// Sent says what became of a message to a task.
type Sent struct {
	Delivered string `json:"delivered"` // answered, queued, started
	Task      string `json:"task_id"`
	Run       string `json:"run_id"`
	Question  string `json:"question"` // that it answered; "" = none
	Input     string `json:"input"`    // by which it stands in the queue; "" = it does not
}

// Answered says what an answer did.
type Answered struct {
	Question string `json:"question"`
	Task     string `json:"task_id"`
	Run      string `json:"run_id"` // that goes on with it
	Approve  *bool  `json:"approve"`
	Text     string `json:"text"`
	By       string `json:"by"`
}

// Words are what a person says.
type Words struct {
	Text   string   `json:"text"`
	Images []string `json:"images,omitempty"` // data URLs
}

// Limits bound a run. Durations are as Go has them (30m), money in US dollars as a decimal
// string. A zero takes the limit away, what is absent stays as the task has it.
type Limits struct {
	MaxTurns     *int       `json:"max_turns,omitempty"`
	MaxCost      *money.USD `json:"max_cost,omitempty"`
	IdleTimeout  *string    `json:"idle_timeout,omitempty"`
	TotalTimeout *string    `json:"total_timeout,omitempty"`

	MaxCostTask      *money.USD `json:"max_cost_task,omitempty"`      // of the task and its subtasks, ever
	AskAfterRequests *int       `json:"ask_after_requests,omitempty"` // ask whether to go on
	AskAfterCost     *money.USD `json:"ask_after_cost,omitempty"`
}

// Settings are what a request names of a task's settings. What it leaves out is as the task
// has it; a new task takes it from the settings of the server's user.
type Settings struct {
	Mode       string   `json:"mode,omitempty"`
	Provider   string   `json:"provider,omitempty"`
	Model      string   `json:"model,omitempty"`
	BaseURL    string   `json:"base_url,omitempty"`
	Profile    string   `json:"profile,omitempty"`
	Effort     string   `json:"effort,omitempty"`      // none, minimal, low, medium, high, xhigh, max
	MaxTokens  *int     `json:"max_tokens,omitempty"`  // of one reply; 0: the model's own limit
	CondenseAt *int     `json:"condense_at,omitempty"` // percent of the model's window at which older history is summarised; 0: never
	Stale      string   `json:"stale,omitempty"`       // what the model is given of a file that others changed: tell, read
	Limits     *Limits  `json:"limits,omitempty"`
	Approve    string   `json:"approve,omitempty"` // ask, read, edits, all
	Allow      []string `json:"allow,omitempty"`   // patterns of commands
	Deny       []string `json:"deny,omitempty"`
	AllowTools []string `json:"allow_tools,omitempty"` // rules of tools and files: write_to_file, "write(docs/**)"
	AskTools   []string `json:"ask_tools,omitempty"`
	DenyTools  []string `json:"deny_tools,omitempty"`
}

// NewTask starts a task; with words it runs at once.
type NewTask struct {
	Workspace string `json:"workspace"` // an absolute folder of the server's machine
	Settings
	Title   string `json:"title,omitempty"`
	Message *Words `json:"message,omitempty"`
	Origin  string `json:"origin,omitempty"` // api (the default), cli, web, editor

	// Unattended: nobody is there to answer. A run that must ask is let go at once, as
	// waiting, instead of being held for a while.
	Unattended bool `json:"unattended,omitempty"`
}

// Started is a task that was made: as lists have it, and its run.
type Started struct {
	store.Summary
	Task  string `json:"task_id"` // the task's id, as every answer about a task says it
	RunID string `json:"run_id"`  // "" = it was told to do nothing yet
	Run   *Run   `json:"run"`     // null then
}

// NewRun resumes or continues a task.
type NewRun struct {
	Message   *Words `json:"message,omitempty"`
	Yes       bool   `json:"yes,omitempty"` // go on without further words
	Workspace string `json:"workspace,omitempty"`
	Settings

	Unattended bool `json:"unattended,omitempty"` // as of a new task

	// Of a task that came from elsewhere: go on under one's own settings although it holds
	// something open, or take over the policy, address and limits that it came with.
	OwnSettings   bool `json:"own_settings,omitempty"`
	TrustSettings bool `json:"trust_settings,omitempty"`
}

// Message is what a person sends to a task, whatever it does just now.
type Message struct {
	Text     string   `json:"text"`
	Images   []string `json:"images,omitempty"`
	Delivery string   `json:"delivery,omitempty"` // auto (the default), queue, interrupt
}

// Answer is what a person says to a question. One of Choice, Text and Approve says it;
// Text beside Approve is for the model.
type Answer struct {
	Choice  *json.RawMessage `json:"choice,omitempty"` // a choice's number from 1, or its words
	Text    string           `json:"text,omitempty"`
	Approve *bool            `json:"approve,omitempty"`
	Always  bool             `json:"always,omitempty"` // and allow this tool or command for the rest of the task
	Seen    string           `json:"seen,omitempty"`   // the newest event that the person saw; one from before the question is refused
}
