// Package engine runs tasks: it starts, continues, answers, cancels and waits for
// the runs of this process, and hands out their events in order. Every front
// door (shell, HTTP, web page, editor) calls this package and has no logic of
// its own.
//
// An engine never runs a task that another process owns: it says who does. A
// front door's end never touches a run; Close ends them all, saved.
package engine

import (
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/task"
)

// Request starts or continues a task. Nil and zero members mean "as the task has
// it", or the default for a new one.
type Request struct {
	Task   string // reference of an existing task; "" starts a new one
	Text   string
	Images []string // data URLs
	Yes    bool     // continue without further words
	Title  string   // of a new task; "" = by its words

	Workspace string // absolute folder
	Mode      string
	Provider  string
	Model     string
	BaseURL   string
	Profile   string // a profile of Config: provider, model and settings at once; what stands here beside it wins
	Preset    bool   // of a new task: nobody named provider, model, address or profile for it; they are the settings'
	Effort    string // none, minimal, low, medium, high, xhigh, max
	MaxTokens int    // of one reply
	Condense  int    // percent of the model's window at which older history is summarised; negative = never
	Stale     string // what the model is given of a file that others changed: task.StaleTell or task.StaleRead
	Approve   string // ask, read, edits, all
	Allow     []string
	Deny      []string
	// Rules of tools and files; see approval.Rule.
	AllowTools, AskTools, DenyTools []string
	// MaxDayMicros is what all tasks may cost on one day, for this run; 0 = as Config
	// says, negative = no limit. A task does not keep it.
	MaxDayMicros int64
	// Limits replaces those of the task's limits that are not zero here; a negative
	// one takes the limit away.
	Limits *task.Limits

	// NoCheckpoints keeps nothing of the files that this run changes. A task does not keep it.
	NoCheckpoints bool

	Origin      string // cli, api, web, editor
	Interactive bool   // somebody listens to questions and will call Answer

	// RunID is what the run is called; "" = a new name. The name of a run that is queued or
	// waits goes on with that one. NewTask is what a new task is called.
	RunID   string
	NewTask string
	// Hold is how long an interactive run waits for a person before it lets its task go, as
	// waiting; 0 = until somebody answers.
	Hold time.Duration

	// StandIn is a profile or provider to use where the task's own profile is not
	// known; the task keeps its profile's name.
	StandIn  string
	keepName bool // Profile is such a stand-in
	// Fallback: where neither is known, whom new tasks ask is asked in its place, and that is
	// said.
	Fallback bool

	// OwnSettings confirms that a task whose log is not proven goes on, under its user's own
	// settings. TrustSettings takes over policy, address and limits that such a task, or one
	// that was imported, came with: never its queue or its answers. See Engine.Receive.
	OwnSettings, TrustSettings bool

	answer   *Answer // to question, which the task waits with
	question string
	unasked  bool // nobody asked for it now: a task that is not trusted stays as it is
}

// Event is one event of a task.
type Event = events.Event

// Answer is what a person said to a question.
type Answer = agent.Answer

// Outcome is how a run ended.
type Outcome = agent.Outcome
