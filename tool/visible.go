package tool

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// markBlanks is from how many blanks or line breaks in a row on Visible counts them.
	markBlanks = 10
	markBreaks = 4
)

// Visible shows a command so that a person sees what runs: each character outside
// printable ASCII is named between « and », long runs of blanks and of empty lines are
// counted there. A command cannot write such a mark itself: its own « would be named.
func Visible(command string) string {
	var out strings.Builder
	out.Grow(len(command))
	for s := command; s != ""; {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, "«byte 0x%02X»", s[0])
		case r == ' ' || r == '\n' || r == '\t':
			n = blank(&out, s, r)
		case r > ' ' && r < 0x7f:
			out.WriteRune(r)
		default:
			n = foreign(&out, s)
		}
		s = s[n:]
	}
	return out.String()
}

// blank writes the run of one blank character that s begins with, and returns its length.
func blank(out *strings.Builder, s string, r rune) int {
	n := len(s) - len(strings.TrimLeft(s, string(r)))
	switch {
	case r == '\t' && n == 1:
		out.WriteString("«tab»")
	case r == '\t':
		fmt.Fprintf(out, "«%d tabs»", n)
	case r == ' ' && n >= markBlanks:
		fmt.Fprintf(out, "«%d blanks»", n)
	case r == '\n' && n >= markBreaks:
		fmt.Fprintf(out, "\n«%d empty lines»\n", n-1)
	default:
		out.WriteString(s[:n])
	}
	return n
}

// foreign writes the run of characters outside ASCII, or of control characters, that s begins
// with: those that show as themselves, then the names of all. It returns the run's length.
func foreign(out *strings.Builder, s string) int {
	var shown, names strings.Builder
	end := 0
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if r == utf8.RuneError && n == 1 || r >= ' ' && r < 0x7f || r == '\n' || r == '\t' {
			break
		}
		if r > 0x9f && unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) && !rightToLeft(r) {
			shown.WriteRune(r)
		}
		fmt.Fprintf(&names, " U+%04X", r)
		end += n
	}
	out.WriteString("«" + strings.TrimPrefix(shown.String()+names.String(), " ") + "»")
	return end
}

// rightToLeft reports whether a terminal may show the neighbours of r in another order.
func rightToLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// SafeName is a file name as it is put into lines of text, for the model and for a person. A
// name with line ends, escape sequences, characters that turn text around or bytes that are
// no UTF-8 is quoted: otherwise it could pass for other lines, or act on the terminal on which
// a person decides.
func SafeName(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, misleading) {
		return name
	}
	return strconv.Quote(name)
}

// SafeNames is SafeName for several names, with commas between them.
func SafeNames(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = SafeName(n)
	}
	return strings.Join(out, ", ")
}

// misleading reports whether a character acts on a terminal or turns text around.
func misleading(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Bidi_Control, r)
}

// OneLine makes text from a model fit for Ask.Title: the first line that is not
// blank, in which characters that act on a terminal or turn text around are
// replaced by U+FFFD. A person decides by this line.
func OneLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(s, "\r\n"), "\n")
	return strings.Map(func(r rune) rune {
		if misleading(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimRight(line, "\r"), "\uFFFD"))
}
