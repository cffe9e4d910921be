// Package agent is the loop: build a request from the task's history, ask the
// model, run the tools it calls, commit each step, and again, until the task is
// completed, stopped, or needs a person.
//
// The agent keeps no state of its own that a crash could take: what it needs to
// go on is in the task's log. Starting and restarting are the same code. It
// knows nothing of who is watching; it asks questions through an Asker and shows
// streamed text through a Live function, and both may be absent.
package agent

import (
	"context"
	"errors"
	"io"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/skill"
)

// Task is what the agent needs of an owned task.
type Task interface {
	State() *task.State
	Commit(ctx context.Context, events ...task.Event) error
	Barrier(ctx context.Context) error
	PutBlob(ctx context.Context, data []byte) (string, error)
	PutBlobFile(ctx context.Context, path string) (string, int64, error)

	// TakeIn brings into the state what others queued for the task since, and Claim gives
	// queued words, as they are now, to the run; false: they were taken back.
	TakeIn() error
	Claim(input string) (task.InputQueued, bool)
}

// Answer is what a person said to a question.
type Answer struct {
	Approve *bool  // yes or no; nil when only Text was given
	Text    string // an answer, or feedback beside yes or no
	Always  bool   // and allow this tool or command for the rest of the task
	By      string // who answered, e.g. "terminal"
	Input   string // the message that it came with, "" for none
}

// ErrNobody: no person can be asked now. The run stops and waits.
var ErrNobody = errors.New("nobody can be asked")

// ErrDrained: the program is to end, and the run is gone on with later.
var ErrDrained = errors.New("the program is ending")

// ErrStop: the person wants to stop and save.
var ErrStop = errors.New("stopped by the user")

// Asker asks the person. It returns ErrNobody, ErrStop, the context's error, or
// an answer.
type Asker interface {
	Ask(ctx context.Context, q task.QuestionOpened) (Answer, error)
}

// Delta is streamed text before it is durable.
type Delta struct {
	Type    string // "message.delta", "reasoning.delta", "tool.delta"; "wait.delta" tells how long until the next try, TS is its time
	Message uint64
	Call    string
	TS      int64
	Offset  int // bytes of text before this piece
	Text    string
}

// Input is what a run is started with.
type Input struct {
	Text   string
	Images []string // data URLs
	Yes    bool     // go on without further words

	// Answer is to the question of that name, if it is still open; nil = the words may be one.
	Answer   *Answer
	Question string
}

// Given reports whether there is anything in it.
func (in Input) Given() bool { return in.Text != "" || len(in.Images) > 0 || in.Yes }

// Agent runs one task. Its fields are set before Run and not changed after.
type Agent struct {
	Task     Task
	Provider llm.Provider
	Model    catalogue.Model // zero when unknown
	Tools    []tool.Tool
	Offer    tool.Offer // which of them the user wants or has switched off
	// Outputs finds whole outputs of commands that another program kept of this task, as
	// tool.Env.Kept does for ours; nil = there are none.
	Outputs   func(artifact string) (io.ReaderAt, int64, bool)
	Workspace *workspace.Workspace
	World     mention.World // what mentions in a person's words are about; nil leaves them as they are
	Policy    approval.Policy
	Asker     Asker
	Attended  bool // somebody follows the run and answers at once
	Live      func(Delta)
	Accepted  func()       // called once, when what the run was started with is on disk; nil = nobody waits for it
	Now       func() int64 // Unix milliseconds
	Zone      string       // the user's time zone, for the model
	RunID     string
	Settings  task.Settings
	Head      string // the workspace's git HEAD, "" without git
	SpoolDir  string
	Masks     *redact.Redactor // hides secrets in new tool output; nil hides none
	Notice    func(string)     // things a person should know and nobody else
	Expect    func(Plan) error // told before the first request of a run
	Shared    Shared           // limits in common with other tasks; nil = none
	Worked    func() int64     // how long the run worked, in milliseconds, where its time is limited; nil = it is not
	Servers   Servers          // MCP servers; nil = there are none
	Subtasks  Subtasks         // runs what new_task asks for; nil = there are none
	Others    OtherTasks       // nil = nothing is known of other tasks
	// Checkpoints keep what files held before they are changed; nil = nothing is kept.
	Checkpoints Checkpoints
	// Skills lists the skills of a mode, and what of them cannot be used. It is asked when
	// Rules is. nil = there are none.
	Skills func(slug string) (list []skill.Skill, notes []string)
	// Serve gives who answers in the mode of the settings, when that is somebody else
	// than the settings say. nil = it is always the same.
	Serve func(task.Settings) (s Served, other bool, err error)
	Modes *mode.Set // the modes that the task may be in; nil = none, and nothing is forbidden
	// Rules loads the user's rules for a mode, when a run begins and when the mode
	// changes. Rules that change while a run goes on count from the next one: a system
	// prompt that moves costs every cached request before it. nil = there are none.
	Rules func(slug string) mode.Rules

	tools     map[string]tool.Tool
	prompt    prompt
	todos     todos
	window    window
	sight     sight
	keeping   keeping
	lastTS    int64
	mistakes  int
	refusals  int    // replies in a row of which the policy refused every call
	malformed bool   // the last reply held a call that was not JSON
	stop      string // why the last reply ended; "" after a restart
	first     bool   // no request went out yet in this run
	fresh     bool   // the next user turn lists the workspace's files
	yes       bool   // the person said "go on" and nothing else
	halt      bool   // the person said no to going on
	always    string // the question whose answer was meant for more than once
	extended  bool   // the MCP servers were asked what they offer

	uncondensed int                    // how many messages there were when condensing failed; 0 = it did not
	unthinking  bool                   // the provider will not have the history's reasoning
	trial       []task.MessageWithheld // a guess at what the provider refuses; recorded with a reply
	told        map[contextwindow.Note]bool
}

// Plan says what the next request sends and what it is expected to cost.
type Plan struct {
	Messages  int
	Tokens    int64
	CostMicro int64 // uncached
	CostKnown bool
	Model     string
	Provider  string
}

// Outcome is how a run ended.
type Outcome struct {
	State    string // completed, failed, cancelled, interrupted, limit, denied, waiting
	Reason   string
	Code     string // provider, auth, context, turns, cost, mistakes, save, ...
	Question string // when waiting
	Child    string // the subtask that ended so, "" when it was the task itself
	Err      error
}

// stamp gives the next time stamp: now, but strictly after every one before it.
func (a *Agent) stamp() int64 {
	a.lastTS = max(a.Now(), a.lastTS+1)
	return a.lastTS
}

func (a *Agent) state() *task.State { return a.Task.State() }

// commit appends without waiting for the disk.
func (a *Agent) commit(ctx context.Context, events ...task.Event) error {
	return a.Task.Commit(context.WithoutCancel(ctx), events...)
}

func (a *Agent) notice(text string) {
	if a.Notice != nil {
		a.Notice(text)
	}
}
