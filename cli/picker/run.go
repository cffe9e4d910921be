package picker

import (
	"context"
	"errors"
	"fmt"
	"os"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/roost-dev/roost/cli/term"
)

// ErrPanic: the screen failed by a mistake of ours. The terminal is as it was.
var ErrPanic = errors.New("the picker failed")

// Run shows the screen until the person leaves it, ctx ends, or it fails. The
// terminal is as it was, and everything that was begun has ended, when it returns.
func Run(ctx context.Context, backend Backend, in, out *os.File, o Options) (Choice, error) {
	m := New(ctx, backend, o)
	defer m.Close()
	profile := colorprofile.ANSI // our colours are the terminal's own sixteen
	if !o.Colour {
		profile = colorprofile.Ascii
	}
	// Signals are the caller's: it knows which exit code belongs to which. The context ends the screen as the user
	// would: given the context, bubbletea would leave its reader of the terminal behind.
	var p *tea.Program
	g := &term.Guard{Screen: m, Failed: func(what any) { m.failed = what }, Quit: func() { p.Quit() }}
	defer g.Wait()
	p = tea.NewProgram(g, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithColorProfile(profile))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		p.Quit()
	})
	_, err := p.Run()
	if !stop() {
		<-ended // it gives up when the program has ended
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
