package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/inputfile"
)

// IgnoreFile is the name of the rules file in the root. Files of that name
// further down mean nothing.
const IgnoreFile = ".rooignore"

// maxIgnore bounds the rules file in bytes, and maxAlike the rules with one tail: a name is compared with all of them.
const (
	maxIgnore = 1 << 20
	maxAlike  = 20_000
)

// maxTail is the number of bytes at the end of a name by which rules are found.
const maxTail = 32

// Ignore is a compiled set of gitignore rules. The zero value and nil hide nothing. It is immutable.
type Ignore struct {
	rules []rule
	tails map[string][]int // the places in rules, by the last bytes of what follows a rule's last special character
	fold  bool
}

// ParseIgnore compiles the text of a gitignore file. It cannot fail: a line that
// makes no sense matches nothing, as in git. Unlike git, a bracket expression
// cannot reach over a "/", and one character is a character, not a byte.
func ParseIgnore(text string, foldCase bool) *Ignore {
	ig := &Ignore{tails: map[string][]int{}, fold: foldCase}
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if r, ok := parseRule(strings.TrimSuffix(line, "\r"), foldCase); ok {
			name := r.segs[len(r.segs)-1]
			tail := name[strings.LastIndexAny(name, `*?[]\`)+1:]
			tail = tail[max(0, len(tail)-maxTail):]
			ig.tails[tail] = append(ig.tails[tail], len(ig.rules))
			ig.rules = append(ig.rules, r)
		}
	}
	return ig
}

// Hides reports whether a path (relative, "/" between names, no "." or "..") is hidden, itself or through a folder
// that holds it. As in git, no later rule can show a file of a hidden folder again.
func (ig *Ignore) Hides(rel string, dir bool) bool {
	if !ig.Any() {
		return false
	}
	parts := ig.splitPath(rel)
	for n := 1; n <= len(parts); n++ {
		if ig.verdict(parts[:n], n < len(parts) || dir) > 0 {
			return true
		}
	}
	return false
}

// Decide judges a single name without looking at its parents: +1 hidden, -1 shown again by a "!" rule, 0 not
// mentioned. It is for walks from the top down, with the rules of several files.
func (ig *Ignore) Decide(rel string, dir bool) int {
	if ig == nil {
		return 0
	}
	return ig.verdict(ig.splitPath(rel), dir)
}

func (ig *Ignore) verdict(parts []string, dir bool) int {
	if len(parts) == 1 && parts[0] == "" {
		return 0 // the root is no name
	}
	name, last := parts[len(parts)-1], -1
	for n := max(0, len(name)-maxTail); n <= len(name); n++ {
		for _, i := range slices.Backward(ig.tails[name[n:]]) {
			if i < last || ig.rules[i].match(parts, dir) {
				last = max(i, last)
				break
			}
		}
	}
	switch {
	case last < 0:
		return 0
	case ig.rules[last].negate:
		return -1
	}
	return 1
}

// Ignore returns the rules that .rooignore holds on disk now. Without the file, or with an empty one, there are no
// rules; otherwise the file also hides itself. It fails if the file exists and cannot be read, because what it hides
// is then unknown.
func (w *Workspace) Ignore() (*Ignore, error) {
	rules, err := w.ignore()
	if err != nil {
		return nil, fmt.Errorf("read %s of workspace %s: %w; nothing is opened until it can be read", IgnoreFile, w.root, err)
	}
	return rules, nil
}

func (w *Workspace) ignore() (*Ignore, error) {
	f, err := inputfile.Open(filepath.Join(w.root, IgnoreFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Ignore{}, nil
	case errors.Is(err, inputfile.ErrIrregular):
		return nil, ErrNotRegular
	case err != nil:
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxIgnore:
		return nil, fmt.Errorf("it is larger than %d bytes", maxIgnore)
	case bytes.IndexByte(text, 0) >= 0:
		return nil, errors.New("it is not text in UTF-8") // Windows' PowerShell writes UTF-16
	case len(text) == 0:
		return &Ignore{}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rules == nil || w.rulesText != string(text) {
		rules := ParseIgnore(string(text)+"\n"+IgnoreFile, true)
		for _, places := range rules.tails {
			if len(places) > maxAlike {
				return nil, fmt.Errorf("more than %d of its rules end alike", maxAlike)
			}
		}
		w.rules, w.rulesText = rules, string(text)
	}
	return w.rules, nil
}

var protected = ParseIgnore(".git\nHEAD\n.rooignore\n.roomodes\n.roorules*\n.clinerules*\n.roo/**\n.vscode/**\n*.code-workspace\n.rooprotected\nAGENTS.md\nAGENT.md\n.agents/**\n", true)

// Any reports whether there are rules at all.
func (ig *Ignore) Any() bool { return ig != nil && len(ig.rules) > 0 }

// rule is one line of a gitignore file.
type rule struct {
	segs    []string // patterns of path.Match for the names between slashes; anyNames = any number of names
	negate  bool
	dirOnly bool
}

const anyNames = "**"

// splitPath returns the names of a path, as rules are compared with them.
func (ig *Ignore) splitPath(rel string) []string {
	if ig.fold {
		rel = strings.Map(foldRune, rel)
	}
	return strings.Split(strings.TrimSuffix(rel, "/"), "/")
}

func parseRule(line string, fold bool) (r rule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line, r.negate = strings.CutPrefix(trimBlanks(line), "!")
	if oddBackslashes(line) {
		return r, false // escapes nothing: git never matches it
	}
	line, r.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return r, false
	}
	if !strings.Contains(line, "/") {
		r.segs = append(r.segs, anyNames)
	}
	parts := strings.Split(strings.TrimPrefix(line, "/"), "/")
	for i, part := range parts {
		if len(part) > 1 && strings.Trim(part, "*") == "" { // "***" too, as in git
			r.segs = append(r.segs, anyNames)
			if i == len(parts)-1 { // at the end it means "everything inside": at least one name
				r.segs = append(r.segs, "*")
			}
			continue
		}
		seg, ok := segmentPattern(part, fold)
		if !ok {
			return r, false
		}
		r.segs = append(r.segs, seg)
	}
	return r, true
}

// trimBlanks drops blanks at the end, but keeps an escaped one.
func trimBlanks(s string) string {
	t := strings.TrimRightFunc(s, unicode.IsSpace)
	if t != s && oddBackslashes(t) {
		_, size := utf8.DecodeRuneInString(s[len(t):])
		return t + s[len(t):len(t)+size]
	}
	return t
}

func oddBackslashes(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// segmentPattern translates one name of a rule to a pattern of path.Match. Only bracket expressions differ. false: the
// rule matches nothing.
func segmentPattern(s string, fold bool) (string, bool) {
	var b strings.Builder
	for s != "" {
		_, n := utf8.DecodeRuneInString(s)
		switch s[0] {
		case '[':
			class, size, ok := classPattern(s[1:], fold)
			if !ok {
				return "", false
			}
			b.WriteString(class)
			s = s[1+size:]
			continue
		case '\\':
			if len(s) == 1 {
				return "", false
			}
			_, n = utf8.DecodeRuneInString(s[1:])
			n++
		}
		name := s[:n]
		if fold {
			name = strings.Map(foldRune, name)
		}
		b.WriteString(name)
		s = s[n:]
	}
	return b.String(), true
}

// foldRune gives letters that differ in case alone the same form.
func foldRune(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// match reports whether the rule names exactly this path. It is enough to return to the last "**", so the time grows
// at most with the square of the number of names.
func (r *rule) match(parts []string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	p, s := 0, 0
	backP, backS := -1, -1
	for p < len(parts) {
		if s < len(r.segs) && r.segs[s] == anyNames {
			if s++; s == len(r.segs)-1 {
				p = len(parts) - 1 // the last pattern can only match the last name
			}
			backP, backS = p, s-1
			continue
		}
		if s < len(r.segs) {
			if ok, _ := path.Match(r.segs[s], parts[p]); ok { // a pattern that cannot be used matches nothing
				p++
				s++
				continue
			}
		}
		if backS < 0 {
			return false
		}
		backP++
		p, s = backP, backS+1
	}
	return !slices.ContainsFunc(r.segs[s:], func(seg string) bool { return seg != anyNames })
}

// classPattern writes what follows "[", such as a-z], !x] or [:digit:]], for path.Match, and returns how many bytes it
// used. An unclosed bracket is not a class, and then the whole line matches nothing.
func classPattern(s string, fold bool) (pattern string, used int, ok bool) {
	out, i := "[", 0
	if strings.HasPrefix(s, "!") || strings.HasPrefix(s, "^") {
		out, i = "[^", 1
	}
	for first := true; i < len(s); first = false {
		if s[i] == ']' && !first {
			return out + "]", i + 1, true
		}
		if name, _, found := strings.Cut(s[i:], ":]"); found && strings.HasPrefix(name, "[:") {
			ranges, known := posixClasses[name[2:]]
			if !known {
				return "", 0, false
			}
			if fold && name == "[:upper" {
				ranges = posixClasses["lower"]
			}
			out += ranges
			i += len(name) + 2
			continue
		}
		lo, n := classRune(s[i:])
		i += n
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			hi, n = classRune(s[i+1:])
			i += 1 + n
		}
		if lo == "" || hi == "" {
			return "", 0, false
		}
		out += `\` + lo + `-\` + hi
		if fold { // the range as it is, too: [A-z] has an underscore
			out += `\` + strings.Map(foldRune, lo) + `-\` + strings.Map(foldRune, hi)
		}
	}
	return "", 0, false
}

// classRune returns the character at the beginning of s, and its length with its backslash; "" for a backslash alone.
func classRune(s string) (char string, used int) {
	rest := strings.TrimPrefix(s, `\`)
	_, n := utf8.DecodeRuneInString(rest)
	return rest[:n], len(s) - len(rest) + n
}

// posixClasses are ranges for path.Match. All characters beyond ASCII count as letters, except the non-letters of
// Latin-1; beyond ASCII, only letters of Latin-1 have a case.
var posixClasses = map[string]string{
	"alnum":  "0-9A-Za-z\u00aa\u00b5\u00ba\u00c0-\U0010ffff",
	"alpha":  "A-Za-z\u00aa\u00b5\u00ba\u00c0-\U0010ffff",
	"blank":  " \t",
	"cntrl":  "\x01-\x1f\x7f\u0080-\u009f",
	"digit":  "0-9",
	"graph":  "!-~\u00a1-\U0010ffff",
	"lower":  "a-z\u00df-\u00f6\u00f8-\u00ff",
	"print":  " -~\u00a1-\U0010ffff",
	"punct":  "!-/:-@\\[-`{-~",
	"space":  "\t-\r \u0085\u00a0\u2028\u2029\u3000",
	"upper":  "A-Z\u00c0-\u00d6\u00d8-\u00de",
	"xdigit": "0-9A-Fa-f",
}
