package term

import (
	"context"
	"sync"

	tea "charm.land/bubbletea/v2"
)

// Crew runs what takes time behind a screen. bubbletea starts commands and forgets them; the crew ends them and waits
// for them when the screen closes, so that no goroutine reads a task or writes a file while the next command runs.
type Crew struct {
	Ctx    context.Context //nolint:containedctx // ends when the screen closes
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	busy   sync.WaitGroup
}

// NewCrew makes the crew of a screen.
func NewCrew(ctx context.Context) *Crew {
	ctx, cancel := context.WithCancel(ctx)
	return &Crew{Ctx: ctx, cancel: cancel}
}

// panicMsg carries what a command panicked with.
type panicMsg struct{ what any }

// Do makes a command of a function. Its panic ends the screen, as one of the model does (see Guard).
func (c *Crew) Do(f func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil
		}
		c.busy.Add(1)
		c.mu.Unlock()
		defer c.busy.Done()
		defer func() {
			if what := recover(); what != nil {
				msg = panicMsg{what}
			}
		}()
		return f()
	}
}

// Close begins nothing more, stops what goes on, and waits for it.
func (c *Crew) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.busy.Wait()
}

// Guard stands between the program and the model of a screen. It puts torn keys together (see Keys), and ends the
// program when the model panics. After a panic bubbletea gives the terminal back while its reader still waits at it,
// and that reader would swallow what is typed next; an end like any other waits for the reader.
type Guard struct {
	Screen tea.Model
	Failed func(what any) // notes what the screen panicked with
	Quit   func()         // ends the program when the screen cannot be drawn

	keys Keys
	once sync.Once
	busy sync.WaitGroup
}

// Init implements tea.Model.
func (g *Guard) Init() (cmd tea.Cmd) {
	defer g.catch(&cmd)
	return g.Screen.Init()
}

// Update implements tea.Model.
func (g *Guard) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer g.catch(&cmd)
	if p, is := msg.(panicMsg); is {
		panic(p.what)
	}
	msgs, cmd := g.keys.Take(msg)
	for _, msg := range msgs {
		_, next := g.Screen.Update(msg)
		cmd = tea.Batch(cmd, next)
	}
	return g, cmd
}

// View implements tea.Model. It cannot request the end, so Quit does.
func (g *Guard) View() (v tea.View) {
	var cmd tea.Cmd
	defer func() {
		if cmd != nil {
			v = tea.NewView("")
			g.once.Do(func() { g.busy.Go(g.Quit) })
		}
	}()
	defer g.catch(&cmd)
	return g.Screen.View()
}

// Wait waits until the program knows of its end.
func (g *Guard) Wait() { g.busy.Wait() }

func (g *Guard) catch(cmd *tea.Cmd) {
	if what := recover(); what != nil {
		g.Failed(what)
		*cmd = tea.Quit
	}
}
