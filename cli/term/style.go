package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
)

// Style writes ANSI colours, or nothing at all.
type Style struct{ On bool }

var codes = map[view.Style]string{
	view.Head:    "1",
	view.Dim:     "2",
	view.Added:   "32",
	view.Removed: "31",
	view.Bad:     "31",
	view.Good:    "32",
	view.Asked:   "33",
}

// Paint wraps text in a style's colour. The text must be safe already.
func (s Style) Paint(style view.Style, text string) string {
	code := codes[style]
	if !s.On || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Safe makes text from models, tools and files harmless for a terminal. Line
// breaks and tabs stay.
func Safe(text string) string { return redact.Terminal(text) }

// OneLine is Safe text on one line, blanks joined.
func OneLine(text string) string { return strings.Join(strings.Fields(Safe(text)), " ") }

// Cut shortens one line to width columns, counting wide characters as two. A
// width of 0 cuts nothing.
func Cut(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.TruncateWc(text, width, "…")
}

// Pad fills text with blanks up to width columns.
func Pad(text string, width int) string {
	if n := width - Columns(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}

// Columns is how many columns text takes.
func Columns(text string) int { return ansi.StringWidthWc(text) }

// Plural is a number of things: "1 task", "2 tasks".
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// apart is how far the clocks of two machines may lie apart before a time counts as future.
const apart = time.Minute

// AgeOf writes how long ago a time in Unix milliseconds was, as Age does; "-" for none. For a time in the future it
// writes the day, or the year where a day would not be ten columns wide: a task that "changed in 2040" comes from a
// clock that was wrong, and "now" would hide that.
func AgeOf(now time.Time, ts int64) string {
	if ts <= 0 {
		return "-"
	}
	if at := time.UnixMilli(ts).UTC(); at.Sub(now) > apart || at.Year() > 9999 {
		if at.Year() > 9999 {
			return strconv.Itoa(at.Year())
		}
		return at.Format("2006-01-02")
	}
	const most = 1 << 43 // some centuries; more milliseconds are no time.Duration
	return Age(time.Duration(min(max(now.UnixMilli()-ts, -1), most)) * time.Millisecond)
}
