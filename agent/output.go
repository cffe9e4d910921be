package agent

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// outputRowLimit is how many bytes of a command's output its row for the person keeps. A blob keeps all of it.
const outputRowLimit = 100_000

// output shows what a running command prints and keeps it in its row.
type output struct {
	agent   *Agent
	ctx     context.Context //nolint:containedctx // lives as long as one call
	call    string
	command bool
	server  bool // of an MCP server

	row     uint64
	rowTS   int64
	text    strings.Builder
	pending []byte // bytes of an unfinished character
	saved   int
	savedAt int64
	held    []byte // an unfinished word
	err     error
}

// Started records the process, so that a resume can find it if it outlives us.
func (o *output) Started(p tool.Process) {
	if o.err != nil {
		return
	}
	failpoint.Hit("tool.spawned")
	o.err = o.agent.commit(o.ctx, task.ToolProcess{
		Call:    o.call,
		PGID:    p.PGID,
		Started: p.Started,
		Boot:    p.Boot,
		Mark:    p.Mark,
	})
	if o.err == nil {
		o.err = o.agent.Task.Journal.Barrier(context.WithoutCancel(o.ctx))
		if errors.Is(o.err, journal.ErrNotSaved) {
			// The process runs already: killing it for a full disk would lose more than the record, which is kept and
			// saved as soon as that is possible.
			o.err = nil
		}
	}
	failpoint.Hit("tool.process")
}

// Write shows output as it comes. The last word waits until it is whole: a secret may span two pieces, and half of one
// cannot be masked.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil || !o.command {
		return len(p), o.err
	}
	o.held = append(o.held, p...)
	cut := bytes.LastIndexAny(o.held, " \t\r\n") + 1
	if len(o.held)-cut > heldLimit {
		cut = len(o.held)
	}
	ready := append([]byte(nil), o.held[:cut]...)
	o.held = append(o.held[:0], o.held[cut:]...)
	o.show(ready, false)
	return len(p), o.err
}

// heldLimit is the longest word that waits, in bytes; no secret is longer.
const heldLimit = 4 << 10

// show shows whole characters. At the end, the rest of a split character is replaced.
func (o *output) show(p []byte, end bool) {
	a := o.agent
	text := o.wholeCharacters(p)
	if end && len(o.pending) > 0 {
		text, o.pending = text+"\uFFFD", nil
	}
	text = a.mask(text)
	if text == "" {
		return
	}
	if o.row == 0 {
		empty := ""
		o.savedAt = a.Host.Now()
		asked := a.stamp()
		o.rowTS = a.stamp()
		d := a.draft()
		d.addRow(rows.PlainAsk(asked, "command_output", &empty))
		o.row = d.addRow(rows.Stream(o.rowTS, "command_output", "", true))
		o.err = d.commit(o.ctx)
	}
	a.live(Delta{
		Type:    "message.delta",
		Message: o.row,
		Call:    o.call,
		TS:      o.rowTS,
		Offset:  o.text.Len(),
		Text:    text,
	})
	if room := outputRowLimit - o.text.Len(); room > 0 {
		if len(text) > room {
			text = strings.ToValidUTF8(text[:room], "") + "\n[... the rest is in the full output ...]"
		}
		o.text.WriteString(text)
	}
	if o.err == nil && o.text.Len() > o.saved && (o.text.Len()-o.saved >= saveBytes || a.Host.Now()-o.savedAt >= saveMS) {
		o.err = o.saveText()
	}
	failpoint.Hit("tool.output")
}

// wholeCharacters keeps back the bytes of an incomplete character.
func (o *output) wholeCharacters(p []byte) string {
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

func (o *output) saveText() error {
	text := o.text.String()[o.saved:]
	o.saved, o.savedAt = o.text.Len(), o.agent.Host.Now()
	return o.agent.commit(o.ctx, task.MessageTextSaved{Message: o.row, Text: text})
}

// finish returns the events that end the output's row.
func (o *output) finish() []task.Event {
	if len(o.held)+len(o.pending) > 0 && o.err == nil {
		o.show(o.held, true)
		o.held = nil
	}
	if o.row == 0 {
		return nil
	}
	var events []task.Event
	if rest := o.text.String()[o.saved:]; rest != "" {
		events = append(events, task.MessageTextSaved{Message: o.row, Text: rest})
	}
	return append(events, task.MessageChanged{Message: o.row, Body: rows.StreamOf(o.rowTS, "command_output", o.row)})
}
