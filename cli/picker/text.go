package picker

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/view"
)

// fitted returns the first of several spellings that fits, or else the last.
func (m *Model) fitted(spellings ...string) string {
	for _, s := range spellings {
		if width(s) <= m.width {
			return s
		}
	}
	return spellings[len(spellings)-1]
}

func name(t Task) string {
	return cmp.Or(cut(clean(t.Title), 40), clean(t.ID))
}

// chosenLine returns a line of a list. The line under the cursor has reverse colours, and keeps its marks.
func (m *Model) chosenLine(line string, here bool) string {
	if !here || !m.o.Colour {
		return line
	}
	const turned, plainly = "\x1b[7m", "\x1b[0m"
	return turned + strings.ReplaceAll(line, plainly, plainly+turned) + plainly
}

// marked returns text in a style, with the words of the search marked.
func (m *Model) marked(style view.Style, text string) string {
	if m.query.words == nil || !m.o.Colour {
		return m.paint(style, text)
	}
	var out strings.Builder
	from := 0
	for _, at := range m.query.words.FindAllStringIndex(text, -1) {
		out.WriteString(m.paint(style, text[from:at[0]]) + m.paint(view.Good, text[at[0]:at[1]]))
		from = at[1]
	}
	return out.String() + m.paint(style, text[from:])
}

// dollars returns the cost of a task, to the cent.
func dollars(t Task) string {
	if t.Usage.Cost == nil {
		return "-"
	}
	return fmt.Sprintf("$%.2f", float64(*t.Usage.Cost)/1e6)
}

// paint colours a text that is safe already.
func (m *Model) paint(style view.Style, text string) string {
	if !m.o.Colour {
		return text
	}
	return term.Style{Theme: theme.Basic()}.Paint(style, text)
}

// age returns how long ago a task changed.
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

// edited returns a line after a key that changes it.
func edited(line, key, typed string) string {
	switch key {
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(line)
		return line[:len(line)-n]
	case "ctrl+u":
		return ""
	case "ctrl+w":
		line = strings.TrimRight(line, " ")
		return line[:strings.LastIndex(line, " ")+1]
	}
	if typed != " " {
		typed = clean(typed)
	}
	return line + typed
}

// clean makes text of a task one harmless line of known width. It drops joiners, variation selectors and skin tones:
// terminals differ in the width of a character that has them, and a row with a wrong width tears the screen.
func clean(text string) string { return steady(term.OneLine(text)) }

func steady(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0x200C || r == 0x200D || r >= 0xFE00 && r <= 0xFE0F || r >= 0x1F3FB && r <= 0x1F3FF {
			return -1
		}
		return r
	}, text)
}

func width(text string) int { return term.Columns(text) }

// cut shortens a line to columns columns, and keeps colours in it closed.
func cut(text string, columns int) string { return ansi.TruncateWc(text, max(columns, 0), "…") }

// fit makes a line exactly columns columns wide.
func fit(text string, columns int) string {
	return term.Pad(cut(text, columns), columns)
}

// wrap breaks text into lines of at most columns columns.
func wrap(text string, columns int) []string {
	if columns < 1 {
		return nil
	}
	text = ansi.WrapWc(plain(text), columns, "")
	text = ansi.HardwrapWc(text, columns, true) // WrapWc lets a word after a blank exceed the width
	return api.Each(strings.Split(within(text, columns), "\n"), func(line string) string { return strings.TrimRight(line, " ") })
}

// within breaks a character that is wider than columns: a letter with marks that each take a column, as a terminal
// counts them.
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
