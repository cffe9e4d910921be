package search

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// matcher is a pattern with texts of which every match holds one. Most files hold none
// of them, and that is found out many times faster than by asking the pattern line by
// line.
type matcher struct {
	re    *regexp.Regexp
	texts [][]byte // nil = nothing is known
	fold  bool     // the texts are lower case, and upper case is as good
}

// maxTexts bounds how many texts are looked for: each costs a look at the file.
const maxTexts = 8

func newMatcher(re *regexp.Regexp) matcher {
	f := matcher{re: re}
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return f
	}
	n := requiredBy(tree.Simplify())
	if len(n.texts) == 0 || len(n.texts) > maxTexts || n.shortest() < 2 {
		return f
	}
	f.fold = n.fold
	for _, t := range n.texts {
		f.texts = append(f.texts, []byte(t))
	}
	return f
}

// possible reports whether some line of the text may match. lower is scratch space.
func (f matcher) possible(text []byte, lower *[]byte) bool {
	if f.texts == nil {
		return true
	}
	if f.fold {
		*lower = lowered((*lower)[:0], text)
		text = *lower
	}
	for _, t := range f.texts {
		if bytes.Contains(text, t) {
			return true
		}
	}
	return false
}

// lowered appends the text with A to Z in lower case.
func lowered(to, text []byte) []byte {
	n := len(to)
	to = append(to, text...)
	for i, c := range to[n:] {
		if c-'A' < 26 {
			to[n+i] = c + 'a' - 'A'
		}
	}
	return to
}

// requiredTexts is a set of texts of which every match holds one; no texts mean that none are known.
type requiredTexts struct {
	texts []string
	fold  bool
}

func (n requiredTexts) shortest() int {
	least := 1 << 20
	for _, t := range n.texts {
		least = min(least, len(t))
	}
	return least
}

func requiredBy(re *syntax.Regexp) requiredTexts {
	switch re.Op {
	case syntax.OpLiteral:
		return requiredByLiteral(re)
	case syntax.OpCapture, syntax.OpPlus:
		return requiredBy(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredBy(re.Sub[0])
		}
	case syntax.OpConcat:
		var best requiredTexts
		for _, sub := range re.Sub {
			if n := requiredBy(sub); len(n.texts) > 0 && (len(best.texts) == 0 || n.shortest() > best.shortest()) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all requiredTexts
		for i, sub := range re.Sub {
			n := requiredBy(sub)
			if len(n.texts) == 0 || i > 0 && n.fold != all.fold {
				return requiredTexts{}
			}
			all.texts, all.fold = append(all.texts, n.texts...), n.fold
		}
		return all
	}
	return requiredTexts{}
}

// requiredByLiteral leaves out what the file may hold in other bytes: U+FFFD stands for bytes
// that are no UTF-8, and where letter case does not count a k may be the sign for
// kelvin and an s the long one.
func requiredByLiteral(re *syntax.Regexp) requiredTexts {
	text := string(re.Rune)
	if re.Flags&syntax.FoldCase == 0 {
		if strings.ContainsRune(text, utf8.RuneError) {
			return requiredTexts{}
		}
		return requiredTexts{texts: []string{text}}
	}
	longest := ""
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if longest == "" {
		return requiredTexts{}
	}
	return requiredTexts{texts: []string{strings.ToLower(longest)}, fold: true}
}
