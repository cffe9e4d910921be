package chat

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/roost-dev/roost/api"

	display "github.com/roost-dev/roost/cli/term"
)

// Options are the task, the settings and the look of a chat.
type Options struct {
	Task string      // to continue; "" = a new one
	New  api.NewTask // how a new task is made; its message is what is typed
	// Again holds the changed settings of the task that the chat continues, from its next run on.
	Again api.NewRun

	Display display.Options // of what runs show; its width is that of the moment
	Width   func() int      // of the terminal, 0 = none
	Ask     bool            // a user is present who can be asked
	Result  io.Writer       // gets what runs and commands give; nil = they are shown like the rest
	History string          // the file of what was typed; "" = none is kept
	Editor  string          // the person's own, as $EDITOR has it; "" = none
	// Away is called when another program gets the terminal, and what it returns when
	// that has ended: between them Ctrl-C is not for the chat. May be nil.
	Away func() (back func())
}

// state is what fronts show and decide by.
type state struct {
	Task    string
	Working bool // a run works on the task, or is queued
	Asking  bool // lines answer a question
	Waiting bool // the last run waits for an answer
	Busy    bool // a line is being seen to
	Over    bool // the person wants to leave
	Command bool // a command line of the person's runs
	Queue   []api.Queued
	Back    []string // words that could not be sent, for the editor
	Retype  string   // the answer that was not taken, for the editor when the chat asks again
	Mode    string
	Policy  string // what the next run may do unasked; "" = as the task has it
	Loose   bool   // the user chose the policy "all" once
}

// keep keeps words that could not be sent for the editor: nothing that a person typed is
// lost.
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

	ctx    context.Context //nolint:containedctx // the chat's own life
	cancel context.CancelFunc
	busy   sync.WaitGroup
	answer chan string // lines for the question that is open

	mu         sync.Mutex
	st         state
	changed    chan struct{} // closed and replaced when the state changes
	todo       []string      // lines that were not carried out yet
	more       chan struct{} // holds one token when there are some
	cancelLine context.CancelFunc
	command    context.CancelFunc // of the person's own; nil = none runs
	talk       *talk              // about the present task
	ended      map[string]bool    // runs that are over
	shut       map[string]bool    // questions whose answer arrived
	dirs       map[string]string  // the workspaces of tasks
	run        string             // that works
	ends       int                // how many runs of tasks it was about have ended
	asks       string             // the open question, by the name that answers use; "" = none
	came       bool               // to a first task
	own        string             // the question that a command of this chat answers
	last       Ending
	wrong      *LineError        // why the line that was seen to last came to nothing
	echoes     bool              // the screen shows what was typed, once it is seen to
	said       []string          // words that were shown when they were sent, and are taken yet
	carried    []carriedOutput   // that go along with the next words
	brief      map[string]string // what was typed of words that were sent

	again api.NewRun // what the next run changes
	owed  *owed      // words whose answer was lost; nil = none. Of prompt alone
}

// Ending is how a run ended.
type Ending struct{ Outcome, Code, Reason string }

// Task is the task that the chat is about, "" before there is one.
func (s *Session) Task() string { return s.state().Task }

// Last is how the last run ended; zero before there was one.
func (s *Session) Last() Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Working reports whether a run works on the task.
func (s *Session) Working() bool { return s.state().Working }

func (s *Session) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.st
	st.Queue = append([]api.Queued(nil), st.Queue...)
	return st
}

// change changes the state, and wakes those that wait for that.
func (s *Session) change(f func(*state)) {
	s.mu.Lock()
	f(&s.st)
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	s.out.poke()
}

// until waits for a state, or for the end of ctx.
func (s *Session) until(ctx context.Context, ok func(state) bool) error {
	for {
		s.mu.Lock()
		st, changed := s.st, s.changed
		s.mu.Unlock()
		if ok(st) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// talk follows one task while the chat is about it: its events and those of its subtasks come in here, one after the
// other. All but its channels belongs to the goroutine of run.
type talk struct {
	s      *Session
	id     string
	ctx    context.Context //nolint:containedctx // ends when the chat turns to another task
	cancel context.CancelFunc
	busy   sync.WaitGroup // the streams
	done   chan struct{}
	in     chan incoming
	synced chan error // gets one value when the stream is open; nil = no goroutine waits for that

	screens map[string]*display.Display // of each task
	depth   map[string]int
	last    *display.Display // that showed something
	titles  map[string]string
	began   string // the run that the displays are of
	gone    bool   // the user knows that no process works on the run any more

	ask    *ask
	asked  chan *ask
	held   []incoming      // events that came while the chat asks a question
	closed map[string]bool // questions that are answered
}

// ask is an open question for the user. The chat shows it, and reads its answer, as roost run does.
type ask struct {
	id     string // as answers name it
	task   string
	q      api.QuestionOpened
	seen   string // the event that opened it, "" when it was open before the chat began
	cancel context.CancelFunc
	done   chan struct{}
	said   atomic.Bool // the person answered
	again  bool        // the answer was not taken, and the question is open; read behind done
}

// owed are words that may or may not have arrived: the response to them was lost. The user has them in the editor
// again, and most likely sends them once more. The chat then sends them in the same way, under the same key, so that
// they are taken once: a task that took them works by now, and words for a task that works go by another request.
type owed struct {
	task, words, key string
	send             func(context.Context) error
}

// carriedOutput is a command line, and what a message holds about it.
type carriedOutput struct{ line, text string }
