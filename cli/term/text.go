package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
)

// Style writes lines in the colours of a theme.
type Style struct{ theme.Theme }

// roles maps the style of a line to the role of its colour in a theme.
var roles = map[view.Style]theme.Role{
	view.Head: theme.Accent, view.Plain: theme.Text, view.Said: theme.Model, view.Dim: theme.Dim, view.Added: theme.Added,
	view.Removed: theme.Removed, view.Bad: theme.Failure, view.Good: theme.Success, view.Asked: theme.Warning,
}

// Paint writes text in the style of a line. The text must be safe already.
func (s Style) Paint(style view.Style, text string) string {
	return s.Theme.Paint(roles[style], text)
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

// Columns returns how many columns text takes.
func Columns(text string) int { return ansi.StringWidthWc(text) }

// apart is the difference that the clocks of two machines may have before a time counts as future.
const apart = time.Minute

// AgeOf writes how long ago a time in Unix milliseconds was, as Age does; "-" for none. For a time in the future it
// writes the day, or the year if a day would not be ten columns wide: a task that "changed in 2040" comes from a
// wrong clock, and "now" would hide that.
func AgeOf(now time.Time, ts int64) string {
	if ts <= 0 || ts < api.EarliestTime && now.UnixMilli() >= api.EarliestTime {
		return "-"
	}
	switch at := time.UnixMilli(ts).UTC(); {
	case at.Year() > 9999:
		return strconv.Itoa(at.Year())
	case at.Sub(now) > apart:
		return at.Format("2006-01-02")
	}
	const most = 1 << 43 // some centuries; more milliseconds are no time.Duration
	return Age(time.Duration(min(max(now.UnixMilli()-ts, -1), most)) * time.Millisecond)
}

// Duration writes a time span for people: 350ms, 2.4s, 3m05s, 2h10m.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Seconds is Duration in whole seconds: 2s, 3m05s, 2h10m.
func Seconds(d time.Duration) string {
	return strings.Replace(Duration(d.Truncate(time.Second)), ".0s", "s", 1)
}

var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Spinner returns the frame of the activity spinner for a turn. Callers count turns up to animate it.
func Spinner(turn int) string { return string(frames[turn%len(frames)]) }

// Age writes how long ago something was: 5s, 12m, 3h, 4d, 8w, 2y.
func Age(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d < 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	case d < 14*day:
		return fmt.Sprintf("%dd", d/day)
	case d < 365*day:
		return fmt.Sprintf("%dw", d/(7*day))
	}
	return fmt.Sprintf("%dy", d/(365*day))
}

// Dollars returns an amount to the cent.
func Dollars(usd money.USD) string {
	cents := usd.Cents()
	if usd > 0 && cents == 0 {
		return "under $0.01"
	}
	return "$" + cents.String()
}

// Also names a number of things behind others, as ", 2 damaged"; it names no things not at all.
func Also(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d %s", n, what)
}

// Thousands separates the thousands of a decimal number by commas.
func Thousands(text string) string {
	whole, rest, point := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + rest
	}
	return sign + whole
}
