package agent

import (
	"context"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/skill"
)

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

// Asker asks the person. Ask returns ErrUnattended, ErrStop, the context's error, or an answer.
type Asker interface {
	Ask(ctx context.Context, q api.QuestionOpened) (Answer, error)
}

// Observer shows a run to the people who follow it. Its methods must be quick.
type Observer interface {
	// Accepted is called once, when the input that the run was started with is durable.
	Accepted()
	// Expect receives the plan of the run's first request before it is sent. An error ends the run.
	Expect(p Plan) error
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

// Budget limits a run beyond its task's settings.
type Budget interface {
	// Reached names the limit that the run shares with other tasks (its tree of tasks, all tasks of a day)
	// and that is used up, "" for none. The agent asks before each request. An error stops the run: a sum
	// that cannot be computed may be too large.
	Reached(ctx context.Context) (code, reason string, err error)
	// WorkedMS is how long the run has worked, in milliseconds, where its time is limited; otherwise 0.
	WorkedMS() int64
}

// Delta is streamed text before it is durable.
type Delta struct {
	Type    string // "message.delta", "reasoning.delta", "tool.delta"; "wait.delta" counts down to the next try, whose time is TS
	Message uint64
	Call    string
	TS      int64
	Offset  int // bytes of text before this piece
	Text    string
}

// Plan is what the next request sends and what it is expected to cost.
type Plan struct {
	Messages  int
	Tokens    int64
	CostMicro int64 // uncached
	CostKnown bool
	Model     string
	Provider  string
}

// hooks is the agent as the packages below it see it, each through a small interface of its own.
type hooks struct{ agent *Agent }

// State is the state of the task.
func (h hooks) State() *task.State { return h.agent.state() }

// Now is the time in Unix milliseconds.
func (h hooks) Now() int64 { return h.agent.Host.Now() }

// Mask hides the secrets in a text for the model.
func (h hooks) Mask(text string) string { return h.agent.mask(text) }

// Notice shows the person a text.
func (h hooks) Notice(text string) { h.agent.notice(text) }
