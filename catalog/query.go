package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
)

// ErrQuery is wrapped by errors about a query that cannot be looked for.
var ErrQuery = errors.New("nothing to look for")

// Scopes are the places that a query can be narrowed to: the two histories, what
// tools were given and gave back, and paths of files.
var Scopes = api.Scopes

// Query is what a search looks for: a message must have every term, in any case, also
// as a part of a word.
type Query struct {
	terms  []string // folded
	plain  [][]byte // those of terms that a text's bytes have as they are, save for ASCII's case
	phrase string   // all of it, folded
	scopes []string
	names  bool // terms are names of tools, and are one whole
}

// Parse reads a query: words between blanks, or in double quotes a phrase. in narrows
// it to a union of Scopes; none is all of them.
func Parse(text string, in ...string) (Query, error) {
	q := Query{scopes: in}
	for _, s := range in {
		if !slices.Contains(Scopes, s) {
			return q, fmt.Errorf("%w in %q: there are %s", ErrQuery, s, strings.Join(Scopes, ", "))
		}
	}
	text = fold(text)
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		var term string
		end := -1
		if rest[0] == '"' {
			end = strings.IndexByte(rest[1:], '"')
		}
		if end > 0 {
			term, rest = rest[1:1+end], rest[2+end:]
		} else if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
			term, rest = rest[:i], rest[i:]
		} else {
			term, rest = rest, ""
		}
		if !slices.Contains(q.terms, term) {
			q.terms = append(q.terms, term)
			if !strings.ContainsFunc(term, cased) {
				q.plain = append(q.plain, []byte(term))
			}
		}
	}
	q.phrase = strings.Join(q.terms, " ")
	if strings.TrimSpace(q.phrase) == "" {
		return q, fmt.Errorf("%w: the query is empty", ErrQuery)
	}
	return q, nil
}

// Used is the query for messages that call a tool, by whichever spelling of its name:
// read_file and readFile are one.
func Used(tool string) Query {
	name := toolName(tool)
	return Query{terms: []string{name}, phrase: name, names: true}
}

// Touched is the query for messages that ask a tool for a file whose path holds this.
func Touched(path string) Query {
	path = fold(path)
	q := Query{terms: []string{path}, phrase: path, scopes: []string{"path"}}
	if !strings.ContainsFunc(path, cased) {
		q.plain = [][]byte{[]byte(path)}
	}
	return q
}

// Hit is a message that holds a query.
type Hit struct {
	History string
	Number  int
	TS      int64
	Kind    string
	Snippet string // one line around the first term
	Score   int    // among the hits of one task; more is better, at most bestScore
	Place   int    // of its message
}

// What makes a hit better than another of its task.
const (
	wholePhrase = 4 // it has the query as typed
	wholeWord   = 2 // its first word is not the part of a longer one
	saidWords   = 1 // it is from the person or the model, not from a tool
	bestScore   = wholePhrase + wholeWord + saidWords
)

// Rank is the order of the hits of one task: the better first, then in the order of the task.
func Rank(a, b Hit) int { return cmp.Or(b.Score-a.Score, a.Place-b.Place) }

// Match judges a message.
func (q Query) Match(m Message) (Hit, bool) {
	hit := Hit{History: m.History, Number: m.Number, TS: m.TS, Place: m.Place}
	var folded []string
	for _, p := range m.Pieces {
		text := ""
		if q.looksInto(m, p) {
			text = fold(p.Text)
		}
		folded = append(folded, text)
	}
	for i, term := range q.terms {
		at := slices.IndexFunc(folded, func(s string) bool { return strings.Contains(s, term) && (!q.names || s == term) })
		if at < 0 {
			return Hit{}, false
		}
		if i > 0 {
			continue
		}
		// A piece that holds all of it is shown before one that holds its first word.
		if whole := slices.IndexFunc(folded, func(s string) bool { return strings.Contains(s, q.phrase) }); whole >= 0 {
			at, term = whole, q.phrase
			hit.Score += wholePhrase
		}
		p := m.Pieces[at]
		place := strings.Index(folded[at], term)
		if wordAt(folded[at], place, len(term)) {
			hit.Score += wholeWord
		}
		if p.Class == Words {
			hit.Score += saidWords
		}
		hit.Kind, hit.Snippet = p.Kind, snippet(p.Text, folded[at], place, len(term))
	}
	return hit, true
}

// holding has a bit for each of some terms that a text has; its ASCII letters are small.
func holding(lower []byte, terms [][]byte) (has uint64) {
	for i, term := range terms {
		if bytes.Contains(lower, term) {
			has |= 1 << i
		}
	}
	return has
}

// cased reports whether a rune may be spelled in other bytes in a text that holds it.
func cased(c rune) bool {
	return c >= utf8.RuneSelf && (c == utf8.RuneError || unicode.SimpleFold(c) != c)
}

func (q Query) looksInto(m Message, p Piece) bool {
	if q.names || p.Class == Called {
		return q.names && p.Class == Called
	}
	if len(q.scopes) == 0 {
		return true
	}
	for _, s := range q.scopes {
		if s == m.History || s == "tool" && p.Class != Words || s == "path" && p.Class == Path {
			return true
		}
	}
	return false
}

// wanted is what a part must have to hold the query.
func (q Query) wanted() wanted {
	var w wanted
	for _, term := range q.terms {
		w.want(term)
	}
	return w
}

// wordAt reports whether no letter or digit touches a stretch of a text.
func wordAt(s string, at, n int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+n:])
	letter := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' }
	return !letter(before) && !letter(after)
}

// snippet is one line of text around a place, which is given in the folded text.
func snippet(text, folded string, at, n int) string {
	const before, after = 50, 110
	runes := utf8.RuneCountInString(folded[:at])
	if len(text) != len(folded) { // some rune's lower case is longer or shorter
		at = byteOf(text, runes)
		n = byteOf(text[at:], utf8.RuneCountInString(folded[byteOf(folded, runes):][:n]))
	}
	from, to := at, at+n
	for i := 0; i < before && from > 0; i++ {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	for i := 0; i < after && to < len(text); i++ {
		_, size := utf8.DecodeRuneInString(text[to:])
		to += size
	}
	to = min(to, from+4000) // a term may be very long
	out := strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "\uFFFD")), " ")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// byteOf is where rune n of a text begins.
func byteOf(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
