package app

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/money"
)

// Println prints a line of the result to stdout.
func (a *App) Println(text string) error {
	if _, err := fmt.Fprintln(a.Out, a.Result(text)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// Result is the final text as stdout gets it: made harmless on a terminal, as it
// is for programs.
func (a *App) Result(text string) string {
	if a.OutTTY {
		return display.Safe(text)
	}
	return text
}

// Columns is the width of lines; 0 = do not break lines.
func (a *App) Columns() int {
	if !a.OutTTY {
		return 0
	}
	return a.Width
}

// Flushed writes what is buffered of the result.
func Flushed(w *bufio.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the task: %w", err)
	}
	return nil
}

// BytesText is a size for people.
func BytesText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// MessagesText is the number of messages of both histories, in words.
func MessagesText(n api.MessageCounts, turns int) string {
	text := fmt.Sprintf("%d message%s, %d for the model", n.UI, Plural(n.UI), n.API)
	if turns > 0 {
		text += fmt.Sprintf(" (%d turn%s)", turns, Plural(turns))
	}
	return text
}

// RowText names a message.
func RowText(r api.Row) string {
	text := fmt.Sprintf("#%d %s", r.Number, display.OneLine(strings.TrimPrefix(strings.TrimPrefix(r.Kind, "say:"), "ask:")))
	if r.Text != "" {
		text += ` "` + display.Cut(display.OneLine(r.Text), 60) + `"`
	}
	return text
}

// MomentOf is the first time of some that is known, in Unix milliseconds; 0 = none is.
func MomentOf(stamps ...*string) int64 {
	for _, s := range stamps {
		if s == nil {
			continue
		}
		if at, err := time.Parse(time.RFC3339, *s); err == nil {
			return at.UnixMilli()
		}
	}
	return 0
}

// Unreachable is why a source cannot be read, "" when it can. Such a source is never just
// shown as empty.
func Unreachable(src api.SourceState) string {
	if src.State == "" || src.State == "readable" {
		return ""
	}
	if src.Problem != "" {
		return " is " + src.State + ": " + src.Problem
	}
	if src.Damaged > 0 {
		return "" // its damaged tasks are counted, and shown as such
	}
	return " is " + src.State
}

// Cents is an amount for people, "-" when it is not known.
func Cents(usd *money.USD) string {
	if usd == nil {
		return "-"
	}
	return "$" + money.USD((int64(*usd)+5000)/10000*10000).String()
}

// Status is the state of a task in one word.
func Status(t api.Summary) string {
	switch {
	case len(t.Damaged) > 0:
		return t.Status + "!"
	case t.Pending:
		return t.Status + "*"
	}
	return t.Status
}

// Age is how long ago a time in Unix milliseconds was.
func (a *App) Age(ts int64) string { return display.AgeOf(time.UnixMilli(a.Millis()), ts) }

// Plural is the ending of a noun that n counts.
func Plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// When is a day and a minute, for people.
func (a *App) When(stamp *string) string {
	if stamp == nil {
		return "-               "
	}
	return strings.Replace((*stamp)[:16], "T", " ", 1)
}

// Dollars is a cost for people.
func Dollars(cost *money.USD) string {
	if cost == nil {
		return "unknown"
	}
	return "$" + cost.String()
}
