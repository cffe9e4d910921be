package picker

import (
	"context"
	"sync"

	tea "charm.land/bubbletea/v2"
)

// crew runs what takes time. bubbletea starts commands and forgets them; the crew ends them and waits for them when
// the screen closes, so that no goroutine reads a task or writes a file while the next command runs.
type crew struct {
	ctx    context.Context //nolint:containedctx // ends when the screen closes
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	busy   sync.WaitGroup
}

func newCrew(ctx context.Context) *crew {
	ctx, cancel := context.WithCancel(ctx)
	return &crew{ctx: ctx, cancel: cancel}
}

// panicMsg: a command failed by a mistake of ours.
type panicMsg struct{ what any }

// do makes a command of f. One that is started after the end does nothing. A panic
// becomes a message: bubbletea would leave its reader of the terminal behind.
func (c *crew) do(f func() tea.Msg) tea.Cmd {
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

// close ends everything and waits for it.
func (c *crew) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.busy.Wait()
}
