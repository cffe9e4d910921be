package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"

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

// showHistory prints a window of a history. Only what is shown is read, and some
// messages at a time: a history may be larger than memory.
func (a *App) showHistory(v *store.View, list []*task.Message, f showFlags) error {
	from, to := window(len(list), f)
	a.sayNone(from, to)
	return a.printHistory(v, a.stored(v, list, from, to), from, f)
}

// sayNone says that there is nothing to show.
func (a *App) sayNone(from, to int) {
	if from == to && !a.flags.json {
		a.say("no messages")
	}
}

// stored reads messages. One that cannot be read is told of and left out: the rest
// of a damaged task is still to be seen.
func (a *App) stored(v *store.View, list []*task.Message, from, to int) iter.Seq[export.Element] {
	const atOnce = 16 // each may hold megabytes
	return func(yield func(export.Element) bool) {
		for ; from < to; from += atOnce {
			part := list[from:min(from+atOnce, to)]
			raws, err := v.State.Raws(part)
			for i, m := range part {
				one := export.Element{Number: from + i + 1, Message: m}
				if err == nil {
					one.Raw = raws[i]
				} else if alone, err := v.State.Raws(part[i : i+1]); err == nil {
					one.Raw = alone[0]
				} else {
					a.say("message %d cannot be read: %v", one.Number, err)
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
func elements(list []json.RawMessage, from int) iter.Seq[export.Element] {
	return func(yield func(export.Element) bool) {
		for i, raw := range list {
			if !yield(export.Element{Number: from + i + 1, Raw: raw}) {
				return
			}
		}
	}
}

// printHistory prints messages: as JSON exactly the stored bytes, one a line, for
// people as lines.
func (a *App) printHistory(v *store.View, list iter.Seq[export.Element], from int, f showFlags) error {
	out := bufio.NewWriter(a.Out)
	if a.flags.json {
		writeArray(out, list)
		return flushed(out)
	}
	lines := export.NewLines(v, export.LinesOptions{API: f.api, Effective: f.effective, Whole: a.flags.verbose})
	var batch []export.Element
	for one := range list {
		if batch = append(batch, one); len(batch) >= export.Together {
			a.printLines(out, lines.Of(batch))
			batch = batch[:0]
		}
	}
	a.printLines(out, lines.Of(batch))
	if err := flushed(out); err != nil || from == 0 {
		return err
	}
	a.earlier(v.Ref.ID, from, f)
	return nil
}

// earlier says how to see what stands before.
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

// columns is how wide lines may be; 0 = what reads it breaks none.
func (a *App) columns() int {
	if !a.OutTTY {
		return 0
	}
	return a.Width
}

// writeArray writes elements byte for byte, one a line. They were never decoded:
// decoding would lose their spelling.
func writeArray(w io.Writer, list iter.Seq[export.Element]) {
	sep := "["
	for one := range list {
		fmt.Fprint(w, sep)
		w.Write(one.Raw) //nolint:errcheck // a bufio.Writer keeps the error for Flush
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
