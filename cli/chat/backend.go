package chat

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// Backend is what a chat needs of the world; a client of a server has most of it. A method that takes a context
// returns soon after the context ends.
type Backend interface {
	// Start makes a task that runs at once.
	Start(ctx context.Context, t api.NewTask) (api.Run, error)
	Resume(ctx context.Context, id string, n api.NewRun) (api.Run, error)
	Send(ctx context.Context, id string, m api.Message) (api.Sent, error)
	Cancel(ctx context.Context, id string) (api.Run, error)
	Questions(ctx context.Context, task string) ([]api.Question, error)
	Answer(ctx context.Context, question string, a api.Answer) (api.Answered, error)
	// EditQueued gives a waiting input other words; nil takes it out of the queue.
	EditQueued(ctx context.Context, id, input string, text *string) error
	// Events follows a task over any cut; see client.Client.Events.
	Events(ctx context.Context, task, after string) iter.Seq2[client.Event, error]
	Task(ctx context.Context, ref string) (api.Summary, error)

	// Deed runs a command of roost, without asking anything.
	Command(ctx context.Context, args ...string) Said
	// Shell runs a command line of the user's own in a folder of this machine, without asking, and ends all processes
	// that it started.
	Shell(ctx context.Context, dir, line string, out io.Writer) (Ran, error)
	// Mask hides the secrets in a text that a model is to get.
	Mask(text string) string
	// Words are the completions of begun, of a kind.
	Words(ctx context.Context, kind Kind, workspace, begun string) []Word
	// Passes reports whether /name is for the engine: a prompt or a skill of that name.
	Passes(ctx context.Context, workspace, mode, name string) bool
}

// Said is what a command printed, and how it ended.
type Said struct {
	Out, Err string
	Whole    string // both, in their order; "" = the one behind the other
	Code     int
}

// Kind is a kind of words to complete.
type Kind string

// The kinds.
const (
	Files    Kind = "file" // of a workspace, a folder a time; folders end in "/"
	Tasks    Kind = "task"
	Modes    Kind = "mode"
	Models   Kind = "model"
	Prompts  Kind = "prompt" // that a person wrote down, and skills: /name
	Policies Kind = "policy"
)

// Word is one that may be meant.
type Word struct{ Text, About string }

// Ran is how a command line ended.
type Ran struct {
	Exit      int
	Cancelled bool
	Ended     int // processes it left behind, which were ended
	Took      time.Duration
}
