// Package chat is `roost chat`: prompt after prompt in one task.
//
// A Session knows the task and talks to a Backend: it starts and continues runs, shows their events with cli/term,
// asks their questions and carries out the commands. It has no terminal of its own. Two fronts give it lines: Screen,
// an editor in the last rows of a terminal while output scrolls above it, and Plain, which reads lines and prints
// lines.
//
// A line is a command only with a leading "/"; "//" stands for a "/" without a command. An unknown command is never
// sent to a model. "!" in front of a line runs it as a command of the shell in the workspace, but only where a user
// types.
//
// The screen never changes what was printed: each line is written once, whole, so that the terminal wraps, keeps and
// copies it as any other. Only the rows below are drawn again: the unfinished line, the queued input, the editor, its
// pop-up, and the status line. cli/term makes the texts of models and tools harmless before the screen shows them.
//
// Limits: a screen needs a terminal that knows a few ANSI sequences; Windows and TERM=dumb get Plain. A row that is
// wrapped by a terminal which becomes narrower may be drawn twice.
package chat

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/workspace/shell"
)

// Backend is what a chat needs from the rest of the program; a client of a server has most of it. A method that takes
// a context returns soon after the context ends.
type Backend interface {
	// Start makes a task that runs at once.
	Start(ctx context.Context, t api.NewTask) (api.Run, error)
	Resume(ctx context.Context, id string, n api.NewRun) (api.Run, error)
	Send(ctx context.Context, id string, m api.Message) (api.Sent, error)
	Cancel(ctx context.Context, id string) (api.Run, error)
	Questions(ctx context.Context, task string) ([]api.Question, error)
	Answer(ctx context.Context, question string, a api.Answer) (api.Answered, error)
	// EditQueued changes the words of a waiting input; nil removes it from the queue.
	EditQueued(ctx context.Context, id, input string, text *string) error
	// Events follows a task, also after its connection was cut; see client.Client.Events.
	Events(ctx context.Context, task, after string) iter.Seq2[client.Event, error]
	Task(ctx context.Context, ref string) (api.Summary, error)

	// Command runs a command of roost. The command asks nothing.
	Command(ctx context.Context, args ...string) Said
	// Shell runs a command line of the user in a folder of this machine, without asking, and ends all processes that
	// the command line started.
	Shell(ctx context.Context, dir, line string, out io.Writer) (Ran, error)
	// Mask hides the secrets in a text for a model.
	Mask(text string) string
	// Words returns the completions of begun that are of a kind.
	Words(ctx context.Context, kind Kind, workspace, begun string) []Word
	// Image reads a picture as a data URL.
	Image(path string) (url string, err error)
	// Facts describes the next request: of a task with the changes in again, or, without a task, of the new task n.
	Facts(ctx context.Context, task string, n api.NewTask, again api.NewRun) Facts
	// Passes reports whether /name is for the engine: a prompt or a skill has that name.
	Passes(ctx context.Context, workspace, mode, name string) bool
}

// Said is the output of a command, and how it ended.
type Said struct {
	Out, Err string
	Whole    string // both in the order in which they were printed; "" = Out, then Err
	Code     int
}

// Kind is a kind of words to complete.
type Kind string

// The values of Kind.
const (
	Files    Kind = "file" // of a workspace; folders end in "/"
	Tasks    Kind = "task"
	Messages Kind = "message" // of a task, whose id is passed as the workspace
	Refs     Kind = "ref"     // what "#" can name: messages and tasks
	Efforts  Kind = "effort"
	Profiles Kind = "profile"
	Provided Kind = "provider"
	Modes    Kind = "mode"
	Models   Kind = "model"
	Prompts  Kind = "command" // prompts that the user wrote, and skills: /name
	Policies Kind = "policy"
)

// Word is one completion.
type Word = api.Completion

// Ran is how a command line ended.
type Ran = shell.Result

// Options are the task, the settings and the look of a chat.
type Options struct {
	Task string      // the task to continue; "" = a new one
	New  api.NewTask // how a new task is made; its message is what the user types
	// Again holds the changed settings of the task that the chat continues, from its next run on.
	Again api.NewRun

	Display display.Options // how runs are shown; without a Size the chat breaks no line of its own
	Ask     bool            // a user is present to answer questions
	Result  io.Writer       // gets the results of runs and commands; nil = the chat shows them like the rest
	History string          // the file of the history; "" = none is stored
	Editor  string          // the user's own editor, as $EDITOR names it; "" = none
	// Away is called when another program gets the terminal, and the function that it returns when that program has
	// ended: between the two calls Ctrl-C is not for the chat. Away may be nil.
	Away func() (back func())

	Images []Image // pictures for the first words
	Facts  Facts   // of the first request
	Now    func() time.Time
}

// ofTask is the state of the present task.
type ofTask struct {
	Task    string
	Working bool // a run works on the task, or is queued
	Asking  bool // lines answer a question
	Waiting bool // the last run waits for an answer
	Lost    bool // the events of the task have ended: it was deleted, or cannot be reached
	Queue   []api.Queued
	Retype  string // the rejected answer; the editor shows it when the chat asks again
	Letters string // keys that answer the open question; "" = a line answers it
	Live    live
	run     string // the working run
}

// state is what the fronts show and base decisions on.
type state struct {
	ofTask
	Busy    bool     // a line is being carried out
	Over    bool     // the user wants to leave
	Command bool     // a command line of the user runs
	Back    []string // lines that failed, for the history: Up brings them back
	Policy  string   // what the next run may do unasked; "" = as the task has it
	Facts   Facts
	Loose   bool       // the user has chosen the policy "all" before
	again   api.NewRun // the changed settings of the next run
	ends    int        // how many runs have ended while the chat followed their tasks
	last    Ending
	wrong   error    // why the last line failed, a *LineError; nil = it succeeded
	asks    string   // the open question, by the id that answers use; "" = none
	broken  string   // the run that /now interrupted
	byKey   bool     // single keys answer questions
	echoes  bool     // the screen shows what was typed, once it is carried out
	todo    []string // lines that were not carried out yet
}

// keep keeps a line that failed, so that nothing that the user typed is lost.
func (st *state) keep(text string) {
	if strings.TrimSpace(text) != "" {
		st.Back = append(st.Back[:len(st.Back):len(st.Back)], text)
	}
}

// Session is one chat.
type Session struct {
	backend Backend
	o       Options
	style   display.Style
	out     *scroll

	ctx     context.Context //nolint:containedctx // the chat's own life
	cancel  context.CancelFunc
	busy    sync.WaitGroup
	looking sync.Mutex  // held while the facts are looked up
	answer  chan string // lines for the open question

	mu         sync.Mutex
	st         state
	changed    chan struct{} // closed and replaced when the state changes
	cancelLine context.CancelFunc
	command    context.CancelFunc // ends the user's command line; nil = none runs
	talk       *talk              // with the present task
	ended      map[string]bool    // ended runs
	shut       map[string]bool    // questions that were answered
	dirs       map[string]string  // the workspaces of tasks
	came       bool               // the chat has switched to a task before
	own        string             // the question that a command of the chat answers
	sent       string             // words that the screen showed when they were sent: as queued input they are not shown; "" = none
	carried    []carriedOutput    // outputs of command lines that are sent with the next words
	images     []Image            // pictures that are sent with the next words
	brief      map[string]string  // by sent text: the part that the user typed

	owed *owed // words whose response was lost; nil = none. Only once uses it
}

// Ending is how a run ended.
type Ending struct{ Outcome, Code, Reason string }

// Task returns the task that the chat is about, "" before there is one.
func (s *Session) Task() string { return s.state().Task }

// Last returns how the last run ended; zero before there was one.
func (s *Session) Last() Ending { return s.state().last }

// Working reports whether a run works on the task.
func (s *Session) Working() bool { return s.state().Working }

// state returns a copy of the state. It may share slices with s: a change replaces slices, and never writes into
// them.
func (s *Session) state() (st state) {
	s.locked(func() { st = s.st })
	return st
}

// change changes the state, and wakes the goroutines that wait for a change.
func (s *Session) change(f func(*state)) {
	s.mu.Lock()
	f(&s.st)
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	s.out.poke()
}

// owed are words that may or may not have arrived: the response to them was lost. The editor shows them again, and
// the user most likely sends them once more. The chat then repeats the same request under the same key, so that the
// task takes the words once: a task that already took them is working now, and words for a working task would go out
// in a different request.
type owed struct {
	task, words, key string
	send             func(context.Context) error
}

// carriedOutput is a command line, and the text about it that a message gets.
type carriedOutput struct{ line, text string }

// refresh starts another look-up of the facts of the next request. Its caller is a goroutine of busy, so that Close
// waits for the look-up, too.
func (s *Session) refresh() {
	if s.o.Ask {
		s.busy.Go(s.lookAgain)
	}
}

// lookAgain looks up the facts of the next request.
func (s *Session) lookAgain() {
	s.looking.Lock() // one after the other: the newest facts count
	defer s.looking.Unlock()
	id, f := s.facts(s.ctx)
	s.change(func(st *state) {
		if st.Task == id && s.ctx.Err() == nil {
			st.Facts = f
		}
	})
}

// facts returns the facts of the next request, and its task.
func (s *Session) facts(ctx context.Context) (id string, f Facts) {
	var n api.NewTask
	var st state
	s.locked(func() { n, st = s.o.New, s.st })
	return st.Task, s.backend.Facts(ctx, st.Task, n, st.again)
}

// started records that a run works on the task, unless events have already reported the run's state: it may have
// ended, or ask.
func (s *Session) started(run string) {
	s.change(func(st *state) {
		if !s.ended[run] && (st.run != run || run == "") {
			st.Working, st.Waiting = true, false
			st.run = run
		}
	})
}

// resumed records that a question was answered and that a run continues, unless later events, perhaps of another
// question, have reported the state. before is the number of ended runs when the answer was given.
func (s *Session) resumed(question, run string, before int) {
	s.change(func(st *state) {
		if s.shut[question] {
			return
		}
		st.Waiting = false
		if s.ended[run] || st.ends != before {
			return
		}
		if st.Working = true; strings.HasPrefix(question, st.Task+".") { // a question of a subtask belongs to another run
			st.run = run
		}
	})
}

// workspace returns the folder of the present files, modes and prompts.
func (s *Session) workspace(ctx context.Context) string {
	id := s.Task()
	if id == "" {
		return s.o.New.Workspace
	}
	dir, known := "", false
	s.locked(func() { dir, known = s.dirs[id] })
	if known {
		return dir
	}
	t, err := s.backend.Task(ctx, id)
	if err != nil {
		return s.o.New.Workspace
	}
	s.locked(func() { s.dirs[id] = t.Workspace })
	return t.Workspace
}

// locked runs f with the state.
func (s *Session) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// shown records words that are on the screen already, so that the chat does not show them again when the run takes
// them; "" when there are none.
func (s *Session) shown(text string) { s.locked(func() { s.sent = text }) }

// LineError: a line failed. The lines after it assume that it succeeded.
type LineError struct {
	Line string
	Err  error
}

func (e *LineError) Error() string { return e.Line + ": " + e.Err.Error() }

func (e *LineError) Unwrap() error { return e.Err }

// Exit returns the exit code of the command of roost that the line ran; 0 when the line ran no such command.
func (e *LineError) Exit() int {
	if f, is := errors.AsType[*failed](e.Err); is {
		return f.said.Code
	}
	return 0
}

// WaitingError: the task waits for an answer, and no user is present who could be asked.
type WaitingError struct{ Task string }

func (e *WaitingError) Error() string { return "task " + e.Task + " waits for an answer" }

// failed is a command of roost that did not succeed and has printed its reason.
type failed struct{ said Said }

func (e *failed) Error() string {
	why, _, _ := strings.Cut(strings.TrimSpace(e.said.Err), "\n")
	return strings.TrimPrefix(why, "roost: ")
}

// UnknownError is a command that does not exist. The chat did not send it to a model.
type UnknownError struct{ Name, Nearest string }

func (e *UnknownError) Error() string {
	text := "there is no command /" + e.Name
	if e.Nearest != "" {
		text += "; /" + e.Nearest + " is one"
	}
	return text + " (/help lists them; a line for the model that begins with / begins with //)"
}
