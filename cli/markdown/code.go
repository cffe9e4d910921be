package markdown

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/internal/highlight"
)

// fence is a fenced block of code.
type fence struct {
	mark   byte
	marks  int
	indent int
	code   *highlight.Code // nil = the language is unknown
}

// openFence begins a block of code with its first line.
func (s *Stream) openFence(line string) {
	f := &fence{indent: indentOf(line)}
	line = line[f.indent:]
	f.mark, f.marks = line[0], run(line)
	name, _, _ := strings.Cut(strings.TrimSpace(line[f.marks:]), " ")
	f.code = highlight.New(strings.Trim(name, "{.}"))
	s.fence = f
}

// code takes a line while a block of code is open: a line of code, or the end of the block. A line outside of the block's
// containers ends the block, too; for such a line code returns false.
func (s *Stream) code(line string) bool {
	rest := detab(line)
	for _, c := range s.stack {
		inner, more, _ := c.inner(rest, true)
		if !more {
			s.fence = nil
			return false
		}
		rest = inner
	}
	indent, f := indentOf(rest), s.fence
	if end := strings.TrimRight(rest[indent:], " "); indent < 4 && len(end) >= f.marks && strings.Trim(end, string(f.mark)) == "" {
		s.fence = nil
		return true
	}
	s.codeLine(f, rest[min(indent, f.indent):])
	return true
}

// codeLine writes a line of code.
func (s *Stream) codeLine(f *fence, line string) {
	s.lead()
	if s.o.Whole {
		s.flow.width = math.MaxInt32
		defer func() { s.flow.width = s.o.Width }()
	}
	if s.o.Width >= 2*narrowest {
		s.flow.lead, s.flow.next = s.flow.lead+"  ", s.flow.next+"  "
	}
	if line = strings.TrimRight(spread(line), " "); line == "" {
		s.flow.whole(strings.TrimRight(s.flow.lead, " "))
		return
	}
	if s.o.Role != theme.Text && s.o.Role != theme.Model {
		s.verbatim(span{look{role: s.o.Role}, line})
		return
	}
	s.verbatim(f.spans(line)...)
}

// verbatim writes a line of pieces unchanged. A line that is too long continues in the next row after a mark.
func (s *Stream) verbatim(pieces ...span) {
	mark := continued
	if s.o.Width-ansi.StringWidthWc(s.flow.lead) < narrowest/2 {
		mark = ""
	}
	for _, p := range pieces {
		s.flow.write(p, "", mark)
	}
	s.flow.newline()
}

// continued is the mark at the beginning of a row in which a line of code continues.
const continued = "↪ "

// codeRole maps kinds of code to roles.
var codeRole = map[highlight.Kind]theme.Role{
	highlight.Comment: theme.Dim,
	highlight.String:  theme.Success,
	highlight.Number:  theme.Warning,
	highlight.Keyword: theme.Accent,
	highlight.Tag:     theme.Accent,
	highlight.Hunk:    theme.Dim,
	highlight.Added:   theme.Added,
	highlight.Removed: theme.Removed,
}

// spans returns the pieces of a line of code.
func (f *fence) spans(line string) (out []span) {
	if f.code == nil {
		return []span{{look{role: theme.Text}, line}}
	}
	for _, p := range f.code.Pieces(line) {
		out = append(out, span{look{role: codeRole[p.Kind]}, p.Text})
	}
	return out
}
