package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	display "github.com/roost-dev/roost/cli/term"
)

// ErrPanic: the screen failed by a mistake of ours. The terminal is as it was.
var ErrPanic = errors.New("the chat's screen failed")

// CanDraw reports whether a screen can be had here.
func CanDraw(termVariable string) bool {
	return runtime.GOOS != "windows" && termVariable != "" && termVariable != "dumb"
}

// Screen serves the user on a terminal until they leave, ctx ends, or it fails. It leaves the terminal as it found
// it; later output of the chat goes to out.
func (s *Session) Screen(ctx context.Context, in, out *os.File) error {
	history, err := OpenHistory(s.o.History)
	if err != nil {
		s.complain(err)
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	s.mu.Lock()
	s.echoes = true
	s.mu.Unlock()
	const pasteOn, pasteOff = "\x1b[?2004h", "\x1b[?2004l"
	m := &model{
		s: s, crew: display.NewCrew(s.ctx), ed: newEditor(history), paint: painter{w: out}, now: time.Now, in: in, tty: out,
		size: func() (int, int) { return sizeOf(out) },
	}
	m.cook = func() {
		_, _ = io.WriteString(out, pasteOff)
		_ = term.Restore(int(in.Fd()), before)
	}
	m.raw = func() error {
		if _, err := term.MakeRaw(int(in.Fd())); err != nil {
			return fmt.Errorf("take the terminal: %w", err)
		}
		_, _ = io.WriteString(out, pasteOn)
		m.paint.drawn = false
		return nil
	}
	_, _ = io.WriteString(out, pasteOn) // a lost terminal is noticed at the next read
	g := &display.Guard{Screen: m, Failed: m.fail}
	p := tea.NewProgram(g, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithoutRenderer(),
		tea.WithColorProfile(colorprofile.ANSI))
	// The context ends the screen as the user would: given the context, bubbletea would leave its reader of the
	// terminal behind.
	pumping, end := context.WithCancel(ctx)
	var pump sync.WaitGroup
	pump.Go(func() {
		for {
			select {
			case <-s.out.wake:
				p.Send(wakeMsg{})
			case <-pumping.Done():
				p.Quit() // it gives up when the program has ended
				return
			}
		}
	})
	_, err = p.Run()
	end()
	pump.Wait()
	m.crew.Close()
	for _, text := range m.unsent() {
		_ = history.Add(text) // for the next chat; the start of the chat warns when the history cannot be kept
	}
	width, _ := m.size()
	m.paint.leave(width)
	m.cook()
	s.out.through(out)
	switch {
	case m.failed != nil:
		return fmt.Errorf("%w: %v", ErrPanic, m.failed)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, tea.ErrProgramPanic):
		return ErrPanic
	case err != nil:
		return fmt.Errorf("show the chat: %w", err)
	}
	return nil
}

// sizeOf is a terminal's size; one that does not report its size counts as an old one.
func sizeOf(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
