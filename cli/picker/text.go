package picker

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
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

// wrap breaks text with colours into lines of at most so many columns. Each line begins and ends without colour, so
// that another text can follow it in its row. Of escape sequences only colours are kept.
func wrap(text string, columns int) []string {
	if columns < 1 {
		return nil
	}
	var out []string
	paint := "" // what is switched on
	text = ansi.WrapWc(coloursOnly(text), columns, "")
	text = ansi.HardwrapWc(text, columns, true) // it lets a word after a blank exceed the width
	text = within(text, columns)
	for _, line := range strings.Split(text, "\n") {
		begin := paint
		for rest := line; ; {
			_, after, ok := strings.Cut(rest, "\x1b[")
			if !ok {
				break
			}
			code, more, _ := strings.Cut(after, "m")
			if paint += "\x1b[" + code + "m"; code == "" || code == "0" {
				paint = ""
			}
			rest = more
		}
		line = begin + strings.TrimRight(line, " ")
		if paint != "" {
			line += "\x1b[0m"
		}
		out = append(out, line)
	}
	return out
}

// within breaks what is wider than the columns although it is one sign to a reader: a letter
// with marks that take room of their own, as a terminal counts them.
func within(text string, columns int) string {
	var out strings.Builder
	for at, column := 0, 0; at < len(text); {
		if n := colour(text[at:]); n > 0 {
			out.WriteString(text[at : at+n])
			at += n
			continue
		}
		r, n := utf8.DecodeRuneInString(text[at:])
		switch w := width(text[at : at+n]); {
		case r == '\n':
			column = 0
		case column > 0 && column+w > columns:
			out.WriteByte('\n')
			column = w
		default:
			column += w
		}
		out.WriteString(text[at : at+n])
		at += n
	}
	return out.String()
}

// coloursOnly leaves colours, line breaks and harmless text.
func coloursOnly(text string) string {
	var out strings.Builder
	from := 0
	for at := 0; ; {
		i := strings.Index(text[at:], "\x1b[")
		if i < 0 {
			out.WriteString(plain(text[from:]))
			return out.String()
		}
		at += i
		n := colour(text[at:])
		if n == 0 {
			at++ // some other sequence: it goes with the text around it
			continue
		}
		out.WriteString(plain(text[from:at]))
		out.WriteString(text[at : at+n])
		at += n
		from = at
	}
}

// plain is harmless text of any number of lines, tabs as blanks.
func plain(text string) string {
	return strings.ReplaceAll(steady(term.Safe(text)), "\t", "    ")
}

// colour is the length of the colour sequence that text begins with, 0 when it
// begins with none.
func colour(text string) int {
	if !strings.HasPrefix(text, "\x1b[") {
		return 0
	}
	for i := 2; i < len(text); i++ {
		switch c := text[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// paint colours text that is safe.
func (m *Model) paint(style view.Style, text string) string {
	return term.Style{On: m.o.Colour}.Paint(style, text)
}

// age is how long ago a task changed.
func (m *Model) age(ts int64) string { return term.AgeOf(m.o.Now(), ts) }

// shortAge is age in at most four columns. For a time in the future it shows the year.
func (m *Model) shortAge(ts int64) string {
	age := m.age(ts)
	if year, _, day := strings.Cut(age, "-"); day && year != "" {
		return year
	}
	if len(age) > 4 {
		return ">10k" // a year
	}
	return age
}
