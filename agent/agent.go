package agent

import (
	"context"
	"errors"
	"io"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/stale"
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
)

// Journal is the journal of a task that this process owns.
type Journal interface {
	State() *task.State
	Commit(ctx context.Context, events ...task.Event) error
	Barrier(ctx context.Context) error
	PutBlobFile(ctx context.Context, path string) (string, int64, error)

	// TakeIn brings into the state what other goroutines and processes queued for the task. Claim gives queued words,
	// as they are now, to the run; it returns false when the person took them back.
	TakeIn() error
	Claim(input string) (task.InputQueued, bool)
}

// Answer is a person's answer to a question.
type Answer struct {
	Approve *bool  // yes or no; nil when only Text was given
	Text    string // an answer, or feedback with yes or no
	Always  bool   // allow this tool or command for the rest of the task, too
	By      string // where the answer came from, e.g. "terminal"
	Input   string // the message that brought the answer, "" for none
}

// ErrUnattended: no person can be asked now. The run stops and waits.
var ErrUnattended = errors.New("no person can be asked")

// ErrTimeout is the cause of a context that a run's time limit ended.
var ErrTimeout = errors.New("the run's time is up")

// ErrParentStopped ends a subtask's run because its parent's run was stopped.
var ErrParentStopped = errors.New("its parent was stopped")

// ErrDrained: the program is ending; a later run continues the task.
var ErrDrained = errors.New("the program is ending")

// ErrStop: the person wants to stop and save.
var ErrStop = errors.New("stopped by the user")

// Input is what a run is started with.
type Input struct {
	Text   string
	Images []string // data URLs
	Yes    bool     // continue without further words

	// Answer is for the question of that name, if it is still open; nil = the words may be an answer.
	Answer   *Answer
	Question string
}

// Given reports whether the input holds anything.
func (in Input) Given() bool { return in.Text != "" || len(in.Images) > 0 || in.Yes }

// Agent runs one task. Its exported fields are set before Run. During a run only the agent changes them:
// a switch of the mode or a lasting permission changes Task.Settings, a mode's own profile changes Model.
type Agent struct {
	Task  Task
	Model Model
	Tools Tools
	User  User
	Host  Host

	tools       map[string]tool.Tool // by name and alias
	prompt      modePrompt
	todos       todos
	stale       *stale.Tracker
	checkpoints *checkpoints.Keeper
	sending     sending
	loop        loop
	lastTS      int64 // the newest time stamp that was given out
}

// Task is the task and what this run may do in it.
type Task struct {
	Journal  Journal
	RunID    string
	Settings task.Settings
	Policy   approval.Policy
	Head     string // the workspace's git HEAD, "" without git
}

// Model is the model that answers.
type Model struct {
	Provider llm.Provider
	Entry    catalogue.Model // zero when the catalogue does not list the model
}

// Tools are what the model may call.
type Tools struct {
	List     []tool.Tool
	Offer    tool.Offer // which of them the user added or switched off
	Servers  Servers    // MCP servers; nil = none
	Subtasks Subtasks   // runs what new_task asks for; nil = no subtasks
	// Outputs finds whole command outputs that another program kept for this task, as tool.Env.Kept does
	// for ours; nil = none.
	Outputs func(artifact string) (io.ReaderAt, int64, bool)
}

// User is the person behind the task: how to reach them, and what they set up.
type User struct {
	Asker    Asker    // nil = no person can be asked
	Attended bool     // a person follows the run and answers at once
	Observer Observer // nil = nothing is shown
	Zone     string   // the time zone, for the model
	// Modes are the modes that the task may be in; nil = there are none, and no mode forbids anything.
	Modes *mode.Set
	Setup ModeSetup // nil = no rules, skills or profiles
}

// Host is the machine and the program that the run works in.
type Host struct {
	Now         func() int64 // Unix milliseconds
	Workspace   *workspace.Workspace
	Mentions    mention.World     // resolves mentions in a person's words; nil leaves them as typed
	SpoolDir    string            // for command output that does not fit in memory
	Masks       *redact.Redactor  // hides secrets in new tool output; nil hides none
	Budget      Budget            // nil = no limits beside those in the settings
	Checkpoints checkpoints.Store // keeps what files held before a change; nil = nothing is kept
	OtherTasks  stale.OtherTasks  // nil = other tasks are not consulted
}

// loop is what the loop remembers from one step to the next. All of it starts empty after a restart.
type loop struct {
	first      bool   // this run has sent no request yet
	listFiles  bool   // the next user turn lists the workspace's files
	yes        bool   // the person agreed to go on and added no words
	halt       bool   // the person refused to go on
	always     string // the question whose answer holds for the rest of the task
	extended   bool   // the MCP servers were asked for their tools
	mistakes   int    // turns in a row that went wrong
	refusals   int    // replies in a row of which the policy refused every call
	malformed  bool   // the last reply held a call whose input was not JSON
	stopReason string // why the last reply ended; "" after a restart
}

// sending is what the agent knows about the requests it builds.
type sending struct {
	window      window
	unthinking  bool                   // the provider refuses the history's reasoning
	trial       []task.MessageWithheld // a guess at what the provider refuses; recorded with a reply
	uncondensed int                    // message count when condensing failed; 0 = it did not
	notes       map[contextwindow.Note]bool
}

// Outcome is how a run ended.
type Outcome struct {
	State    string // completed, failed, cancelled, interrupted, limit, denied, waiting
	Reason   string
	Code     string // provider, auth, context, turns, cost, mistakes, save, ...
	Question string // the open question, when waiting
	Child    string // the subtask that ended so, "" when the task itself did
	Err      error
}

// stamp returns the next time stamp: now, but strictly after every one before it.
func (a *Agent) stamp() int64 {
	a.lastTS = max(a.Host.Now(), a.lastTS+1)
	return a.lastTS
}

func (a *Agent) state() *task.State { return a.Task.Journal.State() }

// turnIsOpen reports whether the history ends in a user turn, which waits for the model.
func (a *Agent) turnIsOpen() bool {
	api := a.state().API()
	return len(api) == 0 || api[len(api)-1].Kind() != "assistant"
}

// commit appends events without waiting for the disk.
func (a *Agent) commit(ctx context.Context, events ...task.Event) error {
	return a.Task.Journal.Commit(context.WithoutCancel(ctx), events...)
}

func (a *Agent) notice(text string) {
	if a.User.Observer != nil {
		a.User.Observer.Notice(text)
	}
}

func (a *Agent) live(d Delta) {
	if a.User.Observer != nil {
		a.User.Observer.Live(d)
	}
}

// modePrompt is the system prompt of one mode.
type modePrompt struct {
	slug string
	text string
}

// todos is the newest todo list of the task, and how many rows were searched for it: a turn costs the rows that came
// since the turn before.
type todos struct {
	seen int
	list []byte // a JSON array, nil when there is none
}
