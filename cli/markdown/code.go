package markdown

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/cli/theme"
)

// fence is a fenced block of code.
type fence struct {
	mark   byte
	marks  int
	indent int
	lang   language
	within string // the end of the comment or string that continues on the next line; "" = none
}

// openFence begins a block of code with its first line.
func (s *Stream) openFence(line string) {
	f := &fence{indent: indentOf(line)}
	line = line[f.indent:]
	f.mark, f.marks = line[0], run(line)
	name, _, _ := strings.Cut(strings.TrimSpace(line[f.marks:]), " ")
	f.lang = languages[strings.ToLower(strings.Trim(name, "{.}"))]
	s.fence = f
}

// code takes a line while a block of code is open: a line of code, or the end of the block. A line outside of the block's
// containers ends the block, too; for such a line code returns false.
func (s *Stream) code(line string) bool {
	rest := detab(line)
	for _, c := range s.stack {
		indent := indentOf(rest)
		switch inner, is, _ := quote(rest, indent, true); {
		case c.quote && is:
			rest = inner
		case !c.quote && (indent >= c.need || indent == len(rest)):
			rest = rest[min(indent, c.inside):]
		default:
			s.fence = nil
			return false
		}
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

// verbatim writes a line of pieces as they are. A line that is too long continues in the next row after a mark.
func (s *Stream) verbatim(pieces ...span) {
	f := &s.flow
	room := max(s.o.Width-ansi.StringWidthWc(f.lead), 1)
	f.start()
	used := 0
	for _, p := range pieces {
		from := 0
		for at := 0; at < len(p.text); {
			cluster, width := ansi.FirstGraphemeCluster(p.text[at:], ansi.WcWidth)
			if used+width > room && used > 0 {
				f.line.WriteString(f.paint(p.look, p.text[from:at]))
				f.newline()
				f.start()
				from, used = at, 0
				if room >= narrowest/2 {
					f.line.WriteString(f.paint(look{role: theme.Dim}, continued))
					used = ansi.StringWidthWc(continued)
				}
			}
			used += width
			at += len(cluster)
		}
		f.line.WriteString(f.paint(p.look, p.text[from:]))
	}
	f.newline()
}

// continued begins the row in which a line of code continues.
const continued = "↪ "

// language lists what the highlighter colours in the code of one language.
type language struct {
	comment string    // begins a comment up to the end of the line
	block   [2]string // begin and end a comment of several lines
	quotes  string    // characters around strings; a string in backquotes may have several lines
	triple  bool      // three quotes begin and end strings of several lines
	diff    bool
	words   []string
}

var languages = func() map[string]language {
	c := language{comment: "//", block: [2]string{"/*", "*/"}, quotes: "\"'`", words: strings.Fields(`any as async await
		bool boolean break case catch chan char class const continue def default defer delete do double else enum export
		extends extern false final finally float fn for from func function go goto if impl implements import in int interface
		is let long loop map match mod move mut namespace new nil null number object of override package private protected
		pub public range return select self static string struct super switch template this throw throws trait true try
		type typedef typeof union unsafe use using val var virtual void when where while with yield`)}
	script := language{comment: "#", quotes: "\"'", triple: true, words: strings.Fields(`and as assert async await begin
		break case class continue def del do done echo elif else end ensure esac except exit export false False fi finally for
		from function global if import in is lambda local module nil None nonlocal not null or pass raise require rescue
		return self then true True try unless until while with yield`)}
	sql := language{comment: "--", block: [2]string{"/*", "*/"}, quotes: "'\"", words: strings.Fields(`ADD ALTER AND AS ASC BEGIN
		BY CASE COMMIT CREATE DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS FOREIGN FROM GROUP HAVING IN INDEX INNER INSERT
		INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER PRIMARY REFERENCES RIGHT SELECT SET TABLE THEN UNION
		UNIQUE UPDATE VALUES VIEW WHEN WHERE WITH`)}
	for _, w := range sql.words {
		sql.words = append(sql.words, strings.ToLower(w))
	}
	out := map[string]language{"diff": {diff: true}, "patch": {diff: true}, "json": {quotes: `"`, words: []string{"true", "false", "null"}}}
	for names, l := range map[string]language{
		"go js jsx ts tsx javascript typescript java c h cpp c++ cs csharp rust rs kotlin kt swift php scala dart css jsonc": c,
		"python py ruby rb sh bash zsh shell console yaml yml toml ini perl make makefile dockerfile":                        script,
		"sql sqlite postgresql mysql": sql,
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = l
		}
	}
	return out
}()

// spans are the pieces of a line of code.
func (f *fence) spans(line string) (out []span) {
	plain := theme.Text
	if f.lang.diff {
		switch {
		case strings.HasPrefix(line, "+"):
			plain = theme.Added
		case strings.HasPrefix(line, "-"):
			plain = theme.Removed
		case strings.HasPrefix(line, "@@"):
			plain = theme.Dim
		}
		return []span{{look{role: plain}, line}}
	}
	from := 0
	put := func(role theme.Role, at, to int) {
		if from < at {
			out = append(out, span{look{role: plain}, line[from:at]})
		}
		if at < to {
			out = append(out, span{look{role: role}, line[at:to]})
		}
		from = to
	}
	for at := 0; at < len(line); {
		role, n := f.token(line[at:], at > 0 && (word(rune(line[at-1])) || line[at-1] == '_'))
		if role != plain {
			put(role, at, at+n)
		}
		at += n
	}
	put(plain, len(line), len(line))
	return out
}

// token returns the role and the length of the first token of a piece of code. inside reports that the piece begins within
// a word.
func (f *fence) token(s string, inside bool) (theme.Role, int) {
	l := f.lang
	rest := func(end string, from int) int { // the length of a string or comment that may have several lines
		if i := strings.Index(s[from:], end); i >= 0 {
			f.within = ""
			return from + i + len(end)
		}
		f.within = end
		return len(s)
	}
	switch {
	case f.within != "":
		role := theme.Success
		if f.within == l.block[1] {
			role = theme.Dim
		}
		return role, rest(f.within, 0)
	case l.comment != "" && strings.HasPrefix(s, l.comment) && !inside:
		return theme.Dim, len(s)
	case l.block[0] != "" && strings.HasPrefix(s, l.block[0]):
		return theme.Dim, rest(l.block[1], len(l.block[0]))
	case l.triple && len(s) > 2 && (s[:3] == `"""` || s[:3] == "'''"):
		return theme.Success, rest(s[:3], 3)
	case s[0] == '`' && strings.Contains(l.quotes, "`"):
		return theme.Success, rest("`", 1)
	case strings.IndexByte(l.quotes, s[0]) >= 0 && !inside:
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case s[0]:
				return theme.Success, i + 1
			}
		}
		return theme.Text, 1
	}
	n := strings.IndexFunc(s, func(r rune) bool { return !word(r) && r != '_' })
	switch {
	case n < 0:
		n = len(s)
	case n == 0:
		return theme.Text, len(string(first(s)))
	}
	switch {
	case l.quotes == "" || inside:
	case unicode.IsDigit(first(s)):
		return theme.Warning, n
	case slices.Contains(l.words, s[:n]):
		return theme.Accent, n
	}
	return theme.Text, n
}
