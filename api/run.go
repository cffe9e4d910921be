package api

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/money"
)

// Maybe is a member of a merge patch: absent, null, or a value.
type Maybe[T any] struct {
	Given bool
	Value *T // nil = null
}

// IsZero makes omitzero leave out a member that was not given.
func (m Maybe[T]) IsZero() bool { return !m.Given }

// MarshalJSON writes the value, or null.
func (m Maybe[T]) MarshalJSON() ([]byte, error) { return json.Marshal(m.Value) }

// UnmarshalJSON is called only for members that the JSON has.
func (m *Maybe[T]) UnmarshalJSON(data []byte) error {
	m.Given, m.Value = true, nil
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	return json.Unmarshal(data, &m.Value)
}

// Form returns a value of the type that the JSON holds, for the OpenAPI document.
func (m Maybe[T]) Form() any { return m.Value }

// TaskPatch changes a task. Absent members change nothing. null restores the task's own title, and removes all tags or the
// pin. The settings apply to later runs.
type TaskPatch struct {
	Title  Maybe[string]   `json:"title,omitzero"`
	Tags   Maybe[[]string] `json:"tags,omitzero"`
	Pinned Maybe[bool]     `json:"pinned,omitzero"`

	// Tags to add to or remove from the task's tags; they exclude tags, which replaces all of them.
	AddTags    []string `json:"add_tags,omitempty"`
	RemoveTags []string `json:"remove_tags,omitempty"`

	Settings
}

// Deleted is a task that was moved into the trash, and the request that restores it.
type Deleted struct {
	DeletedTask
	Restore  string   `json:"restore"`  // the request: POST /v1/trash/NAME/restore
	Subtasks []string `json:"subtasks"` // names in the trash of the subtasks that were deleted with it

	With []DeletedTask `json:"with,omitempty"` // the deleted subtasks
}

// NewPurge removes deleted tasks for good.
type NewPurge struct {
	Names []string `json:"names"` // whole names or ids in the trash
}

// Purged are the deleted tasks that were removed for good.
type Purged struct {
	Items []DeletedTask `json:"purged"`
}

// Restored is a task that was restored from the trash.
type Restored struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Path   string `json:"path"`
}

// InputPatch changes the text of queued input.
type InputPatch struct {
	Text string `json:"text"`
}

// Run is one stretch of work on a task, as every door shows it.
type Run struct {
	ID       string `json:"id"`
	Task     string `json:"task_id"`
	State    string `json:"state"`    // queued, running, waiting, completed, failed, cancelled, interrupted
	Outcome  string `json:"outcome"`  // outcome of run.ended, which may also be limit or denied; "" before the end
	Code     string `json:"code"`     // the kind of failure or limit; "" = none
	Reason   string `json:"reason"`   // a text; for a completed run its result
	Question string `json:"question"` // the ID of the question whose answer the run waits for; "" = none

	Position int  `json:"position"`       // in the queue, from 1; 0 = not queued
	Here     bool `json:"here"`           // the answering process works on the run
	Lost     bool `json:"lost,omitempty"` // the server that worked on it died: another one may continue the task
	// the process that works on the run and does not answer; only in the answer to a request for this run
	Silent string     `json:"silent,omitempty"`
	Turns  int        `json:"turns"`
	Cost   *money.USD `json:"cost"` // null = unknown

	QueuedAt  *string `json:"queued_at"`
	StartedAt *string `json:"started_at"`
	EndedAt   *string `json:"ended_at"`

	Mode     string `json:"mode"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Limits   Limits `json:"limits"` // an absent limit does not bound the run
	Resume   string `json:"resume_command"`
}

// Question is an open question of a task, or its request for an approval.
type Question struct {
	ID    string `json:"id"` // unique over all tasks; answers name it
	Task  string `json:"task_id"`
	Title string `json:"title"` // the task's
	Run   string `json:"run_id"`
	At    string `json:"opened_at"`
	Event string `json:"event"` // the id of the event that opened it; an answer may name it as seen
	Here  bool   `json:"here"`  // a run of the answering process waits for the answer
	QuestionOpened
}

// Found holds facts about a list or a search.
type Found struct {
	Sources []SourceState `json:"sources"`
	Copies  int           `json:"copies"` // places that hold a copy of a listed task
	Tasks   int           `json:"tasks"`
	Unread  []Damage      `json:"unread"` // tasks that could not be read
	Notes   []string      `json:"notes"`

	Places []Place `json:"places,omitempty"` // other folders that were searched, if there are no tasks at all

	// Of a search that bounds the hits of each task (SearchQuery.Each):
	Hits  map[string]int `json:"hits,omitempty"`  // all hits of each task on the page, by SOURCE:ID
	Total *HitTotal      `json:"total,omitempty"` // of all tasks; absent if counting would take long
}

// Place is a folder in which Roost looks for the storages of other tools. A star in Dir matches any name.
type Place struct {
	Dir     string `json:"dir"`
	Product string `json:"product"` // the editor or the program
}

// HitTotal counts all hits of a search.
type HitTotal struct {
	Tasks int `json:"tasks"` // that have hits
	Hits  int `json:"hits"`
}

// ListPart is the known part of a list at one moment while the server reads it.
type ListPart struct {
	// Items are the rows that were read since the previous part, in no order. The last part has all rows.
	Items   []Summary     `json:"items"`
	Sources []SourceState `json:"sources"` // with the damaged and empty tasks that are known so far
	Read    int           `json:"read"`    // tasks that are known
	Of      int           `json:"of"`
	Whole   bool          `json:"whole"`             // this is the last part
	Problem *Problem      `json:"problem,omitempty"` // why the rest is missing; then this is the last part
}

// Queued is input that waits until a run takes it.
type Queued struct {
	ID     string   `json:"id"`
	Text   string   `json:"text"`
	Images []string `json:"images"`
}

// Sent is the outcome of a message to a task.
type Sent struct {
	Delivered string `json:"delivered"` // answered, queued, started
	Task      string `json:"task_id"`
	Run       string `json:"run_id"`
	Question  string `json:"question"` // the question that it answered; "" = none
	Input     string `json:"input"`    // the message's ID in the queue; "" = it is not queued
}

// Answered is the outcome of an answer.
type Answered struct {
	Question string `json:"question"`
	Task     string `json:"task_id"`
	Run      string `json:"run_id"` // the run that continues with it
	Approve  *bool  `json:"approve"`
	Text     string `json:"text"`
	By       string `json:"by"`
}

// Words are the text and images of a user.
type Words struct {
	Text   string   `json:"text"`
	Images []string `json:"images,omitempty"` // data URLs, or names of images of the draft
	Draft  string   `json:"draft,omitempty"`  // the revision of the draft that was sent; the draft is removed once the task has taken the text
}

// Limits bound a run. Durations are in Go's form (30m), money is a decimal string of US dollars. A zero removes the
// limit; an absent one stays.
type Limits struct {
	MaxTurns     *int       `json:"max_turns,omitempty"`
	MaxCost      *money.USD `json:"max_cost,omitempty"`
	IdleTimeout  *string    `json:"idle_timeout,omitempty"`
	TotalTimeout *string    `json:"total_timeout,omitempty"`

	MaxCostTask      *money.USD `json:"max_cost_task,omitempty"`      // of the task and its subtasks, ever
	AskAfterRequests *int       `json:"ask_after_requests,omitempty"` // ask the user whether to continue, after so many
	AskAfterCost     *money.USD `json:"ask_after_cost,omitempty"`
}

// Settings are the settings of a task that a request changes. Absent ones stay; a new task takes them from the
// settings of the server's user.
type Settings struct {
	Mode       string   `json:"mode,omitempty"`
	Provider   string   `json:"provider,omitempty"`
	Model      string   `json:"model,omitempty"`
	BaseURL    string   `json:"base_url,omitempty"`
	Profile    string   `json:"profile,omitempty"`
	Effort     string   `json:"effort,omitempty"`      // none, minimal, low, medium, high, xhigh, max
	MaxTokens  *int     `json:"max_tokens,omitempty"`  // of one reply; 0: the model's own limit
	CondenseAt *int     `json:"condense_at,omitempty"` // percent of the model's window at which older history is summarised; 0: never
	Stale      string   `json:"stale,omitempty"`       // what the model gets for a stale file: tell (a notice), read (its content)
	Limits     *Limits  `json:"limits,omitempty"`
	Approve    string   `json:"approve,omitempty"` // ask, read, edits, all
	Allow      []string `json:"allow,omitempty"`   // patterns of commands
	Deny       []string `json:"deny,omitempty"`
	AllowTools []string `json:"allow_tools,omitempty"` // rules of tools and files: write_to_file, "write(docs/**)"
	AskTools   []string `json:"ask_tools,omitempty"`
	DenyTools  []string `json:"deny_tools,omitempty"`
}

// NewTask makes a task; with a message it runs at once.
type NewTask struct {
	Workspace string `json:"workspace"` // an absolute folder of the server's machine
	Settings
	Title   string `json:"title,omitempty"`
	Message *Words `json:"message,omitempty"`
	Origin  string `json:"origin,omitempty"` // api (the default), cli, web, editor
	OneRun
}

// OneRun are options of one run, which the task does not keep.
type OneRun struct {
	// Unattended: no user can answer. A run that must ask ends at once, as waiting, and does not first hold the task
	// for some time.
	Unattended    bool       `json:"unattended,omitempty"`
	NoCheckpoints bool       `json:"no_checkpoints,omitempty"` // make no checkpoints of the files that the run changes
	MaxCostDay    *money.USD `json:"max_cost_day,omitempty"`   // for all tasks of a day together; 0: no limit
	StandIn       string     `json:"stand_in,omitempty"`       // the profile or provider to use if the task's own profile is not known
}

// Started is a new task and its run.
type Started struct {
	Summary
	Task  string `json:"task_id"` // the id of the task, as in every document about a task
	RunID string `json:"run_id"`  // "" = there is no run, because there was no message
	Run   *Run   `json:"run"`     // null without a run
}

// NewRun resumes or continues a task.
type NewRun struct {
	Message   *Words `json:"message,omitempty"`
	Yes       bool   `json:"yes,omitempty"` // continue without a message
	Workspace string `json:"workspace,omitempty"`
	Settings
	OneRun

	// For an untrusted task: continue under the user's own settings although the task has open work, or accept the policy,
	// address and limits in the task.
	OwnSettings   bool `json:"own_settings,omitempty"`
	TrustSettings bool `json:"trust_settings,omitempty"`
}

// ResumePlan shows how a run of a task would begin. Making it changes nothing.
type ResumePlan struct {
	Task  string `json:"task_id"` // the task that would continue: the requested one, or a fork that already continues it
	Title string `json:"title"`
	Tool  string `json:"tool"`
	Place string `json:"place"` // own, in_place (in the other tool's storage), fork (as a new task)
	First bool   `json:"first"` // Roost never worked on the task
	Run   *Run   `json:"run"`   // the run that works or waits, in any process: a message would join it; null = none

	// The next run, as far as it is decided.
	Workspace string `json:"workspace"`
	Provider  string `json:"provider"`
	Model     string `json:"model"`
	Mode      string `json:"mode"`
	Approve   string `json:"approve"`

	// Asks are the open decisions: the problems that POST .../runs would answer with. Their suggestions name the
	// members that decide. Further decisions may follow: repeat the request with the made decision as a parameter.
	Asks  []*Problem `json:"asks"`
	Notes []string   `json:"notes"` // changes since the last run: of the folder, the model, the commit of the repository
}

// Message is a message of a user to a task in any state.
type Message struct {
	Text     string   `json:"text"`
	Images   []string `json:"images,omitempty"` // as in Words, like Draft
	Draft    string   `json:"draft,omitempty"`
	Delivery string   `json:"delivery,omitempty"` // auto (the default), queue, interrupt
}

// Answer answers a question with one of Choice, Text and Approve. Text besides Approve is for the model.
type Answer struct {
	Choice  *json.RawMessage `json:"choice,omitempty"` // the number of a choice, from 1, or its text
	Text    string           `json:"text,omitempty"`
	Approve *bool            `json:"approve,omitempty"`
	Always  bool             `json:"always,omitempty"` // and allow this tool or command for the rest of the task
	Seen    string           `json:"seen,omitempty"`   // the newest event that the user saw; an answer from before the question is refused
}

// RunLimits bound a run. Zero means no limit.
type RunLimits struct {
	MaxTurns       int   `json:"max_turns,omitempty"`
	MaxCostMicros  int64 `json:"max_cost_micros,omitempty"`
	MaxTaskMicros  int64 `json:"max_cost_task_micros,omitempty"` // of the task and its subtasks, ever
	AskRequests    int   `json:"ask_after_requests,omitempty"`   // the run asks the user whether to continue
	AskCostMicros  int64 `json:"ask_after_cost_micros,omitempty"`
	IdleTimeoutMS  int64 `json:"idle_timeout_ms,omitempty"`
	TotalTimeoutMS int64 `json:"total_timeout_ms,omitempty"`
}

// Given returns the given limits as a document. In a document 0 removes a limit, and in RunLimits a negative number
// does.
func (l RunLimits) Given() Limits {
	span := func(ms int64) *string {
		if ms == 0 {
			return nil
		}
		return new((time.Duration(max(ms, 0)) * time.Millisecond).String())
	}
	return Limits{
		MaxTurns:         Given(l.MaxTurns),
		MaxCost:          Given(money.USD(l.MaxCostMicros)),
		MaxCostTask:      Given(money.USD(l.MaxTaskMicros)),
		AskAfterRequests: Given(l.AskRequests),
		AskAfterCost:     Given(money.USD(l.AskCostMicros)),
		IdleTimeout:      span(l.IdleTimeoutMS),
		TotalTimeout:     span(l.TotalTimeoutMS),
	}
}

// Given returns a limit of RunLimits as a member of a document; nil = not given. A negative number, which removes the
// limit, becomes 0.
func Given[N int | money.USD](n N) *N {
	if n == 0 {
		return nil
	}
	return new(max(n, 0))
}

// QuestionOpened is a question to the user.
type QuestionOpened struct {
	Question string   `json:"question"`
	Kind     string   `json:"kind"` // approval, followup, completion, resume, mistake_limit, request_failed
	Message  uint64   `json:"message,omitempty"`
	Call     string   `json:"call,omitempty"`
	Text     string   `json:"text"`
	Choices  []string `json:"choices,omitempty"`
	// Modes are the modes in which the task continues after each choice, "" for the present one; absent when no
	// choice changes the mode.
	Modes []string `json:"modes,omitempty"`
	Diff  string   `json:"diff,omitempty"`

	Command string `json:"command,omitempty"` // the whole command that would run after an approval
	Dir     string `json:"cwd,omitempty"`     // the folder where it would run
	Always  string `json:"always,omitempty"`  // a description of what an answer "always" allows; "" = only this call
}

// hookReason matches the line of a question's text with a hook's reason, which the hook may word anew each time.
var hookReason = lazyregexp.New(`(\nthe user's hook [^:\n]*:)[^\n]*`)

// Same reports whether a user who agrees to q would agree to the same thing as with other.
func (q QuestionOpened) Same(other QuestionOpened) bool {
	text, same := hookReason().ReplaceAllString(q.Text, "$1"), hookReason().ReplaceAllString(other.Text, "$1")
	return q.Call == other.Call && text == same && q.Diff == other.Diff && q.Command == other.Command && q.Dir == other.Dir
}

// EventType returns the type of the event that opens the question.
func (QuestionOpened) EventType() string { return "question.opened" }

// QuestionClosed is the answer to a question, or the reason why it closed without one.
type QuestionClosed struct {
	Question string `json:"question"`
	Approve  *bool  `json:"approve,omitempty"`
	Text     string `json:"text,omitempty"`
	By       string `json:"by"`
	Input    string `json:"input,omitempty"`  // the message that brought the answer
	Reason   string `json:"reason,omitempty"` // why it closed without an answer: superseded, cancelled
}

// EventType returns the type of the event that closes the question.
func (QuestionClosed) EventType() string { return "question.closed" }
