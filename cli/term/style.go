package term

import (
	"strings"
	"unicode/utf8"

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
	if width <= 0 || Columns(text) <= width {
		return text
	}
	used := 0
	for i, r := range text {
		if used+columns(r) > width-1 {
			return text[:i] + "…"
		}
		used += columns(r)
	}
	return text
}

// Pad fills text with blanks up to width columns.
func Pad(text string, width int) string {
	if n := width - Columns(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}

// Columns is how many columns text takes.
func Columns(text string) int {
	if len(text) == utf8.RuneCountInString(text) {
		return len(text)
	}
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

// columns is an estimate by block: East Asian wide and emoji take two, combining
// marks none. A table of every character would be large, and a line that is a
// column off is no harm.
func columns(r rune) int {
	switch {
	case r >= 0x300 && r <= 0x36F, r == 0x200D, r >= 0xFE00 && r <= 0xFE0F, r >= 0x20D0 && r <= 0x20FF:
		return 0
	case r >= 0x1100 && r <= 0x115F, r >= 0x2E80 && r <= 0xA4CF, r >= 0xAC00 && r <= 0xD7A3, r >= 0xF900 && r <= 0xFAFF,
		r >= 0xFE30 && r <= 0xFE6F, r >= 0xFF00 && r <= 0xFF60, r >= 0xFFE0 && r <= 0xFFE6, r >= 0x1F300 && r <= 0x1FAFF,
		r >= 0x20000 && r <= 0x3FFFD:
		return 2
	}
	return 1
}
