package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrQuery is wrapped by errors about a query that cannot be looked for.
var ErrQuery = errors.New("nothing to look for")

// Scopes are the places that a query can be narrowed to: the two histories, what
// tools were given and gave back, and paths of files.
var Scopes = []string{HistoryUI, HistoryAPI, "tool", "path"}

// Query is what is looked for: every term must stand in a message, in any case, also
// inside words.
type Query struct {
	terms  []string // folded
	plain  [][]byte // those of terms that stand in a text's bytes as they are, save for ASCII's case
	phrase string   // all of it, folded
	scopes []string
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

// Hit is a message that holds a query.
type Hit struct {
	History string
	Number  int
	TS      int64
	Kind    string
	Snippet string // one line around the first term
	Score   int    // among the hits of one task; more is better
}

// Match judges a message.
func (q Query) Match(m Message) (Hit, bool) {
	hit := Hit{History: m.History, Number: m.Number, TS: m.TS}
	var folded []string
	for _, p := range m.Pieces {
		text := ""
		if q.looksInto(m, p) {
			text = fold(p.Text)
		}
		folded = append(folded, text)
	}
	for i, term := range q.terms {
		at := slices.IndexFunc(folded, func(s string) bool { return strings.Contains(s, term) })
		if at < 0 {
			return Hit{}, false
		}
		if i > 0 {
			continue
		}
		// A piece that holds all of it is shown before one that holds its first word.
		if whole := slices.IndexFunc(folded, func(s string) bool { return strings.Contains(s, q.phrase) }); whole >= 0 {
			at, term = whole, q.phrase
			hit.Score += 4
		}
		p := m.Pieces[at]
		place := strings.Index(folded[at], term)
		if wordAt(folded[at], place, len(term)) {
			hit.Score += 2
		}
		if p.Class == Words {
			hit.Score++
		}
		hit.Kind, hit.Snippet = p.Kind, snippet(p.Text, folded[at], place, len(term))
	}
	return hit, true
}

// mayHold tells from bytes in which ASCII letters are small whether a message among
// them may hold the query.
func (q Query) mayHold(lower []byte) bool {
	for _, term := range q.plain {
		if !bytes.Contains(lower, term) {
			return false
		}
	}
	return true
}

// cased reports whether a rune may be spelled in other bytes in a text that holds it.
func cased(c rune) bool {
	return c >= utf8.RuneSelf && (c == utf8.RuneError || unicode.SimpleFold(c) != c)
}

func (q Query) looksInto(m Message, p Piece) bool {
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

// grams is the query for the full-text table, "" when no term is long enough.
func (q Query) grams() string {
	const most = 24 // more do not narrow any further
	var list []string
	for _, term := range q.terms {
		all := wanted(term)
		step := max(1, (len(all)+most-1)/most)
		for i := 0; i < len(all); i += step {
			list = append(list, string(token(all[i])))
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return strings.Join(list[:min(len(list), 2*most)], " AND ")
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
