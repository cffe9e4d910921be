package picker

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/cli/term"
)

// clean makes text of a task one harmless line of known width. Joiners, variation
// selectors and skin tones go: terminals do not agree about how wide a character is
// that has them, and a row that is off by a column tears the screen.
func clean(text string) string { return steady(term.OneLine(text)) }

func steady(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0x200C || r == 0x200D || r >= 0xFE00 && r <= 0xFE0F || r >= 0x1F3FB && r <= 0x1F3FF {
			return -1
		}
		return r
	}, text)
}

func width(text string) int { return ansi.StringWidthWc(text) }

// cut shortens a line to so many columns; colours in it stay closed.
func cut(text string, columns int) string { return ansi.TruncateWc(text, max(columns, 0), "…") }

// fit makes a line exactly so many columns wide.
func fit(text string, columns int) string {
	text = cut(text, columns)
	return text + strings.Repeat(" ", max(columns-width(text), 0))
}

// wrap breaks text into lines of at most so many columns.
func wrap(text string, columns int) []string {
	if columns < 1 {
		return nil
	}
	text = ansi.WrapWc(plain(text), columns, "")
	text = ansi.HardwrapWc(text, columns, true) // it lets a word after a blank exceed the width
	lines := strings.Split(within(text, columns), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}

// within breaks what is wider than the columns although it is one sign to a reader: a letter
// with marks that take room of their own, as a terminal counts them.
func within(text string, columns int) string {
	var out strings.Builder
	column := 0
	for _, r := range text {
		switch w := width(string(r)); {
		case r == '\n':
			column = 0
		case column > 0 && column+w > columns:
			out.WriteByte('\n')
			column = w
		default:
			column += w
		}
		out.WriteRune(r)
	}
	return out.String()
}

// plain is harmless text of any number of lines, tabs as blanks.
func plain(text string) string {
	return strings.ReplaceAll(steady(term.Safe(text)), "\t", "    ")
}
