package app

import (
	"strings"

	display "github.com/roost-dev/roost/cli/term"
)

// Wrap breaks a line for a terminal of that many columns, between words where it
// can, and indents the continuation like the line. With 0 columns lines stay whole, for
// grep. The terminal itself would break in the middle of words and without the indent.
func Wrap(text string, columns int) []string {
	if columns < 20 || display.Columns(text) <= columns && !strings.Contains(text, "\t") {
		return []string{text}
	}
	text = strings.ReplaceAll(text, "\t", "    ")
	indent := len(text) - len(strings.TrimLeft(text, " "))
	if mark := listMark(text[indent:]); mark > 0 {
		indent += mark
	}
	if indent > columns/2 {
		indent = 2
	}
	var out []string
	lead := ""
	for {
		cut, rest := fit(text, columns-len(lead), len(lead) == 0)
		out = append(out, lead+cut)
		if rest == "" {
			return out
		}
		text, lead = rest, strings.Repeat(" ", indent)
	}
}

// listMark is the width of the list mark at the beginning of a text, such as "- " or "1. "; 0 without one.
func listMark(text string) int {
	n := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if n > 0 && n < 4 && strings.HasPrefix(text[n:], ". ") {
		return n + 2
	}
	if strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "* ") {
		return 2
	}
	return 0
}

// fit cuts a text so that the first part takes at most so many columns. keep retains the
// blanks at its beginning.
func fit(text string, columns int, keep bool) (first, rest string) {
	used, space, seen := 0, -1, !keep
	for i, r := range text {
		if r == ' ' && seen {
			space = i
		}
		seen = seen || r != ' '
		if used += display.Columns(string(r)); used <= columns {
			continue
		}
		switch {
		case space > 0 && space >= i/2: // a word that fills the line is broken instead
			return strings.TrimRight(text[:space], " "), strings.TrimLeft(text[space:], " ")
		case i == 0:
			return text[:len(string(r))], text[len(string(r)):]
		}
		return text[:i], text[i:]
	}
	return text, ""
}
