package picker

import (
	"context"
	"errors"
	"fmt"
	"os"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// ErrPanic: the screen failed by a mistake of ours. The terminal is as it was.
var ErrPanic = errors.New("the picker failed")

// Run shows the screen until the person leaves it, ctx ends, or it fails. The
// terminal is as it was, and everything that was begun has ended, when it returns.
func Run(ctx context.Context, desk Desk, in, out *os.File, o Options) (Choice, error) {
	m := New(ctx, desk, o)
	defer m.Close()
	profile := colorprofile.ANSI // our colours are the terminal's own sixteen
	if !o.Colour {
		profile = colorprofile.Ascii
	}
	// Signals are the caller's: it knows which exit code belongs to which. The context
	// ends the screen as the person would: told of it, bubbletea would leave its reader
	// of the terminal behind.
	var p *tea.Program
	g := &guard{Model: m, quit: func() { p.Quit() }}
	defer g.busy.Wait()
	p = tea.NewProgram(g, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithColorProfile(profile))
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		p.Quit()
	})
	_, err := p.Run()
	if !stop() {
		<-told // it gives up when the program has ended
	}
	switch {
	case ctx.Err() != nil:
		return Choice{}, ctx.Err()
	case m.failed != nil:
		return Choice{}, fmt.Errorf("%w: %v", ErrPanic, m.failed)
	case errors.Is(err, tea.ErrProgramPanic):
		return Choice{}, ErrPanic
	case err != nil:
		return Choice{}, fmt.Errorf("show the picker: %w", err)
	}
	m.choice.Found = m.Sentence()
	return m.choice, nil
}
