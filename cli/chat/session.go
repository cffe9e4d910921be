package chat

import (
	"cmp"
	"context"
	"errors"
	"strings"

	display "github.com/roost-dev/roost/cli/term"
)

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
