package markdown

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/cli/theme"
)

// container is a block quote, or an item of a list.
type container struct {
	quote   bool
	need    int    // columns of indentation that continue the item
	inside  int    // columns where its text begins
	marker  string // for the terminal
	shown   bool
	ordered byte // the character after the number; 0 = a bullet
	number  int
}

// inner returns the part of a line that is inside the container, if the line continues the container; known is false
// while that cannot be decided.
func (c container) inner(line string, whole bool) (inner string, more, known bool) {
	switch indent := indentOf(line); {
	case indent == len(line) && !whole:
		return "", false, false
	case c.quote:
		return quote(line, indent, whole)
	case indent == len(line):
		return "", true, true
	case indent >= c.need:
		return line[min(indent, c.inside):], true, true
	}
	return "", false, true
}

// before returns the beginning of a line: the bars of quotes, the markers of items, and blanks. Only the first line
// of an item has its marker. It takes at most half of the width.
func (s *Stream) before(first bool) string {
	var out strings.Builder
	out.WriteString(strings.Repeat(" ", s.o.Indent))
	used := s.o.Indent
	for i := range s.stack {
		c := &s.stack[i]
		mark, role := c.marker, s.o.Role
		if c.quote {
			mark, role = "│ ", theme.Dim
		}
		width := ansi.StringWidthWc(mark)
		if used += width; used > s.o.Width/2 {
			break
		}
		if c.quote || first && !c.shown {
			text := strings.TrimRight(mark, " ")
			out.WriteString(s.o.Theme.Paint(role, text) + mark[len(text):])
		} else {
			out.WriteString(strings.Repeat(" ", width))
		}
	}
	return out.String()
}

// lead sets the beginnings of the next lines, and records that the markers are shown.
func (s *Stream) lead() {
	first := s.before(true)
	for i := range s.stack {
		s.stack[i].shown = true
	}
	s.flow.lead, s.flow.next = first, s.before(false)
	s.any = true
}

func untab(line string) string { return strings.ReplaceAll(line, "\t", " ") }

// detab replaces the tabs that indent a line by blanks.
func detab(line string) string {
	rest := strings.TrimLeft(line, " \t")
	if lead := line[:len(line)-len(rest)]; strings.Contains(lead, "\t") {
		return spread(lead) + rest
	}
	return line
}

// spread replaces tabs by blanks, up to the next multiple of four columns.
func spread(line string) string {
	var out strings.Builder
	col := 0
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			n := 4 - col%4
			out.WriteString(strings.Repeat(" ", n))
			col += n
		}
		out.WriteString(part)
		col += ansi.StringWidthWc(part)
	}
	return out.String()
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// quote removes the mark of a block quote from a line. is: there was one; known is false while that cannot be
// decided.
func quote(line string, indent int, whole bool) (inner string, is, known bool) {
	if indent > 3 || indent == len(line) || line[indent] != '>' {
		return line, false, true
	}
	if inner = line[indent+1:]; inner == "" {
		return inner, true, whole
	}
	return strings.TrimPrefix(inner, " "), true, true
}
