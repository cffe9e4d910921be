package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IgnoreFile is the name of the rules file in the root. Files of that name
// further down mean nothing.
const IgnoreFile = ".rooignore"

// maxIgnore bounds the rules file in bytes.
const maxIgnore = 1 << 20

// Ignore is a compiled set of gitignore rules. The zero value and nil hide
// nothing. It never changes after it was made.
type Ignore struct{ rules []rule }

// ParseIgnore compiles the text of a gitignore file. It cannot fail: a line that
// makes no sense matches nothing, as in git. Unlike git, a bracket expression
// cannot reach over a "/", and one character is a character, not a byte.
func ParseIgnore(text string, foldCase bool) *Ignore {
	ig := &Ignore{}
	for _, line := range splitLines(text) {
		if r, ok := parseRule(line, foldCase); ok {
			ig.rules = append(ig.rules, r)
		}
	}
	return ig
}

// Hides reports whether a path (relative, "/" between names, no "." or "..") is
// hidden, itself or through a folder that holds it. A file in a hidden folder
// cannot be shown again by a later rule, as in git.
func (ig *Ignore) Hides(rel string, dir bool) bool {
	if ig == nil || len(ig.rules) == 0 {
		return false
	}
	parts := splitPath(rel)
	for n := 1; n <= len(parts); n++ {
		if ig.verdict(parts[:n], n < len(parts) || dir) > 0 {
			return true
		}
	}
	return false
}

// Decide judges a single name without looking at its parents: +1 hidden,
// -1 shown again by a "!" rule, 0 not mentioned. Walkers that go from the top
// down use it, with the rules of several files.
func (ig *Ignore) Decide(rel string, dir bool) int {
	if ig == nil {
		return 0
	}
	return ig.verdict(splitPath(rel), dir)
}

func (ig *Ignore) verdict(parts []string, dir bool) int {
	for i := len(ig.rules) - 1; i >= 0; i-- {
		r := &ig.rules[i]
		if r.match(parts, dir) {
			if r.negate {
				return -1
			}
			return 1
		}
	}
	return 0
}

// Ignore gives the rules of .rooignore as they are on disk now. No file or an
// empty one means no rules; otherwise the file hides itself too. If the file is
// there and cannot be read this is an error, because then it is unknown what the file hides.
func (w *Workspace) Ignore() (*Ignore, error) {
	rules, err := w.ignore()
	if err != nil {
		return nil, fmt.Errorf("read %s of workspace %s: %w; nothing is opened until it can be read", IgnoreFile, w.root, err)
	}
	return rules, nil
}

func (w *Workspace) ignore() (*Ignore, error) {
	name := join(w.root, IgnoreFile)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Ignore{}, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	case info.Size() > maxIgnore:
		return nil, fmt.Errorf("it is larger than %d bytes", maxIgnore)
	}
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0:
		return &Ignore{}, nil
	case err != nil:
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rules == nil || w.rulesText != string(text) {
		w.rules, w.rulesText = ParseIgnore(string(text)+"\n"+IgnoreFile, true), string(text)
	}
	return w.rules, nil
}

var protected = ParseIgnore(".git\nHEAD\n.rooignore\n.roomodes\n.roorules*\n.clinerules*\n.roo/**\n.vscode/**\n*.code-workspace\n.rooprotected\nAGENTS.md\nAGENT.md\n.agents/**\n", true)

// Protected reports whether a path (relative to the root, "/" between names) is
// one that steers agents, editors or git, and so is write-protected.
func Protected(rel string) bool {
	return protected.Hides(rel, false) || protected.Hides(plainNames(rel), false)
}

// Any reports whether there are rules at all.
func (ig *Ignore) Any() bool { return ig != nil && len(ig.rules) > 0 }

// rule is one line of a gitignore file: names between slashes, where nil means
// "**".
type rule struct {
	segs    [][]token
	negate  bool
	dirOnly bool
	fold    bool
}

// token matches one character of a name, or any run of them.
type token struct {
	kind  tokenKind
	r     rune
	class *class
}

type tokenKind uint8

const (
	literal tokenKind = iota
	anyOne            // ?
	anyRun            // *
	oneOf             // [...]
)

func splitLines(text string) []string {
	text = strings.TrimPrefix(text, "\ufeff")
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

func splitPath(rel string) []string {
	rel = strings.TrimSuffix(rel, "/")
	if rel == "" {
		return nil
	}
	return strings.Split(rel, "/")
}

func parseRule(line string, fold bool) (rule, bool) {
	r := rule{fold: fold}
	if line == "" || line[0] == '#' {
		return r, false
	}
	line = trimBlanks(line)
	if line == "" {
		return r, false
	}
	if line[0] == '!' {
		r.negate = true
		line = line[1:]
	}
	if oddBackslashes(line) {
		return r, false // escapes nothing: git never matches it
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly = true
		line = line[:len(line)-1]
	}
	if line == "" {
		return r, false
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if !anchored {
		r.segs = append(r.segs, nil)
	}
	parts := strings.Split(line, "/")
	for i, part := range parts {
		if len(part) > 1 && strings.Trim(part, "*") == "" { // "***" too, as in git
			if i == len(parts)-1 {
				// At the end it means "everything inside": at least one name.
				r.segs = append(r.segs, nil, []token{{kind: anyRun}})
			} else {
				r.segs = append(r.segs, nil)
			}
			continue
		}
		toks, ok := parseSegment(part, fold)
		if !ok {
			return r, false
		}
		r.segs = append(r.segs, toks)
	}
	return r, true
}

// trimBlanks drops blanks at the end unless the first of them is escaped; then
// that one stays.
func trimBlanks(s string) string {
	t := strings.TrimRightFunc(s, unicode.IsSpace)
	if t != s && oddBackslashes(t) {
		_, size := utf8.DecodeRuneInString(s[len(t):])
		return t + s[len(t):len(t)+size]
	}
	return t
}

func oddBackslashes(s string) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func parseSegment(s string, fold bool) ([]token, bool) {
	toks := []token{} // never nil: nil is "**"
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch c {
		case '?':
			toks = append(toks, token{kind: anyOne})
		case '*':
			if n := len(toks); n == 0 || toks[n-1].kind != anyRun {
				toks = append(toks, token{kind: anyRun})
			}
		case '[':
			cl, n, ok := parseClass(s[i:], fold)
			if !ok {
				return nil, false
			}
			i += n
			toks = append(toks, token{kind: oneOf, class: cl})
		case '\\':
			if i == len(s) {
				return nil, false
			}
			c, size = utf8.DecodeRuneInString(s[i:])
			i += size
			toks = append(toks, token{r: foldRune(c, fold)})
		default:
			toks = append(toks, token{r: foldRune(c, fold)})
		}
	}
	return toks, true
}

func foldRune(r rune, fold bool) rune {
	if !fold {
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// match reports whether the rule names exactly this path. Going back only to the
// last "**" is enough, so the time is at most names times names.
func (r *rule) match(parts []string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	p, s := 0, 0
	backP, backS := -1, -1
	for p < len(parts) {
		if s < len(r.segs) && r.segs[s] == nil {
			backP, backS = p, s
			s++
			continue
		}
		if s < len(r.segs) && matchSegment(r.segs[s], parts[p], r.fold) {
			p++
			s++
			continue
		}
		if backS < 0 {
			return false
		}
		backP++
		p, s = backP, backS+1
	}
	for s < len(r.segs) && r.segs[s] == nil {
		s++
	}
	return s == len(r.segs)
}

func matchSegment(toks []token, name string, fold bool) bool {
	i, t := 0, 0
	backI, backT := -1, -1
	for i < len(name) {
		if t < len(toks) && toks[t].kind == anyRun {
			backI, backT = i, t
			t++
			continue
		}
		c, size := utf8.DecodeRuneInString(name[i:])
		if t < len(toks) && toks[t].one(c, fold) {
			i += size
			t++
			continue
		}
		if backT < 0 {
			return false
		}
		_, size = utf8.DecodeRuneInString(name[backI:])
		backI += size
		i, t = backI, backT+1
	}
	for t < len(toks) && toks[t].kind == anyRun {
		t++
	}
	return t == len(toks)
}

func (t token) one(c rune, fold bool) bool {
	switch t.kind {
	case anyOne:
		return true
	case oneOf:
		return t.class.has(c, fold)
	}
	return t.r == foldRune(c, fold)
}

// class is a bracket expression such as [a-z], [!x] or [[:digit:]].
type class struct {
	negate bool
	ranges []runeRange
	tests  []func(rune) bool
}

type runeRange struct{ lo, hi rune }

// parseClass parses what follows "[" and returns how many bytes it used. An
// unclosed bracket is not a class, and then the whole line matches nothing.
func parseClass(s string, fold bool) (*class, int, bool) {
	c := &class{}
	i := 0
	if strings.HasPrefix(s, "!") || strings.HasPrefix(s, "^") {
		c.negate = true
		i++
	}
	first := true
	for i < len(s) {
		if s[i] == ']' && !first {
			return c, i + 1, true
		}
		first = false
		if strings.HasPrefix(s[i:], "[:") {
			if name, _, ok := strings.Cut(s[i+2:], ":]"); ok {
				test, known := posixClasses[name]
				if !known {
					return nil, 0, false
				}
				if fold && (name == "upper" || name == "lower") {
					test = func(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) }
				}
				c.tests = append(c.tests, test)
				i += len(name) + 4
				continue
			}
		}
		lo, n, ok := classRune(s[i:])
		if !ok {
			return nil, 0, false
		}
		i += n
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			if hi, n, ok = classRune(s[i+1:]); !ok {
				return nil, 0, false
			}
			i += 1 + n
		}
		c.ranges = append(c.ranges, runeRange{lo, hi})
	}
	return nil, 0, false
}

func classRune(s string) (rune, int, bool) {
	r, n := utf8.DecodeRuneInString(s)
	if r != '\\' {
		return r, n, true
	}
	if n == len(s) {
		return 0, 0, false
	}
	r, m := utf8.DecodeRuneInString(s[n:])
	return r, n + m, true
}

func (c *class) has(r rune, fold bool) bool {
	in := c.holds(r)
	if fold && !in {
		in = c.holds(unicode.ToLower(r)) || c.holds(unicode.ToUpper(r))
	}
	return in != c.negate
}

func (c *class) holds(r rune) bool {
	for _, g := range c.ranges {
		if g.lo <= r && r <= g.hi {
			return true
		}
	}
	for _, t := range c.tests {
		if t(r) {
			return true
		}
	}
	return false
}

var posixClasses = map[string]func(rune) bool{
	"alnum":  func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	"alpha":  unicode.IsLetter,
	"blank":  func(r rune) bool { return r == ' ' || r == '\t' },
	"cntrl":  unicode.IsControl,
	"digit":  func(r rune) bool { return r >= '0' && r <= '9' },
	"graph":  func(r rune) bool { return unicode.IsGraphic(r) && r != ' ' },
	"lower":  unicode.IsLower,
	"print":  unicode.IsPrint,
	"punct":  func(r rune) bool { return r < 128 && (unicode.IsPunct(r) || unicode.IsSymbol(r)) },
	"space":  unicode.IsSpace,
	"upper":  unicode.IsUpper,
	"xdigit": func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) },
}
