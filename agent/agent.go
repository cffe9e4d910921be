package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/hook"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/api"
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

// Journal is the journal of a task that this process owns.
type Journal interface {
	State() *task.State
	Commit(ctx context.Context, events ...task.Event) error
	Barrier(ctx context.Context) error
	PutBlobFile(ctx context.Context, path string) (string, int64, error)

	// Held returns an error when another process could own the task before the caller begins its next piece of work.
	Held(ctx context.Context) error

	// TakeIn brings into the state what other goroutines and processes queued for the task. Claim gives queued words,
	// as they are now, to the run; it returns false when the person took them back.
	TakeIn() error
	Claim(input string) (task.InputQueued, bool)
}

// Answer is a person's answer to a question.
type Answer struct {
	Approve *bool    // yes or no; nil when only Text was given
	Text    string   // an answer, or feedback with yes or no
	Images  []string // data URLs that come with it
	Always  bool     // allow this tool or command for the rest of the task, too
	By      string   // where the answer came from, e.g. "terminal"
	Input   string   // the message that brought the answer, "" for none
}

// ErrUnattended: no person can be asked now. The run stops and waits.
var ErrUnattended = errors.New("no person can be asked")

// ErrTimeout is the cause of a context that a run's time limit ended.
var ErrTimeout = errors.New("the run's time is up")

// ErrParentStopped ends a subtask's run because its parent's run was stopped.
var ErrParentStopped = errors.New("its parent was stopped")

// ErrDrained: the program is ending; a later run continues the task.
var ErrDrained = errors.New("the program is ending")

// Input is what a run is started with.
type Input struct {
	Text   string
	Images []string // data URLs
	Yes    bool     // continue without further words
	Queued bool     // the task's queue holds words that came with this start

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
	Choice   task.RunChoice
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
	Subtasks Subtasks   // runs the subtasks that new_task starts; nil = no subtasks
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
	Now       func() int64 // Unix milliseconds
	Workspace *workspace.Workspace
	Mentions  mention.World    // resolves mentions in a person's words; nil leaves them as typed
	SpoolDir  string           // for command output that does not fit in memory
	Masks     *redact.Redactor // hides secrets in new tool output; nil hides none
	// Reached names the limit that the run shares with other tasks (its tree of tasks, all tasks of a day) and that is
	// used up, "" for none; nil = there are no such limits. The agent asks before each request. An error stops the run: a
	// sum that cannot be computed may be too large.
	Reached func(ctx context.Context) (code, reason string, err error)
	// WorkedMS is how long the run has worked, in milliseconds, where its time is limited, otherwise 0; nil = 0.
	WorkedMS    func() int64
	Checkpoints checkpoints.Store // keeps what files held before a change; nil = nothing is kept
	OtherTasks  stale.OtherTasks  // nil = other tasks are not consulted
	Hooks       *hook.Set         // the user's commands before and after calls and runs; nil = none
}

// loop is what the loop remembers from one step to the next. All of it starts empty after a restart.
type loop struct {
	first      bool   // this run has sent no request yet
	listFiles  bool   // the next user turn lists the workspace's files
	yes        bool   // the person agreed to go on and added no words
	words      bool   // words came with the run's start: for a task that waits for a subtask they are about that one
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
	Child    string // the subtask that ended with this outcome, "" when the task itself did
	Err      error
}

// setUp indexes the tools by their names and makes the parts that observe the workspace.
func (a *Agent) setUp() {
	a.stale = stale.New(surface{a}, a.Host.Workspace, a.Host.OtherTasks, a.User.Observer != nil)
	a.checkpoints = checkpoints.New(surface{a}, a.Host.Checkpoints, a.Task.RunID)
	a.tools = map[string]tool.Tool{}
	for _, t := range a.Tools.List {
		a.indexTool(t)
	}
}

// indexTool enters a tool under those of its names that no tool before it has. It returns false when its own name is taken.
func (a *Agent) indexTool(t tool.Tool) bool {
	spec := t.Spec()
	if a.tools[spec.Name] != nil {
		return false
	}
	for _, name := range append([]string{spec.Name}, spec.Aliases...) {
		a.tools[name] = cmp.Or(a.tools[name], t)
	}
	return true
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

// workedMS returns how long the run has worked, in milliseconds; 0 when that is not counted.
func (a *Agent) workedMS() int64 {
	if a.Host.WorkedMS == nil {
		return 0
	}
	return a.Host.WorkedMS()
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

// todos is the newest todo list of the task, and the number of rows that were searched for it: each turn searches
// only the rows that came since the turn before.
type todos struct {
	seen int
	list []byte // a JSON array, nil when there is none
}

// window keeps the checked messages of the visible API history, so that a turn costs what it appends. Any change but an
// append rebuilds it.
type window struct {
	builder *contextwindow.Builder
	options contextwindow.Options
	taken   []*task.Message
}

// messages returns the history as it may be sent. cover returns what is sent in place of a stored message.
func (w *window) messages(
	api []*task.Message, o contextwindow.Options, cover func(*task.Message) []byte,
) ([]llm.Message, []contextwindow.Note, error) {
	if w.builder == nil || w.options != o || len(w.taken) > len(api) || !slices.Equal(w.taken, api[:len(w.taken)]) {
		w.builder, w.options, w.taken = contextwindow.NewBuilder(o), o, nil
	}
	for _, m := range api[len(w.taken):] {
		w.builder.Append(cover(m))
		w.taken = append(w.taken, m)
	}
	return w.builder.Messages()
}

// Servers are the MCP servers of a run.
type Servers interface {
	// Open connects to the servers and returns the tools that the run has of them until its end, and notes for the
	// person. It takes a bounded time.
	Open(ctx context.Context) (tools []tool.Tool, notes []string)
	// Find returns the tool for a name from the history that is not offered now, for example because its server did not
	// answer; nil when no server's tool has such a name.
	Find(name string) tool.Tool
}

// Subtasks runs the tasks that a task starts.
type Subtasks interface {
	// State returns the state of a child.
	State(ctx context.Context, id string) (SubtaskState, error)
	// Run creates the child if it does not exist, and runs it until it ends or waits. The reason of a completed child
	// is its result. Run returns early when ctx ends.
	Run(ctx context.Context, s Subtask) (Outcome, error)
}

// Subtask is a child that the agent wants to run.
type Subtask struct {
	ID       string
	Mode     string
	Message  string // its first words
	Todos    string // a checklist in Markdown, "" for none
	Known    bool   // another program created it: Run looks for it and does not create it
	Settings task.Settings
}

// SubtaskState is the state of a child.
type SubtaskState struct {
	Status string // as lists show it; "" when the child does not exist yet
	Result string // of a completed child
	Gone   bool   // it was deleted, or it is another program's and does not exist
}

// ModeModel is the model of a mode, and the settings that the task keeps with it.
type ModeModel struct {
	Settings task.Settings
	Model    Model
	Note     string // for the person
}

// Asker asks the person. Ask returns ErrUnattended, the context's error, or an answer.
type Asker interface {
	Ask(ctx context.Context, q api.QuestionOpened) (Answer, error)
}

// Observer shows a run to the people who follow it. Its methods must be quick.
type Observer interface {
	// Accepted is called once, when the input that the run was started with is durable.
	Accepted()
	// Expect describes the run's first request before it is sent: its size, and what it is expected to cost.
	Expect(text string)
	// Live receives streamed text before it is durable.
	Live(d Delta)
	// Notice receives what a person should know. The model does not see it.
	Notice(text string)
}

// ModeSetup is what the user set up for a mode.
type ModeSetup interface {
	// Rules loads the user's rules. The agent asks when a run begins and when the mode changes. Rules that
	// change during a run count from the next run on: a system prompt that moves costs every cached request.
	Rules(slug string) mode.Rules
	// Skills lists the skills, and notes which of them cannot be used. The agent asks when it asks for Rules.
	Skills(slug string) (list []skill.Skill, notes []string)
	// ModelFor names the model for the mode in the settings, where that differs from the settings' own model.
	ModelFor(s task.Settings) (served ModeModel, other bool, err error)
}

// Delta is streamed text before it is durable.
type Delta struct {
	// Type is "message.delta", "reasoning.delta" or "tool.delta"; "wait.delta" counts down to the next try, at the time TS.
	Type    string
	Message uint64
	Call    string
	TS      int64
	Offset  int // bytes of text before this piece
	Text    string
}

// The time that a wait lasts before the person is notified of files that change during it.
const (
	attendQuestion = 300 * time.Millisecond
	attendCommand  = 5 * time.Second
)

// surface is what the packages below use of the agent, each through a small interface of its own.
type surface struct{ agent *Agent }

// State returns the state of the task.
func (h surface) State() *task.State { return h.agent.state() }

// Now returns the time in Unix milliseconds.
func (h surface) Now() int64 { return h.agent.Host.Now() }

// Mask hides the secrets in a text for the model.
func (h surface) Mask(text string) string { return h.agent.mask(text) }

// Notice shows the person a text.
func (h surface) Notice(text string) { h.agent.notice(text) }

// mask hides the secrets in tool output.
func (a *Agent) mask(text string) string {
	if a.Host.Masks == nil {
		return text
	}
	masked, _ := a.Host.Masks.String(text)
	return masked
}

// maskAsk hides the secrets that a row and a question would show of files. A command stays as the model wrote it: the
// person judges it, and it runs, in exactly these words.
func (a *Agent) maskAsk(ask tool.Ask) tool.Ask {
	if ask.Kind == "tool" || ask.Kind == "use_mcp_server" {
		ask.Text, ask.Diff, ask.Title = a.mask(ask.Text), a.mask(ask.Diff), a.mask(ask.Title)
	}
	return ask
}

// maskFile copies a command's whole output with its secrets hidden, next to the original: the model can read the copy,
// and it is projected into Roo's files.
func (a *Agent) maskFile(path string) (copied string, err error) {
	if a.Host.Masks == nil {
		return path, nil
	}
	from, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hide secrets in the output %s: %w", path, err)
	}
	defer from.Close()
	copied = path + ".masked"
	to, err := os.OpenFile(copied, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("hide secrets in the output %s: %w", path, err)
	}
	w := a.Host.Masks.Writer(to)
	_, err = io.Copy(w, from)
	if err = errors.Join(err, w.Close(), to.Close()); err != nil {
		return "", fmt.Errorf("hide secrets in the output %s: %w", path, err)
	}
	return copied, nil
}
