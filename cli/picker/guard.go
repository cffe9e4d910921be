package picker

import (
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/cli/term"
)

// guard keeps a panic of the model from bubbletea. After one, bubbletea gives the
// terminal back while its reader still waits at it, and that reader would swallow
// what is typed next; an end like any other waits for the reader.
type guard struct {
	*Model
	keys term.Keys
	quit func() // ends the program
	once sync.Once
	busy sync.WaitGroup
}

func (g *guard) Init() (cmd tea.Cmd) {
	defer g.catch(&cmd)
	return g.Model.Init()
}

// Update gives the model what was pressed: a slow line tears keys apart.
func (g *guard) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer g.catch(&cmd)
	msgs, cmd := g.keys.Take(msg)
	for _, msg := range msgs {
		_, next := g.Model.Update(msg)
		cmd = tea.Batch(cmd, next)
	}
	return g, cmd
}

// View cannot request the end, so the guard does.
func (g *guard) View() (v tea.View) {
	var cmd tea.Cmd
	defer func() {
		if cmd != nil {
			v = tea.NewView("")
			g.once.Do(func() { g.busy.Go(g.quit) })
		}
	}()
	defer g.catch(&cmd)
	return g.Model.View()
}

func (g *guard) catch(cmd *tea.Cmd) {
	if what := recover(); what != nil {
		g.failed, *cmd = what, tea.Quit
	}
}
