package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// effective is what would be sent of the model's history: hidden messages left
// out and what no provider would take mended, by the code that builds requests.
// What was mended is told on stderr.
func (a *App) effective(v *store.View) ([]json.RawMessage, error) {
	stored, err := v.State.RawAPI()
	if err != nil {
		return nil, fmt.Errorf("read the history of task %s: %w", v.Ref.ID, err)
	}
	messages, notes, err := contextwindow.Build(stored, contextwindow.Options{
		DropThinking: v.State.Settings.Provider != "" && v.State.Settings.Provider != "anthropic",
	})
	if errors.Is(err, contextwindow.ErrEmpty) {
		a.say("nothing would be sent: the model's history holds no message")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("build the request of task %s: %w", v.Ref.ID, err)
	}
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		var o esjson.Object
		o.String("role", m.Role)
		o.Raw("content", m.Content)
		out[i] = o.Bytes()
	}
	for _, n := range notes {
		if n.Index < 0 {
			a.say("%s", n.Text)
			continue
		}
		a.say("stored message %d: %s", n.Index+1, n.Text)
	}
	return out, nil
}

// showHistory reads and prints a window of a history. Only what is shown is read.
func (a *App) showHistory(v *store.View, list []*task.Message, f showFlags, item func([]byte, int) view.Item) error {
	from, to := window(len(list), f)
	raws, err := v.State.Raws(list[from:to])
	if err != nil {
		return fmt.Errorf("read the history of task %s: %w", v.Ref.ID, err)
	}
	return a.printHistory(v, raws, list[from:to], from, f, item)
}

// printHistory prints messages: as JSON exactly the stored bytes, for people as
// lines. messages are those the bytes belong to, nil when they belong to none.
func (a *App) printHistory(v *store.View, raws []json.RawMessage, messages []*task.Message, from int, f showFlags, item func([]byte, int) view.Item) error {
	out := bufio.NewWriter(a.Out)
	if a.flags.json {
		writeArray(out, raws)
		return flushed(out)
	}
	style := a.outStyle()
	results := resultsByRow(v.State)
	for i, raw := range raws {
		it := item(raw, from+i+1)
		lines := view.Lines(it, a.lines(it.Class))
		if !f.api && messages != nil {
			if c := results[messages[i].ID]; c != nil {
				lines = append(lines, a.resultLines(c)...)
			}
		}
		for _, l := range lines {
			fmt.Fprintln(out, style.Paint(l.Style, display.Safe(l.Text)))
		}
	}
	if from > 0 {
		a.say("%d earlier: roost show %s --before %d", from, v.Ref.ID, from+1)
	}
	return flushed(out)
}

// lines is how many lines of a body are shown: words whole, output cut.
func (a *App) lines(c view.Class) int {
	if a.flags.verbose {
		return 0
	}
	switch c {
	case view.User, view.Model, view.Result, view.Question, view.Failure:
		return 0
	}
	return bodyLines
}

// resultsByRow finds the calls whose results belong below a row.
func resultsByRow(s *task.State) map[uint64]*task.Call {
	out := map[uint64]*task.Call{}
	for _, c := range s.Calls() {
		if c.UI != 0 && c.Finished != nil {
			out[c.UI] = c
		}
	}
	return out
}

func (a *App) resultLines(c *task.Call) []view.Line {
	result, err := c.Result()
	if err != nil {
		return []view.Line{{Style: view.Bad, Text: "  its result cannot be read: " + err.Error()}}
	}
	text, images := view.ResultText(result)
	it := view.Item{Class: view.Output, Title: c.Finished.Outcome, Body: text, Images: images}
	if c.Finished.Outcome != "ok" {
		it.Class = view.Failure
	}
	if c.Finished.Exit != nil {
		it.Title += fmt.Sprintf(", exit %d", *c.Finished.Exit)
	}
	lines := view.Lines(it, a.lines(view.Output))
	for i := range lines {
		lines[i].Text = "  " + lines[i].Text
	}
	return lines
}

// writeArray writes elements byte for byte, one a line. They were never decoded:
// decoding would lose their spelling.
func writeArray(w io.Writer, raws []json.RawMessage) {
	fmt.Fprint(w, "[")
	for i, raw := range raws {
		if i > 0 {
			fmt.Fprint(w, ",\n")
		}
		w.Write(raw) //nolint:errcheck // a bufio.Writer keeps the error for Flush
	}
	fmt.Fprintln(w, "]")
}

func flushed(w *bufio.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the task: %w", err)
	}
	return nil
}
