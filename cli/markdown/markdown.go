// Package markdown shows Markdown on a terminal: words wrapped at a width, tables fitted to it, code coloured.
//
// Render returns the lines of a whole text. A Stream takes the text in pieces, as a model writes it, and returns the
// part that cannot change any more: finished lines, and the settled beginning of the next one, so that a display that
// can only append shows the words as they come. However a text is cut into pieces, a Stream returns the lines of
// Render.
//
// The text is untrusted: redact.Terminal makes it safe first, so that no control character of it gets into a line, and
// a link shows its address. No line is wider than the width; a longer line of code continues in the next row after a
// mark, unless the caller wants such lines whole.
//
// Limits: a word is shown before later lines are known. So a line of === does not make a heading of the line above, there
// are no links by reference, and a table begins with a | in the first column. HTML is shown as it is. An emphasis or a
// link that does not end within 2 KB is shown as it is.
package markdown

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/redact"
)

// Options select how a text is shown.
type Options struct {
	Width  int // columns of a line; 0 = 80, and less than 10 count as 10
	Theme  theme.Theme
	Links  bool       // the terminal knows OSC 8
	Role   theme.Role // of ordinary words
	Indent int        // blanks before each line
	Whole  bool       // lines of code stay whole, also those that are wider than Width
}

const narrowest = 10

// Render returns the lines of a text. They hold no line breaks, and no escape sequences but those of the theme and of
// links.
func Render(source string, o Options) []string {
	s := NewStream(o)
	return append(s.Write(source), s.Close()...)
}

// Stream is a text that comes in pieces.
type Stream struct {
	o     Options
	flow  flow
	text  text
	raw   []byte // the unwritten part of the unfinished line, as it came
	again int    // how long raw must be before its settled part is looked for again
	began bool   // the beginning of the unfinished line is written: the rest is words of a paragraph

	stack []container
	open  bool // a paragraph is open
	fence *fence
	table []string // the lines of a table
	gap   bool     // a blank line comes before the next one
	any   bool     // something was written
}

// NewStream begins a text.
func NewStream(o Options) *Stream {
	if o.Width <= 0 {
		o.Width = 80
	}
	o.Width = max(o.Width, narrowest)
	o.Indent = min(o.Indent, o.Width/4)
	s := &Stream{o: o, flow: flow{theme: o.Theme, width: o.Width}}
	s.text = text{f: &s.flow, o: &s.o}
	return s
}

// Write adds a piece of the text and returns the lines that became complete.
func (s *Stream) Write(delta string) []string {
	for {
		line, rest, whole := strings.Cut(delta, "\n")
		s.raw = append(s.raw, line...)
		if !whole {
			break
		}
		s.wholeLine()
		delta = rest
	}
	if len(s.raw) >= s.again && (s.began || len(s.raw) < undecided && s.fence == nil) {
		n := settled(s.raw)
		if s.again = 0; n > 0 {
			s.unfinished(redact.Terminal(string(s.raw[:n])), n)
		} else {
			s.again = len(s.raw) * 9 / 8
		}
	}
	return s.give()
}

// undecided is the number of bytes of an unfinished line up to which a Stream tries to decide its kind.
const undecided = 1 << 10

// Rest returns the settled beginning of the next line. It only grows until that line is finished.
func (s *Stream) Rest() string { return s.flow.line.String() }

// Close ends the text and returns the rest of its lines.
func (s *Stream) Close() []string {
	if len(s.raw) > 0 {
		s.wholeLine()
	}
	s.endLeaf()
	s.stack, s.fence = nil, nil
	return s.give()
}

func (s *Stream) give() []string {
	out := s.flow.out
	s.flow.out = nil
	return out
}

// wholeLine takes the complete line. A carriage return inside of the line divides it into several lines.
func (s *Stream) wholeLine() {
	raw := string(s.raw)
	s.raw, s.again = s.raw[:0], 0
	for line := range strings.SplitSeq(strings.TrimSuffix(redact.Terminal(raw+"\n"), "\n"), "\n") {
		s.line(line)
	}
}

// settled returns how many bytes of an unfinished line can be made safe already. It stops before the first character
// that acts on a terminal, because its sequence may continue, before an incomplete character, and before characters
// that decide how a following joiner is treated.
func settled(raw []byte) (end int) {
	for end < len(raw) {
		r, n := utf8.DecodeRune(raw[end:])
		if unicode.IsControl(r) && r != '\t' || r == utf8.RuneError {
			break
		}
		end += n
	}
	for joined := true; joined && end > 0; {
		r, n := utf8.DecodeLastRune(raw[:end])
		if joined = unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co,
			unicode.Other_Default_Ignorable_Code_Point); r >= utf8.RuneSelf {
			end -= n
		}
	}
	return end
}

// leaf is the kind of a line, inside its containers.
type leaf uint8

const (
	words leaf = iota
	blank
	heading
	rule
	opening // of a fenced block
	verbatim
	row
)

// parsed is the result of parse.
type parsed struct {
	matched int // containers that continue
	fresh   []container
	leaf    leaf
	rest    string // the line inside its containers
	lazy    bool   // words that continue a paragraph although the line lacks the marks of its containers
}

// line handles a whole line.
func (s *Stream) line(line string) {
	switch {
	case s.began:
		s.text.add(untab(line), false)
		s.began = false
	case s.fence != nil && s.code(line):
	default:
		p, _ := s.parse(untab(detab(line)), true)
		s.apply(p)
	}
}

// unfinished handles the beginning of a line, n bytes of it, if it is words of a paragraph.
func (s *Stream) unfinished(line string, n int) {
	if s.began {
		s.text.add(untab(line), false)
	} else {
		p, known := s.parse(untab(detab(line)), false)
		if !known || p.leaf != words || p.rest == "" {
			return
		}
		s.apply(p)
		s.began = true
	}
	s.raw = append(s.raw[:0], s.raw[n:]...)
}

// parse determines the containers and the kind of a line. known is false for an unfinished line whose kind is not
// certain yet.
func (s *Stream) parse(line string, whole bool) (p parsed, known bool) {
	p.rest = line
	for _, c := range s.stack {
		inner, more, known := c.inner(p.rest, whole)
		if !known {
			return p, false
		}
		if !more {
			break
		}
		p.rest = inner
		p.matched++
	}
	return s.begin(p, whole)
}

// begin finds the containers that a line begins, and the kind of the line.
func (s *Stream) begin(p parsed, whole bool) (_ parsed, known bool) {
	continues := s.open && p.matched == len(s.stack)
	for len(p.fresh) < 20 {
		indent := indentOf(p.rest)
		if indent == len(p.rest) {
			p.leaf = blank
			return p, whole
		}
		if inner, is, known := quote(p.rest, indent, whole); !known {
			return p, false
		} else if is {
			p.fresh, p.rest = append(p.fresh, container{quote: true}), inner
			continue
		}
		if indent > 3 && p.matched+len(p.fresh) == 0 {
			break
		}
		if isRule(p.rest[indent:], 3) {
			p.leaf = rule
			return p, whole
		}
		if !whole && isRule(p.rest[indent:], 1) {
			return p, false
		}
		item, inner, known := s.item(p, indent, whole)
		if !known {
			return p, false
		}
		if item == nil {
			break
		}
		p.fresh, p.rest = append(p.fresh, *item), inner
	}
	continues = continues && len(p.fresh) == 0
	indent := indentOf(p.rest)
	rest := p.rest[indent:]
	switch {
	case indent > 3 && !s.open:
		p.leaf = verbatim
		return p, whole
	case rest == "":
		p.leaf = blank
		return p, whole
	case rest[0] == '#':
		n := run(rest)
		if n == len(rest) && !whole {
			return p, false
		}
		if n <= 6 && (n == len(rest) || rest[n] == ' ') {
			p.leaf, p.rest = heading, rest
			return p, whole
		}
	case rest[0] == '`' || rest[0] == '~':
		n := run(rest)
		switch {
		case n == len(rest) && !whole:
			return p, false
		case n >= 3 && (rest[0] == '~' || !strings.Contains(rest[n:], "`")):
			p.leaf = opening
			return p, whole
		case n >= 3 && !whole:
			return p, false
		}
	case rest[0] == '|':
		p.leaf, p.rest = row, rest
		return p, whole
	}
	p.leaf, p.rest = words, rest
	p.lazy = s.open && len(p.fresh) == 0 && !continues
	return p, true
}

// isRule reports whether a line consists of blanks and at least least marks of a rule, all the same.
func isRule(s string, least int) bool {
	if s == "" || strings.IndexByte("-*_", s[0]) < 0 || strings.Trim(s, s[:1]+" ") != "" {
		return false
	}
	return strings.Count(s, s[:1]) >= least
}

// item removes the marker of a list from a line; nil = there is none.
func (s *Stream) item(p parsed, indent int, whole bool) (c *container, inner string, known bool) {
	rest := p.rest[indent:]
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	width := digits + 1
	switch {
	case digits > 9:
		return nil, "", true
	case digits == len(rest):
		return nil, "", whole
	case digits > 0 && rest[digits] != '.' && rest[digits] != ')', digits == 0 && strings.IndexByte("-*+", rest[0]) < 0:
		return nil, "", true
	case width == len(rest) && !whole:
		return nil, "", false
	case width < len(rest) && rest[width] != ' ':
		return nil, "", true
	}
	c = &container{}
	at := p.matched + len(p.fresh)
	inList := len(p.fresh) > 0 || len(s.stack) > 0
	if digits > 0 {
		c.ordered = rest[digits]
		c.number, _ = strconv.Atoi(rest[:digits])
		if s.open && !inList && c.number != 1 { // a number, such as a year, at the start of a line of a paragraph
			return nil, "", true
		}
	}
	if len(p.fresh) == 0 && at < len(s.stack) && s.stack[at].ordered == c.ordered && c.ordered != 0 {
		c.number = s.stack[at].number + 1
	}
	inner = rest[width:]
	blanks := indentOf(inner)
	switch {
	case blanks == len(inner) && !whole:
		return nil, "", false
	case blanks == len(inner) && s.open && !inList: // an empty item ends no paragraph
		return nil, "", true
	case blanks == len(inner):
		inner, blanks = "", 1
	case blanks > 4:
		inner, blanks = inner[1:], 1
	default:
		inner = inner[blanks:]
	}
	c.need, c.inside = indent+min(width+blanks, 2), indent+width+blanks
	if c.ordered != 0 {
		c.marker = strconv.Itoa(c.number) + string(c.ordered) + " "
		return c, inner, true
	}
	c.marker = bullets[s.depth(p)%len(bullets)] + " "
	switch {
	case len(inner) < 4 && !whole && (strings.HasPrefix("[ ] ", inner) || strings.HasPrefix("[x] ", strings.ToLower(inner))):
		return nil, "", false
	case strings.HasPrefix(inner, "[ ] "):
		c.marker, inner = "☐ ", inner[4:]
	case strings.HasPrefix(inner, "[x] "), strings.HasPrefix(inner, "[X] "):
		c.marker, inner = "☑ ", inner[4:]
	}
	if indentOf(inner) == len(inner) && !whole {
		return nil, "", false
	}
	return c, inner, true
}

var bullets = []string{"•", "◦", "▪"}

// depth returns how many lists of bullets are around the next container.
func (s *Stream) depth(p parsed) (n int) {
	for _, c := range append(s.stack[:p.matched:p.matched], p.fresh...) {
		if !c.quote && c.ordered == 0 {
			n++
		}
	}
	return n
}

// apply writes a parsed line.
func (s *Stream) apply(p parsed) {
	if p.lazy {
		s.text.add("\n"+p.rest, false)
		return
	}
	goesOn := p.matched == len(s.stack) && len(p.fresh) == 0
	if s.table != nil && (!goesOn || p.leaf != row) || s.open && (!goesOn || p.leaf != words) {
		s.endLeaf()
	}
	if p.leaf == blank && len(p.fresh) == 0 {
		s.gap = s.any
		if p.matched < len(s.stack) && s.stack[p.matched].quote {
			s.stack = s.stack[:p.matched]
		}
		return
	}
	s.stack = s.stack[:p.matched]
	s.gap = s.gap || p.leaf == heading && s.any
	s.space()
	s.stack = append(s.stack, p.fresh...)
	switch p.leaf {
	case blank: // an item without words
		if last := len(s.stack) - 1; !s.stack[last].quote {
			s.lead()
			s.flow.end()
		}
	case words:
		if s.open {
			s.text.add("\n"+p.rest, false)
			return
		}
		s.open = true
		s.lead()
		s.text.add(p.rest, false)
	case heading:
		s.heading(p.rest)
	case rule:
		s.lead()
		width := max(s.o.Width-ansi.StringWidthWc(s.flow.lead), 1)
		s.verbatim(span{look{role: theme.Dim}, strings.Repeat("─", width)})
	case opening:
		s.openFence(p.rest)
	case verbatim:
		s.codeLine(&fence{}, p.rest[4:])
	case row:
		s.row(p.rest)
	}
	s.any = true
}

// space writes the blank line that is due.
func (s *Stream) space() {
	if s.gap && !s.open && s.table == nil {
		s.flow.out = append(s.flow.out, strings.TrimRight(s.before(false), " "))
		s.gap = false
	}
}

// endLeaf ends the paragraph, or the table.
func (s *Stream) endLeaf() {
	switch {
	case s.open:
		s.text.add("", true)
	case s.table != nil:
		s.endTable()
	}
	s.open = false
}

// heading writes a heading, with its marks if there are no colours.
func (s *Stream) heading(line string) {
	level := run(line)
	line = strings.TrimSpace(line[level:])
	if bare := strings.TrimRight(line, "#"); bare == "" || strings.HasSuffix(bare, " ") {
		line = strings.TrimSpace(bare)
	}
	s.lead()
	l := look{role: theme.Accent, attr: theme.Bold}
	if level == 1 {
		l.attr |= theme.Underline
	}
	if !s.o.Theme.On() {
		line = strings.Repeat("#", level) + " " + line
	}
	s.text.read(line, l, true, 0)
	s.text.before = 0
	s.flow.end()
}
