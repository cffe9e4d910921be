package workspace

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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
