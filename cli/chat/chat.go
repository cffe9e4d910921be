package chat

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	display "github.com/roost-dev/roost/cli/term"
)

// New makes a chat. Close ends it.
func New(ctx context.Context, backend Backend, o Options) *Session {
	s := &Session{
		backend: backend, o: o, style: o.Display.Style(), out: newScroll(), answer: make(chan string, 16),
		changed: make(chan struct{}), ended: map[string]bool{}, shut: map[string]bool{}, dirs: map[string]string{},
		brief: map[string]string{},
	}
	s.images, s.st.Facts, s.st.again = o.Images, o.Facts, o.Again
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	s.st.Facts.Mode, s.st.Busy = cmp.Or(o.New.Mode, o.Facts.Mode), o.Task != "" // no line is for a new task while a task is opened
	s.st.Policy = o.Again.Approve
	if o.Task == "" {
		s.st.Policy = cmp.Or(o.New.Approve, policies[0])
	}
	s.st.Loose = s.st.Policy == "all"
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.busy.Go(s.work)
	return s
}

// Close ends the chat and waits for its goroutines. Runs of a server continue.
func (s *Session) Close() {
	s.cancel()
	s.busy.Wait()
	s.leave()
}

// Line queues a line that the user typed: words or a command. The chat carries out one line after the other. A line
// answers no question: the user may not have seen the question when typing.
func (s *Session) Line(text string) {
	s.change(func(st *state) { st.todo, st.Busy = append(st.todo, text), true })
}

// Reply passes a line to the open question. It returns false when no question is open.
func (s *Session) Reply(text string) bool {
	s.mu.Lock() // until the line is passed on: it answers the question that is open now, and never the next one
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

// work carries out the queued lines, one after the other, until the chat ends.
func (s *Session) work() {
	if s.o.Task != "" {
		s.carryOut("/resume " + s.o.Task)
	}
	s.change(func(st *state) { st.Busy = len(st.todo) > 0 })
	for s.until(s.ctx, func(st state) bool { return len(st.todo) > 0 }) == nil {
		line := ""
		s.locked(func() { line, s.st.todo = s.st.todo[0], s.st.todo[1:] })
		s.carryOut(line)
		s.change(func(st *state) { st.Busy = len(st.todo) > 0 })
	}
}

// carryOut carries out one line, until its end or an interrupt.
func (s *Session) carryOut(line string) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.locked(func() { s.cancelLine, s.st.Busy = cancel, true })
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
	s.locked(func() {
		if s.cancelLine, s.st.wrong = nil, nil; err != nil {
			s.st.wrong = &LineError{Line: text, Err: err}
		}
		if err != nil && words {
			s.st.keep(line)
		}
	})
	var printed *failed
	if err != nil && s.ctx.Err() == nil && !errors.As(err, &printed) && s.o.Ask { // else the caller prints it
		s.complain(err)
	}
}

// Interrupt stops the present work and returns at once. While a command line of the user runs, Interrupt stops only
// that command line; otherwise it stops the run and the line that is being carried out.
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

// lineBytes bounds a line that is read.
const lineBytes = 16 << 20

// Plain reads lines and carries them out one after the other: it reads the next one when the run has ended. Without a
// terminal the writer of the lines did not see the questions, so only /answer answers one; any other line ends the
// chat with a *WaitingError while a question is open. A line that fails ends it with a *LineError.
//
// A read cannot be cancelled: the goroutine that reads lives until its next line, or the input's end.
func (s *Session) Plain(ctx context.Context, in io.Reader, out io.Writer, terminal bool) error {
	s.out.through(out)
	lines, over := make(chan string), make(chan struct{})
	defer close(over)
	go read(in, lines, over)
	text, begun := "", false
	for {
		if err := s.until(ctx, still); err != nil {
			return err
		}
		st := s.state()
		switch {
		case st.Over:
			return nil
		case !terminal && st.wrong != nil:
			return st.wrong
		case terminal && begun:
			_, _ = io.WriteString(s.out, "… ") // a lost terminal is noticed at the next read
		case terminal && !st.Asking:
			_, _ = io.WriteString(s.out, "› ")
		}
		var line string
		var more bool
		select {
		case line, more = <-lines:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if terminal {
			s.out.fresh()
		}
		if !more && !begun {
			if st.Waiting && !terminal {
				return &WaitingError{st.Task}
			}
			return nil
		}
		if begun {
			line = text + "\n" + line
		}
		text = line
		ours := isCommand(text) || s.o.Ask && isShell(text)
		begun = more && !s.state().Asking && !ours && unfinished(text)
		if begun {
			continue
		}
		if st.Waiting && !terminal && strings.TrimSpace(text) != "" && !isCommand(text) {
			return &WaitingError{st.Task}
		}
		if !st.Asking || ours || !s.Reply(text) {
			s.Line(text)
		}
	}
}

// still reports whether nothing is at work that the user waits for: no line and no run.
func still(st state) bool {
	return st.Over || st.Asking || !st.Busy && (!st.Working || st.Waiting)
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

func read(in io.Reader, lines chan<- string, over <-chan struct{}) {
	defer close(lines)
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" && len(line) <= lineBytes {
			select {
			case lines <- display.Safe(strings.TrimRight(line, "\r\n")):
			case <-over:
				return
			}
		}
		if err != nil {
			return
		}
	}
}
