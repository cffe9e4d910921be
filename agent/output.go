package agent

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// outputRowLimit is how much of a command's output its row for the person keeps;
// all of it is kept as a blob.
const outputRowLimit = 100_000

// output shows what a running command prints and keeps it in its row.
type output struct {
	agent   *Agent
	ctx     context.Context //nolint:containedctx // lives as long as one call
	call    string
	command bool

	row     uint64
	rowTS   int64
	text    strings.Builder
	pending []byte // bytes of an unfinished character
	saved   int
	savedAt int64
	err     error
}

// Started records the process, so that a resume can find it if it outlives us.
func (o *output) Started(p tool.Process) {
	if o.err != nil {
		return
	}
	o.err = o.agent.commit(o.ctx, task.ToolProcess{Call: o.call, PGID: p.PGID, Started: p.Started, Boot: p.Boot, Mark: p.Mark})
	if o.err == nil {
		o.err = o.agent.Task.Barrier(context.WithoutCancel(o.ctx))
	}
	failpoint.Hit("tool.process")
}

// Write shows output as it comes.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil || !o.command {
		return len(p), o.err
	}
	a := o.agent
	text := o.whole(p)
	if text == "" {
		return len(p), nil
	}
	text = a.mask(text)
	if o.row == 0 {
		empty := ""
		o.savedAt = a.Now()
		asked := a.stamp()
		o.rowTS = a.stamp()
		o.row = a.state().NextMessage() + 1
		o.err = a.commit(o.ctx,
			a.add(task.UI, 0, plainAskRow(asked, "command_output", &empty)),
			a.add(task.UI, 1, streamRow(o.rowTS, "command_output", "", true)),
		)
	}
	if a.Live != nil {
		a.Live(Delta{Type: "message.delta", Message: o.row, Call: o.call, TS: o.rowTS, Offset: o.text.Len(), Text: text})
	}
	if room := outputRowLimit - o.text.Len(); room > 0 {
		if len(text) > room {
			text = strings.ToValidUTF8(text[:room], "") + "\n[... the rest is in the full output ...]"
		}
		o.text.WriteString(text)
	}
	if o.err == nil && o.text.Len() > o.saved && (o.text.Len()-o.saved >= checkpointEvery || a.Now()-o.savedAt >= checkpointAfter) {
		o.err = o.checkpoint()
	}
	failpoint.Hit("tool.output")
	return len(p), o.err
}

// whole keeps back the bytes of a character that has not come whole.
func (o *output) whole(p []byte) string {
	data := append(o.pending, p...)
	cut := len(data)
	for i := 1; i <= min(utf8.UTFMax, len(data)); i++ {
		if b := data[len(data)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(data[len(data)-i:]) {
				cut = len(data) - i
			}
			break
		}
	}
	o.pending = append([]byte(nil), data[cut:]...)
	return strings.ToValidUTF8(string(data[:cut]), "\uFFFD")
}

func (o *output) checkpoint() error {
	text := o.text.String()[o.saved:]
	o.saved, o.savedAt = o.text.Len(), o.agent.Now()
	return o.agent.commit(o.ctx, task.MessageTextSaved{Message: o.row, Text: text})
}

// finish gives the events that end the output's row.
func (o *output) finish() []task.Event {
	if o.row == 0 {
		return nil
	}
	var events []task.Event
	if rest := o.text.String()[o.saved:]; rest != "" {
		events = append(events, task.MessageTextSaved{Message: o.row, Text: rest})
	}
	return append(events, task.MessageChanged{Message: o.row, Body: streamRowOf(o.rowTS, "command_output", o.row)})
}
