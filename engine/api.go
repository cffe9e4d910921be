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
	"github.com/roost-dev/roost/engine/setup"
)

// Request starts or continues a task. Nil and zero members mean "as the task has
// it", or the default for a new one.
type Request struct {
	Task   string // reference of an existing task; "" starts a new one
	Text   string
	Images []string // data URLs
	Yes    bool     // continue without further words
	Title  string   // of a new task; "" = by its words

	setup.Choice

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

	// OwnSettings confirms that a task whose log is not proven goes on, under its user's own
	// settings. TrustSettings takes over policy, address and limits that such a task, or one
	// that was imported, came with: never its queue or its answers. See Engine.Receive.
	OwnSettings, TrustSettings bool

	answer    *Answer // to question, which the task waits with
	question  string
	automatic bool // no caller asked for it: a task that is not trusted stays as it is
}

// Answer is what a person said to a question.
type Answer = agent.Answer

// Outcome is how a run ended.
type Outcome = agent.Outcome
