package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
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

// New makes a chat. Close ends it.
func New(ctx context.Context, backend Backend, o Options) *Session {
	s := &Session{
		backend: backend, o: o, style: display.Style{On: o.Display.Colour}, out: newScroll(), answer: make(chan string, 16),
		changed: make(chan struct{}),
		more:    make(chan struct{}, 1), ended: map[string]bool{}, shut: map[string]bool{}, dirs: map[string]string{},
		again: o.Again, brief: map[string]string{},
	}
	s.st.Mode, s.st.Busy = o.New.Mode, o.Task != "" // nothing is for another task before it is known
	s.st.Policy = o.Again.Approve
	if o.Task == "" {
		s.st.Policy = cmp.Or(o.New.Approve, policies[0])
	}
	s.st.Loose = s.st.Policy == "all"
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.busy.Go(s.work)
	return s
}

// Close ends the chat and waits for all that it began. Runs of a server go on.
func (s *Session) Close() {
	s.cancel()
	s.busy.Wait()
	s.leave()
}

// Task is the task that the chat is about, "" before there is one.
func (s *Session) Task() string { return s.state().Task }

// Ending is how a run ended.
type Ending struct{ Outcome, Code, Reason string }

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

// Line takes a line of the person's: words or a command. They are seen to one after the
// other, and answer no question: who typed them may not have seen it.
func (s *Session) Line(text string) {
	s.mu.Lock()
	s.todo = append(s.todo, text)
	s.st.Busy = true
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// Reply takes a line for the question that is open; false when there is none any more.
func (s *Session) Reply(text string) bool {
	s.mu.Lock() // it is for the question that is open now, and never for the next one
	defer s.mu.Unlock()
	if !s.st.Asking {
		return false
	}
	select {
	case s.answer <- plainly(text):
	default: // the channel is full: one question never gets so many answers
	}
	return true
}

// work sees to lines.
func (s *Session) work() {
	if s.o.Task != "" {
		s.see("/resume " + s.o.Task)
	}
	for {
		s.mu.Lock()
		var line string
		some := len(s.todo) > 0
		if some {
			line, s.todo = s.todo[0], s.todo[1:]
		}
		s.mu.Unlock()
		if some {
			s.see(line)
			continue
		}
		s.change(func(st *state) { st.Busy = len(s.todo) > 0 })
		select {
		case <-s.more:
		case <-s.ctx.Done():
			return
		}
	}
}

// see sees to one line. Esc ends what it takes its time with.
func (s *Session) see(line string) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.mu.Lock()
	s.cancelLine, s.st.Busy = cancel, true
	s.mu.Unlock()
	text := whole(line)
	words, err := true, error(nil)
	switch {
	case strings.TrimSpace(text) == "":
	case isCommand(text):
		s.echo(text)
		words, err = s.do(ctx, text)
	case s.o.Ask && isShell(text):
		s.echo(text)
		words, err = false, s.shell(ctx, text)
	default:
		err = s.prompt(ctx, plainly(text))
	}
	s.mu.Lock()
	s.cancelLine, s.wrong = nil, nil
	if err != nil {
		s.wrong = &LineError{Line: text, Err: err}
		if words {
			s.st.keep(line)
		}
	}
	s.mu.Unlock()
	var printed *failed
	if err == nil || s.ctx.Err() != nil || errors.As(err, &printed) {
		return
	}
	if s.o.Ask { // otherwise it ends the chat, and the caller prints it
		s.complain(err)
	}
}

// Interrupt stops the present work: only a command line of the user's when one runs, otherwise the run and the line
// that is being carried out. It returns at once.
func (s *Session) Interrupt() {
	s.mu.Lock()
	id, working, cancelLine, command := s.st.Task, s.st.Working || s.st.Asking, s.cancelLine, s.command
	s.mu.Unlock()
	if command != nil {
		command()
		return
	}
	if cancelLine != nil {
		cancelLine()
	}
	if !working || id == "" {
		return
	}
	s.tell("· stopping and saving")
	s.busy.Go(func() { s.stop(s.ctx, id) })
}

func (s *Session) stop(ctx context.Context, id string) {
	if _, err := s.backend.Cancel(ctx, id); err != nil && ctx.Err() == nil {
		s.complain(fmt.Errorf("stop the run: %w", err))
	}
}

// tell prints a message of the chat's own, in a dim line.
func (s *Session) tell(format string, args ...any) {
	s.out.block(s.style.Paint(view.Dim, display.OneLineIndented(fmt.Sprintf(format, args...))))
}

// Note prints what is not of the chat: in dim lines above the editor.
func (s *Session) Note(text string) {
	text = strings.Trim(Safe(text), "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = s.style.Paint(view.Dim, line)
	}
	s.out.block(strings.Join(lines, "\n"))
}

// echo shows words of the person's that were typed here. A terminal that shows what is
// typed by itself needs none.
func (s *Session) echo(text string) {
	s.mu.Lock()
	echoes := s.echoes
	s.mu.Unlock()
	if echoes {
		s.quote(text)
	}
}

// quoted is how many lines of a person's words are shown again, quotedEnd how many of
// them are the last: who pastes a file wants to see that it was sent, not all of it.
const (
	quoted    = 30
	quotedEnd = 5
)

// quote shows words of a person's.
func (s *Session) quote(text string) {
	lines := strings.Split(Safe(text), "\n")
	if over := len(lines) - quoted; over > 0 {
		lines = append(append(lines[:quoted-quotedEnd:quoted-quotedEnd], fmt.Sprintf("… %d more lines …", over)),
			lines[len(lines)-quotedEnd:]...)
	}
	for i, line := range lines {
		lead := "  "
		if i == 0 {
			lead = "› "
		}
		lines[i] = s.style.Paint(view.Head, lead+line)
	}
	s.out.block(strings.Join(lines, "\n"))
}

// give prints a result: on a stream of its own where a program reads only that.
func (s *Session) give(text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	if s.o.Result == nil {
		s.out.block(text)
		return
	}
	_, _ = io.WriteString(s.o.Result, text+"\n") // a reader that has closed it wants no result
}
