package cli

import (
	"bufio"
	"fmt"
	"iter"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// earlier prints how to see the messages before.
func (a *App) earlier(id string, from int, f showFlags) {
	again := fmt.Sprintf("roost show %s --before %d", id, from+1)
	if f.tail > 0 && (f.tail != page || !a.OutTTY) {
		again += fmt.Sprintf(" --tail %d", f.tail)
	}
	a.say("%d earlier: %s", from, again)
}

// printLines prints what messages are shown as.
func (a *App) printLines(out *bufio.Writer, messages iter.Seq2[int, []view.Line]) {
	style := a.outStyle()
	for _, lines := range messages {
		for _, l := range lines {
			for _, text := range wrap(display.Safe(l.Text), a.columns()) {
				fmt.Fprintln(out, style.Paint(l.Style, text))
			}
		}
	}
}

// columns is the width of lines; 0 = do not break lines.
func (a *App) columns() int {
	if !a.OutTTY {
		return 0
	}
	return a.Width
}

func flushed(w *bufio.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the task: %w", err)
	}
	return nil
}
