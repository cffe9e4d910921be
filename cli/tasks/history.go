package tasks

import (
	"bufio"
	"fmt"
	"iter"

	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// earlier prints how to see the messages before.
func (a *commands) earlier(id string, from int, f showFlags) {
	again := fmt.Sprintf("roost show %s --before %d", id, from+1)
	if f.tail > 0 && (f.tail != page || !a.OutTTY) {
		again += fmt.Sprintf(" --tail %d", f.tail)
	}
	a.Say("%d earlier: %s", from, again)
}

// printLines prints what messages are shown as.
func (a *commands) printLines(out *bufio.Writer, messages iter.Seq2[int, []view.Line]) {
	style := a.OutStyle()
	for _, lines := range messages {
		for _, l := range lines {
			for _, text := range app.Wrap(display.Safe(l.Text), a.Columns()) {
				fmt.Fprintln(out, style.Paint(l.Style, text))
			}
		}
	}
}
