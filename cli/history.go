package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// effective is what would be sent of the model's history. What was mended is told on
// stderr.
func (a *App) effective(v *store.View) ([]json.RawMessage, error) {
	messages, notes, err := report.Effective(v)
	for _, note := range notes {
		a.say("%s", note)
	}
	return messages, err
}

// element is one message of a history as it is printed. message is nil when the bytes
// belong to none: what would be sent is made anew.
type element struct {
	number  int // from 1
	raw     json.RawMessage
	message *task.Message
}

// showHistory prints a window of a history. Only what is shown is read, and some
// messages at a time: a history may be larger than memory.
func (a *App) showHistory(v *store.View, list []*task.Message, f showFlags, item func([]byte, int) view.Item) error {
	from, to := window(len(list), f)
	return a.printHistory(v, a.stored(v, list, from, to), from, f, item)
}

// stored reads messages. One that cannot be read is told of and left out: the rest
// of a damaged task is still to be seen.
func (a *App) stored(v *store.View, list []*task.Message, from, to int) iter.Seq[element] {
	const atOnce = 16 // each may hold megabytes
	return func(yield func(element) bool) {
		for ; from < to; from += atOnce {
			part := list[from:min(from+atOnce, to)]
			raws, err := v.State.Raws(part)
			for i, m := range part {
				one := element{from + i + 1, nil, m}
				if err == nil {
					one.raw = raws[i]
				} else if alone, err := v.State.Raws(part[i : i+1]); err == nil {
					one.raw = alone[0]
				} else {
					a.say("message %d cannot be read: %v", one.number, err)
					continue
				}
				if !yield(one) {
					return
				}
			}
		}
	}
}

// elements are messages that stand nowhere.
func elements(list []json.RawMessage, from int) iter.Seq[element] {
	return func(yield func(element) bool) {
		for i, raw := range list {
			if !yield(element{number: from + i + 1, raw: raw}) {
				return
			}
		}
	}
}

// printHistory prints messages: as JSON exactly the stored bytes, one a line, for
// people as lines.
func (a *App) printHistory(v *store.View, list iter.Seq[element], from int, f showFlags, item func([]byte, int) view.Item) error {
	out := bufio.NewWriter(a.Out)
	if a.flags.json {
		writeArray(out, list)
		return flushed(out)
	}
	p := historyPrinter{App: a, out: out, flags: f, item: item, state: v.State, results: resultsByRow(v.State), answers: export.Answers(v)}
	for one := range list {
		if p.batch = append(p.batch, one); len(p.batch) >= together {
			p.print()
		}
	}
	p.print()
	if err := flushed(out); err != nil || from == 0 {
		return err
	}
	again := fmt.Sprintf("roost show %s --before %d", v.Ref.ID, from+1)
	if f.tail > 0 && (f.tail != page || !a.OutTTY) {
		again += fmt.Sprintf(" --tail %d", f.tail)
	}
	a.say("%d earlier: %s", from, again)
	return nil
}

// together is how many messages are looked at for what answers them. Each may hold
// megabytes.
const together = 16

// historyPrinter prints a history for people, some messages at a time.
type historyPrinter struct {
	*App
	out     *bufio.Writer
	flags   showFlags
	item    func([]byte, int) view.Item
	state   *task.State
	results map[uint64]*task.Call
	answers func([][]byte) map[int]view.Item
	batch   []element
}

func (p *historyPrinter) print() {
	var answers map[int]view.Item
	if !p.flags.api && !p.flags.effective && slices.ContainsFunc(p.batch, func(e element) bool { return e.message != nil && e.message.Foreign }) {
		rows := make([][]byte, len(p.batch))
		for i, one := range p.batch {
			rows[i] = one.raw
		}
		answers = p.answers(rows)
	}
	style := p.outStyle()
	for i, one := range p.batch {
		it := p.item(one.raw, one.number)
		if p.flags.api {
			nameResults(it.Parts, p.state)
		}
		lines := view.Fold(it, p.lines)
		switch answer, ok := answers[i]; {
		case one.message != nil && !p.flags.api && p.results[one.message.ID] != nil:
			lines = append(lines, p.resultLines(p.results[one.message.ID])...)
		case ok:
			lines = append(lines, below(view.Fold(answer, p.lines))...)
		}
		for _, l := range lines {
			for _, text := range wrap(display.Safe(l.Text), p.columns()) {
				fmt.Fprintln(p.out, style.Paint(l.Style, text))
			}
		}
	}
	p.batch = p.batch[:0]
}

// columns is how wide lines may be; 0 = what reads it breaks none.
func (a *App) columns() int {
	if !a.OutTTY {
		return 0
	}
	return a.Width
}

// below are lines that stand below the row that they answer.
func below(lines []view.Line) []view.Line {
	for i := range lines {
		lines[i].Text = "  " + lines[i].Text
	}
	return lines
}

// lines is how many lines of a body are shown: words whole, output cut, thinking
// folded. -v shows all.
func (a *App) lines(c view.Class) int {
	if a.flags.verbose {
		return 0
	}
	switch c {
	case view.Reasoning, view.Aside:
		return -1
	case view.User, view.Model, view.Result, view.Question, view.Failure:
		return 0
	}
	return bodyLines
}

// nameResults says of each result which tool gave it.
func nameResults(parts []view.Item, s *task.State) {
	for i := range parts {
		p := &parts[i]
		if p.Kind != "tool_result" || strings.Contains(p.Title, " of ") {
			continue
		}
		if c := s.Call(p.Call); c != nil && c.Name != "" {
			p.Title = strings.Replace(p.Title, "result", "result of "+c.Name, 1)
		}
	}
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
	it := view.ToolResult(result)
	it.Title = c.Finished.Outcome
	if c.Finished.Outcome != "ok" {
		it.Class = view.Failure
	}
	if c.Finished.Exit != nil {
		it.Title += fmt.Sprintf(", exit %d", *c.Finished.Exit)
	}
	return below(view.Lines(it, a.lines(view.Output)))
}

// writeArray writes elements byte for byte, one a line. They were never decoded:
// decoding would lose their spelling.
func writeArray(w io.Writer, list iter.Seq[element]) {
	sep := "["
	for one := range list {
		fmt.Fprint(w, sep)
		w.Write(one.raw) //nolint:errcheck // a bufio.Writer keeps the error for Flush
		sep = ",\n"
	}
	if sep == "[" {
		fmt.Fprint(w, sep)
	}
	fmt.Fprintln(w, "]")
}

func flushed(w *bufio.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the task: %w", err)
	}
	return nil
}
