package markdown

import (
	"html"
	neturl "net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/redact"
)

const (
	reach   = 2 << 10 // bytes in which an emphasis, a link or a code span must end; a longer word is written in parts
	deepest = 8       // levels of nested emphases and links
)

// text reads the inside of paragraphs: emphasis, code spans, links. It writes text that cannot change any more; text
// that may still become an emphasis or a link waits for its end.
type text struct {
	f     *flow
	o     *Options
	links int // how many links were written

	rest   string         // the part that is not written
	before rune           // the character before it
	at     int            // bytes of the paragraph before it
	ends   map[byte]place // where the next emphasis with a mark may end
}

// add appends text to the paragraph; final means that none follows.
func (t *text) add(more string, final bool) {
	t.rest += more
	n := t.read(t.rest, look{role: t.o.Role}, final, 0)
	if t.rest = t.rest[n:]; len(t.rest) > 3 && strings.TrimLeft(t.rest, " ") == "" {
		t.rest = t.rest[:3] // more blanks mean the same
	}
	if final {
		t.f.end()
		t.rest, t.before, t.at, t.ends = "", 0, 0, nil
	}
}

// read writes the decided beginning of s, and returns its length.
func (t *text) read(s string, l look, final bool, depth int) int {
	at := 0
	for at < len(s) {
		n := t.one(s[at:], l, final, depth)
		if n == 0 {
			return at
		}
		t.before, _ = utf8.DecodeLastRuneInString(s[:at+n])
		at += n
		if depth == 0 {
			t.at += n
		}
	}
	return at
}

// special are the bytes that may begin something other than words.
const special = " \n\\`*_~[!<&"

// one writes the first element of s, and returns its length; 0 = its end is not known yet.
func (t *text) one(s string, l look, final bool, depth int) int {
	var n int
	wait := false
	switch c := s[0]; c {
	case ' ', '\n':
		return t.blanks(s, final)
	case '\\':
		switch {
		case len(s) == 1 && !final:
			return 0
		case len(s) > 1 && s[1] == '\n':
			t.f.hard()
			return 2
		case len(s) > 1 && ascii(s[1]) && unicode.In(rune(s[1]), unicode.P, unicode.S):
			t.f.put(l, s[1:2])
			return 2
		}
	case '`':
		n, wait = t.code(s, l, final)
	case '*', '_', '~':
		n, wait = t.emphasis(s, l, final, depth)
	case '[', '!':
		n, wait = t.link(s, l, final, depth)
	case '<':
		n, wait = t.angle(s, l, final)
	case '&':
		n, wait = t.entity(s, l, final)
	default:
		if c == 'h' && !word(t.before) {
			n, wait = t.address(s, l, final)
		}
	}
	switch {
	case wait:
		return 0
	case n > 0:
		return n
	}
	return t.words(s, l, final)
}

// blanks writes a blank, or a line break where two blanks end a line.
func (t *text) blanks(s string, final bool) int {
	n := len(s) - len(strings.TrimLeft(s, " "))
	switch {
	case n == len(s) && !final:
		return 0
	case n < len(s) && s[n] == '\n':
		if n++; n > 2 {
			t.f.hard()
			return n
		}
	}
	t.f.blank()
	return n
}

// words writes a run of ordinary characters. The first one is ordinary, whatever it is.
func (t *text) words(s string, l look, final bool) int {
	n := 1
	marks := strings.IndexByte("`*_~", s[0]) >= 0
	for n < len(s) && n < reach && (marks && s[n] == s[0] || !t.stops(s, n)) {
		n++
	}
	if n == len(s) && !final {
		return 0
	}
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	t.f.put(l, s[:n])
	return n
}

// stops reports whether a run of ordinary characters ends before s[n]. In scripts without blanks each character is a
// run of its own.
func (t *text) stops(s string, n int) bool {
	if ascii(s[n]) {
		return strings.IndexByte(special, s[n]) >= 0 || s[n] == 'h' && s[n-1] == '('
	}
	r, _ := utf8.DecodeRuneInString(s[n:])
	return r >= 0x3001 && r < 0x3097 || r >= 0x30A0 && r < 0x3100 || r >= 0x3400 && r < 0xA000 || r >= 0xAC00 && r < 0xD7A4 ||
		r >= 0xFF01 && r < 0xFF61
}

// run returns how often s begins with its first byte.
func run(s string) int { return len(s) - len(strings.TrimLeft(s, s[:1])) }

// missing returns the result for an element whose end is not in s. wait: the end may still come.
func missing(s string, final bool) (n int, wait bool) { return 0, !final && len(s) < reach }

// code writes a code span.
func (t *text) code(s string, l look, final bool) (n int, wait bool) {
	from, to := codeSpan(s, final)
	if to == 0 {
		return missing(s, final)
	}
	inner := strings.ReplaceAll(s[from:to], "\n", " ")
	if len(inner) > 2 && inner[0] == ' ' && inner[len(inner)-1] == ' ' && strings.Trim(inner, " ") != "" {
		inner = inner[1 : len(inner)-1]
	}
	l.role = theme.Code
	if !t.f.theme.On() {
		inner = "`" + inner + "`"
	}
	t.spaced(l, inner)
	return to + from, false
}

// codeSpan returns the bounds of the inside of a code span at the start of s; 0, 0 = the span does not end. If more
// may follow, a mark at the very end of s does not count yet.
func codeSpan(s string, final bool) (from, to int) {
	from = run(s)
	for at := from; at < len(s) && at < reach; {
		if s[at] != '`' {
			at++
			continue
		}
		n := run(s[at:])
		if n == from && (final || at+n < len(s)) {
			return from, at
		}
		at += n
	}
	return 0, 0
}

// spaced writes text in which every blank is kept.
func (t *text) spaced(l look, s string) {
	for i, part := range strings.Split(s, " ") {
		switch {
		case i > 0 && part == "":
			t.f.put(l, " ")
			continue
		case i > 0:
			t.f.blank()
		}
		t.f.put(l, part)
	}
}

// emphasis writes *this*, **this**, ***this***, and the same with _; ~~this~~ is struck out.
func (t *text) emphasis(s string, l look, final bool, depth int) (n int, wait bool) {
	marks := run(s)
	if marks == len(s) {
		return missing(s, final)
	}
	if !full(s[marks:], final) {
		return 0, true
	}
	opens, _ := flanks(s[0], t.before, first(s[marks:]))
	if !opens || marks > 3 || s[0] == '~' && marks != 2 || depth == deepest || depth == 0 && t.far(s, marks, final) {
		return 0, false
	}
	end, known := closer(s, marks, final)
	if end == 0 {
		return 0, !known
	}
	switch {
	case s[0] == '~':
		l.attr |= theme.Strike
	case marks != 2:
		l.attr |= theme.Italic
	}
	if marks > 1 && s[0] != '~' {
		l.attr |= theme.Bold
	}
	t.before = rune(s[0])
	t.read(s[marks:end], l, true, depth+1)
	return end + marks, false
}

// far reports that no emphasis ends within reach of the one at the start of s. Without this check, a text with many
// such marks would be searched from each of them.
func (t *text) far(s string, marks int, final bool) bool {
	p := t.ends[s[0]]
	if p.at <= t.at || !p.found && p.at < t.at+reach {
		if !final && len(s) < 2*reach {
			return false // what follows may decide
		}
		p = place{at: marks}
		for p.at < min(len(s), 2*reach) {
			if s[p.at] != s[0] {
				p.at++
				continue
			}
			n := run(s[p.at:])
			before, _ := utf8.DecodeLastRuneInString(s[:p.at])
			if _, p.found = flanks(s[0], before, first(s[p.at+n:])); p.found {
				break
			}
			p.at += n
		}
		if final && !p.found && p.at == len(s) {
			p.at += reach
		}
		if p.at += t.at; t.ends == nil {
			t.ends = map[byte]place{}
		}
		t.ends[s[0]] = p
	}
	return p.at-t.at >= reach
}

// place is how far a search in a paragraph has come.
type place struct {
	at    int
	found bool
}

// closer finds the marks that end an emphasis at the start of s. known = none will come.
func closer(s string, marks int, final bool) (end int, known bool) {
	var inner []int // marks of emphases that began inside
	for at := marks; at < len(s) && at < reach; {
		switch c := s[at]; {
		case c == '\\':
			at += 2
		case c == '`':
			if from, to := codeSpan(s[at:], final); to > 0 {
				at += to + from
			} else if _, wait := missing(s[at:], final); wait {
				return 0, false
			} else {
				at += run(s[at:])
			}
		case c != s[0]:
			at++
		default:
			n := run(s[at:])
			if at+n == len(s) && !final || !full(s[at+n:], final) {
				return 0, false
			}
			before, _ := utf8.DecodeLastRuneInString(s[:at])
			opens, closes := flanks(c, before, first(s[at+n:]))
			at += n
			used := 0
			for closes && len(inner) > 0 && n != marks && n-used >= inner[len(inner)-1] {
				used += inner[len(inner)-1]
				inner = inner[:len(inner)-1]
			}
			switch same := len(inner) > 0 && inner[len(inner)-1] == n; {
			case closes && same:
				inner = inner[:len(inner)-1]
			case closes && n-used >= marks && (n == marks || len(inner) == 0):
				return at - n + used, true
			case opens && used == 0:
				inner = append(inner, n)
			}
		}
	}
	_, wait := missing(s, final)
	return 0, !wait
}

// full reports whether s begins with a complete character, or no more text follows.
func full(s string, final bool) bool { return final || utf8.FullRuneInString(s) }

// first returns the first character of s; 0 = there is none.
func first(s string) rune {
	if s == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func ascii(c byte) bool    { return c < utf8.RuneSelf }
func gap(r rune) bool      { return r == 0 || unicode.IsSpace(r) }
func symbol(r rune) bool   { return unicode.IsPunct(r) || unicode.IsSymbol(r) }
func word(r rune) bool     { return unicode.IsLetter(r) || unicode.IsDigit(r) }
func flank(a, b rune) bool { return !gap(b) && (!symbol(b) || gap(a) || symbol(a)) }

// flanks reports whether marks between two characters may begin and end an emphasis, by the rules of CommonMark. An
// underscore inside a word does neither.
func flanks(mark byte, before, after rune) (opens, closes bool) {
	left, right := flank(before, after), flank(after, before)
	if mark != '_' {
		return left, right
	}
	return left && (!right || symbol(before)), right && (!left || symbol(after))
}

// link writes [text](address) and ![alt](address).
func (t *text) link(s string, l look, final bool, depth int) (n int, wait bool) {
	image := s[0] == '!'
	at := 0
	if image {
		at = 1
	}
	switch {
	case len(s) == at:
		return missing(s, final)
	case s[at] != '[' || depth == deepest:
		return 0, false
	}
	from := at + 1
	to, wait := bracket(s, at, '[', ']', final)
	switch {
	case to == 0:
		return 0, wait
	case to+1 == len(s):
		return 0, !final
	case s[to+1] != '(':
		return 0, false
	}
	end, wait := bracket(s, to+1, '(', ')', final)
	if end == 0 {
		return 0, wait
	}
	label, target := s[from:to], target(s[to+2:end])
	if image {
		l.role = theme.Dim
		t.spaced(l, "[image: "+oneLine(label)+"]")
		return end + 1, false
	}
	t.linked(label, target, l, depth)
	return end + 1, false
}

// bracket finds the closing bracket for the one at s[at]; 0 = it is not there or, with wait, not there yet.
func bracket(s string, at int, opens, closes byte, final bool) (end int, wait bool) {
	most := at + reach
	if strings.IndexByte(s[at:min(most, len(s))], closes) < 0 {
		return 0, !final && len(s) < most
	}
	for depth := 0; at < len(s) && at < most; at++ {
		switch s[at] {
		case '\\':
			at++
		case '`':
			if opens != '[' {
				continue
			}
			if from, to := codeSpan(s[at:], final); to > 0 {
				at += to + from - 1
			} else if _, wait := missing(s[at:], final); wait {
				return 0, true
			} else {
				at += run(s[at:]) - 1
			}
		case opens:
			depth++
		case closes:
			if depth--; depth == 0 {
				return at, false
			}
		}
	}
	return 0, !final && len(s) < most
}

// target returns the address in the parentheses of a link, without its title.
func target(s string) string {
	s = strings.TrimSpace(s)
	if inner, is := strings.CutPrefix(s, "<"); is {
		inner, _, _ = strings.Cut(inner, ">")
		return oneLine(inner)
	}
	s, _, _ = strings.Cut(oneLine(s), " ")
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// linked writes a link. It shows the address, too, unless the address is the text of the link.
func (t *text) linked(label, to string, l look, depth int) {
	l.role = theme.Link
	l = t.clickable(l, to)
	t.before = '['
	t.read(label, l, true, depth+1)
	if to == "" || strings.TrimRight(label, "/") == strings.TrimRight(to, "/") || "mailto:"+label == to {
		return
	}
	if u, err := neturl.Parse(l.url); l.url != "" && err == nil && u.Host != "" { // the link of the terminal has the rest
		to = u.Hostname()
	}
	t.f.blank()
	t.f.put(look{role: theme.Dim, attr: l.attr}, "("+to+")")
}

var schemes = []string{"https://", "http://", "mailto:"}

// safeURL returns an address in a form that is safe in OSC 8: printable ASCII with a known scheme; "" = it has none.
func safeURL(s string) string {
	lower := strings.ToLower(s)
	for _, scheme := range schemes {
		if strings.HasPrefix(lower, scheme) && len(s) < 2000 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return s
		}
	}
	return ""
}

var (
	autolink = lazyregexp.New(`^<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+)>`)
	lineEnd  = lazyregexp.New(`^(?i:<br ?/?>)`)
	entities = lazyregexp.New(`^&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});`)
)

// angle writes <https://an.address>, and breaks the line at <br>. Other tags stay as they are.
func (t *text) angle(s string, l look, final bool) (n int, wait bool) {
	end := strings.IndexAny(s[:min(len(s), reach)], "> \n")
	if end < 0 {
		return missing(s, final)
	}
	if br := lineEnd().FindString(s); br != "" {
		t.f.hard()
		return len(br), false
	}
	if len(s) < 6 && !final && strings.HasPrefix(strings.ToLower(s), "<br ") {
		return 0, true
	}
	m := autolink().FindStringSubmatch(s[:end+1])
	if m == nil {
		return 0, false
	}
	t.plainLink(m[1], l)
	return len(m[0]), false
}

// plainLink writes an address whose text is the address itself.
func (t *text) plainLink(to string, l look) {
	l.role = theme.Link
	t.f.put(t.clickable(l, to), to)
}

// clickable adds the address to a look where the terminal supports links.
func (t *text) clickable(l look, to string) look {
	if url := safeURL(to); t.o.Links && url != "" {
		t.links++
		l.url, l.id = url, t.links
	}
	return l
}

// entity writes a character that is given by name or number. It writes none that acts on a terminal.
func (t *text) entity(s string, l look, final bool) (n int, wait bool) {
	if m := entities().FindString(s); m != "" {
		if c := oneLine(redact.Terminal(html.UnescapeString(m))); c != "" {
			t.f.put(l, c)
		}
		return len(m), false
	}
	return 0, !final && len(s) < 34 && !strings.ContainsAny(s, "; \n")
}

// address writes a bare address in the text.
func (t *text) address(s string, l look, final bool) (n int, wait bool) {
	for _, begin := range []string{"https://", "http://"} {
		if len(s) < len(begin) && strings.HasPrefix(begin, s) && !final {
			return 0, true
		}
		if !strings.HasPrefix(s, begin) {
			continue
		}
		n = strings.IndexAny(s, " \n<>`\"|*")
		if n < 0 {
			if n = len(s); !final && n < reach {
				return 0, true
			}
		}
		whole := strings.TrimRight(s[:min(n, reach)], ".,:;!?'")
		for strings.HasSuffix(whole, ")") && strings.Count(whole, "(") < strings.Count(whole, ")") {
			whole = strings.TrimRight(whole[:len(whole)-1], ".,:;!?'")
		}
		whole = strings.ToValidUTF8(whole, "")
		if len(whole) <= len(begin) {
			return 0, false
		}
		t.plainLink(whole, l)
		return len(whole), false
	}
	return 0, false
}

// inlines formats a separate text, such as a cell, at a width, and returns its lines.
func inlines(s string, o Options, l look, width int, links *int) []string {
	f := &flow{theme: o.Theme, width: width}
	t := &text{f: f, o: &o, links: *links}
	t.read(s, l, true, 0)
	f.end()
	*links = t.links
	return f.out
}
