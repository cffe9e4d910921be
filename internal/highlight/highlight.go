// Package highlight divides source code into comments, strings, numbers, keywords and names of calls, for displays
// that colour it. Languages write those in few ways, so four families of languages and the diff are enough.
//
// A library was rejected: its languages and styles cost time and megabytes at every start of the program.
//
// Limits: the keywords of all languages count in each language, which does no harm. A string in single or double
// quotes must end on its line; otherwise it is ordinary text.
package highlight

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

// Kind classifies a piece of code.
type Kind uint8

// The kinds of pieces. Hunk, Added and Removed are lines of a diff.
const (
	Text    Kind = iota
	Comment      // with its marks
	String       // with its quotes
	Number
	Keyword
	Call    // a name before an opening parenthesis
	Tag     // the beginning of an HTML or XML tag, up to its name
	Hunk    // a line that names the files, or the place in them
	Added   // a line that was added
	Removed // a line that was removed
)

// Piece is a part of the code, of one kind.
type Piece struct {
	Kind Kind
	Text string
}

// Code is a block of code. It reads the lines of the block in order, because a comment or a string may span several.
type Code struct {
	family *family
	within string // the end mark of a comment or string that continues in the next line; "" for none
}

// New begins a block of code in a language, by the name that people write after the fence of a Markdown block. It
// returns nil for an unknown language.
func New(language string) *Code {
	name := strings.ToLower(language)
	for i := range families {
		if name != "" && !strings.Contains(name, " ") && strings.Contains(" "+families[i].names+" ", " "+name+" ") {
			return &Code{family: &families[i]}
		}
	}
	return nil
}

// family is the syntax of a group of languages.
type family struct {
	names   string
	comment string    // begins a comment that ends with the line
	block   [2]string // begin and end a comment of several lines
	quotes  string    // characters around strings; a string in backquotes may span lines
	triple  bool      // three quotes begin and end strings that span lines
	tags    bool      // HTML or XML
	diff    bool
}

var families = []family{
	{
		names: "go js javascript jsx ts typescript tsx mjs java c h cpp c++ cc hpp cs csharp " +
			"rs rust swift kotlin kt php scala dart groovy json jsonc json5 css scss less proto zig",
		comment: "//",
		block:   [2]string{"/*", "*/"},
		quotes:  "\"'`",
	},
	{
		names: "py python rb ruby sh bash shell zsh fish console yaml yml toml ini perl pl r make makefile " +
			"dockerfile docker elixir ex nix tf hcl conf",
		comment: "#",
		quotes:  `"'`,
		triple:  true,
	},
	{names: "sql sqlite postgresql mysql lua hs haskell elm ada", comment: "--", block: [2]string{"/*", "*/"}, quotes: `"'`},
	{names: "html xml svg vue svelte xhtml", block: [2]string{"<!--", "-->"}, quotes: `"'`, tags: true},
	{names: "diff patch", diff: true},
}

// keywords are the structural words and the plain types of most languages; SQL's are often in capitals.
const keywords = ` abstract and any as assert async await begin bool boolean break byte case catch chan char class const continue def ` +
	`default defer del delete do done double echo elif else elsif end enum esac except export extends extern false fi ` +
	`final finally float fn for foreach from func function global go goto if impl implements import in include instanceof ` +
	`int interface internal is lambda let local long loop map match mod module mut namespace new nil none not null of ` +
	`operator or override package pass private protected pub public raise range readonly record require return select ` +
	`self static string struct super switch then this throw throws trait true try type typedef typeof union unless unsafe ` +
	`until use using val var void volatile when where while with yield None True False ` +
	`ADD ALTER AND AS ASC BEGIN BY CASE COMMIT CREATE DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS FOREIGN FROM ` +
	`GROUP HAVING IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER PRIMARY REFERENCES ` +
	`RIGHT SELECT SET TABLE THEN UNION UNIQUE UPDATE VALUES VIEW WHEN WHERE WITH `

var (
	number = lazyregexp.New(`^(?:0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)`)
	tag    = lazyregexp.New(`^</?[A-Za-z][\w:-]*`)
)

// Pieces divides lines of the code. The texts of the pieces, joined, are the lines.
func (c *Code) Pieces(lines string) (out []Piece) {
	from := 0 // of the ordinary text before at
	for at := 0; at < len(lines); {
		kind, n := c.next(lines, at)
		if kind != Text {
			if from < at {
				out = append(out, Piece{Text, lines[from:at]})
			}
			out = append(out, Piece{kind, lines[at : at+n]})
			from = at + n
		}
		at += n
	}
	if from < len(lines) {
		out = append(out, Piece{Text, lines[from:]})
	}
	return out
}

// next returns the kind and the length of the piece that begins at a place.
func (c *Code) next(lines string, at int) (Kind, int) {
	f, s := c.family, lines[at:]
	if f.diff {
		return diffLine(s)
	}
	before, _ := utf8.DecodeLastRuneInString(lines[:at])
	inside := at > 0 && inWord(before)
	switch {
	case c.within != "" && c.within == f.block[1]:
		return Comment, c.until(c.within, s, 0)
	case c.within != "":
		return String, c.until(c.within, s, 0)
	case f.comment != "" && !inside && strings.HasPrefix(s, f.comment):
		return Comment, lineOf(s)
	case f.block[0] != "" && strings.HasPrefix(s, f.block[0]):
		return Comment, c.until(f.block[1], s, len(f.block[0]))
	case f.triple && (strings.HasPrefix(s, `"""`) || strings.HasPrefix(s, "'''")):
		return String, c.until(s[:3], s, 3)
	case s[0] == '`' && strings.Contains(f.quotes, "`"):
		return String, c.until("`", s, 1)
	case s[0] == '\\' && len(s) > 1 && strings.IndexByte(f.quotes, s[1]) >= 0: // else each of many would be searched for its end
		return Text, 2
	case strings.IndexByte(f.quotes, s[0]) >= 0:
		if n := quoted(s); n > 0 && (!inside || s[0] == '"' || f.triple) { // not the apostrophe of a word
			return String, n
		}
		return Text, 1
	case f.tags && s[0] == '<':
		if n := len(tag().FindString(s)); n > 0 {
			return Tag, n
		}
	case s[0] >= '0' && s[0] <= '9':
		return Number, len(number().FindString(s))
	}
	n := strings.IndexFunc(s, func(r rune) bool { return !inWord(r) })
	if n < 0 {
		n = len(s)
	}
	switch {
	case n == 0:
		_, size := utf8.DecodeRuneInString(s)
		return Text, size
	case before != '.' && strings.Contains(keywords, " "+s[:n]+" "): // behind a dot it names a member
		return Keyword, n
	case strings.HasPrefix(s[n:], "("):
		return Call, n
	}
	return Text, n
}

// until returns the length of the comment or string at the start of s. It looks for the end mark from a place on;
// without one, the comment or string continues in the next line.
func (c *Code) until(end, s string, from int) int {
	if i := strings.Index(s[from:], end); i >= 0 {
		c.within = ""
		return from + i + len(end)
	}
	c.within = end
	return len(s)
}

// quoted returns the length of the string at the start of s; 0 when it does not end on its line.
func quoted(s string) int {
	for i := 1; i < len(s) && s[i] != '\n'; i++ {
		switch s[i] {
		case '\\':
			if !strings.HasPrefix(s[i+1:], "\n") {
				i++
			}
		case s[0]:
			return i + 1
		}
	}
	return 0
}

// diffLine returns the kind of a line of a diff, and its length.
func diffLine(s string) (Kind, int) {
	n := lineOf(s)
	for _, begins := range []string{"@@", "diff ", "index ", "--- ", "+++ "} {
		if strings.HasPrefix(s, begins) {
			return Hunk, n
		}
	}
	switch s[0] {
	case '+':
		return Added, n
	case '-':
		return Removed, n
	}
	return Text, max(n, 1) // the end of the line before
}

// lineOf returns the length of the line at the start of s.
func lineOf(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '$' }
