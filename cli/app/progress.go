package app

import (
	"context"
	"fmt"
	"io"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/progress"
)

// Watched lets work under the context show its progress on the terminal. done removes the
// progress again, before a result is printed. Logs and pipes get no progress.
func (a *App) Watched(ctx context.Context) (_ context.Context, done func()) {
	if a.Flags.Quiet || a.Muted || !a.ErrTTY || a.Env("TERM") == "dumb" {
		return ctx, func() {}
	}
	p := display.NewProgress(a.Err, a.Width, a.Now)
	return progress.With(ctx, func(at progress.State) { p.Show(at.What, at.Done, at.Of, counts(at)) }), p.Clear
}

// counts is the progress of work as text: tasks, files, bytes.
func counts(p progress.State) string {
	text := fmt.Sprintf("%d tasks", p.Done)
	if p.Of > 0 {
		text = fmt.Sprintf("%d of %d tasks", p.Done, p.Of)
	}
	if p.Files > 0 {
		text += fmt.Sprintf(", %d files", p.Files)
	}
	if p.Bytes > 0 {
		text += ", " + BytesText(p.Bytes)
	}
	return text
}

// Counting counts the bytes that go through it, for the progress.
type Counting struct {
	W    io.Writer
	n    int64
	Tell func(int64)
}

func (c *Counting) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	c.n += int64(n)
	c.Tell(c.n)
	return n, err
}
