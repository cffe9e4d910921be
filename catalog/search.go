package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
)

// ErrQuery: a query names nothing to search for. Errors of Parse wrap it.
var ErrQuery = errors.New("nothing to look for")

// Query is what a search looks for: a message must contain every term, in upper or lower case, also as a part of a
// word.
type Query struct {
	terms  []string // folded
	phrase string   // the whole query, folded
	scopes []string
	names  bool // terms are whole names of tools
	joined bool // see Joined
}

// Joined returns the query with one hit, instead of two, for an event of which both histories have a message.
func (q Query) Joined() Query {
	q.joined = true
	return q
}

// Parse reads a query: words between blanks, or in double quotes a phrase. in narrows it to some of api.Scopes; none
// means all of them.
func Parse(text string, in ...string) (Query, error) {
	q := Query{scopes: in}
	for _, s := range in {
		if !slices.Contains(api.Scopes, s) {
			return q, fmt.Errorf("%w in %q: there are %s", ErrQuery, s, strings.Join(api.Scopes, ", "))
		}
	}
	q.terms = api.QueryTerms(text)
	q.phrase = strings.Join(q.terms, " ")
	if strings.TrimSpace(q.phrase) == "" {
		return q, fmt.Errorf("%w: the query is empty", ErrQuery)
	}
	return q, nil
}

// Used returns the query for messages that call a tool, in any spelling of its name: read_file and readFile are one.
func Used(tool string) Query {
	name := toolName(tool)
	return Query{terms: []string{name}, phrase: name, names: true}
}

// Touched returns the query for messages that ask a tool for a file whose path contains this text.
func Touched(path string) Query {
	path = strings.ToLower(path)
	return Query{terms: []string{path}, phrase: path, scopes: []string{"path"}}
}

// Hit is a message that holds a query.
type Hit struct {
	History string
	Number  int
	TS      int64
	Kind    string
	Snippet string // one line of text around the first term
	Score   int    // among the hits of one task; higher is better, at most BestScore
	Place   int    // of its message
	Tool    string // the tool that the message calls or answers, as the catalogue spells it; "" = not known
	Also    []api.Twin

	Core [3]string // letters and digits before, in and after the first term: they are alike in twins
}

// What makes a hit better than another one of its task.
const (
	wholePhrase = 4 // the message contains the query as the user typed it
	wholeWord   = 2 // the query's first word is not a part of a longer word
	saidWords   = 1 // the user or the model wrote the text, not a tool
	BestScore   = wholePhrase + wholeWord + saidWords
)

// Rank orders the hits of one task: the better first, then in the order of the task.
func Rank(a, b Hit) int { return cmp.Or(b.Score-a.Score, a.Place-b.Place) }

// Match decides whether a message is a hit.
func (q Query) Match(m Message) (Hit, bool) {
	folded := make([]string, len(m.Pieces))
	for i, p := range m.Pieces {
		if q.looksInto(m, p) {
			folded[i] = strings.ToLower(p.Text)
		}
	}
	hit := Hit{History: m.History, Number: m.Number, TS: m.TS, Place: m.Place}
	for i, term := range q.terms {
		at := slices.IndexFunc(folded, func(s string) bool { return s != "" && strings.Contains(s, term) && (!q.names || s == term) })
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
		hit.Tool = toolNear(m, at)
		hit.Core = core(folded[at], place, len(term))
	}
	return hit, true
}

// TitleScore scores the title of a task: 2 when it contains the whole query as whole words, 1 when it contains every
// term, else 0.
func (q Query) TitleScore(title string) int {
	title = strings.ToLower(title)
	if i := strings.Index(title, q.phrase); i >= 0 && wordAt(title, i, len(q.phrase)) {
		return 2
	}
	for _, term := range q.terms {
		if !strings.Contains(title, term) {
			return 0
		}
	}
	return 1
}

// toolNear returns the tool whose call or result holds a piece of a message; "" = no tool.
func toolNear(m Message, at int) (tool string) {
	p := m.Pieces[at]
	if p.Class == Words {
		return ""
	}
	for i := at; i >= 0; i-- { // the head of a result may be a piece of its own
		if head := resultHead().FindStringSubmatch(m.Pieces[i].Text); head != nil {
			return toolName(head[1])
		}
	}
	for i, other := range m.Pieces { // the name stands before what the tool was given, or behind all of it
		if other.Class == Called && (i < at || tool == "") {
			tool = other.Text
		}
	}
	return tool
}

const (
	coreLength = 24 // letters and digits on each side of a term
	coreLeast  = 12 // fewer common ones do not make twins
	twinsApart = 12 // greatest distance between two messages about one event, in places
)

// core returns the letters and digits of a folded text around n bytes of it.
func core(folded string, at, n int) [3]string {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, s)
	}
	before := plain(strings.ToValidUTF8(folded[max(0, at-4*coreLength):at], ""))
	after := plain(strings.ToValidUTF8(folded[at+n:min(len(folded), at+n+4*coreLength)], ""))
	before = strings.ToValidUTF8(before[max(0, len(before)-coreLength):], "") // no part of a character
	after = strings.ToValidUTF8(after[:min(len(after), coreLength)], "")
	return [3]string{before, plain(folded[at : at+n]), after}
}

// twins reports whether two hits of the two histories are about one event: they are near each other, and the text
// around the first term is alike as far as both have it.
func twins(a, b Hit) bool {
	if a.History == b.History || b.Place-a.Place > twinsApart || a.Core[1] != b.Core[1] {
		return false
	}
	if a.Core == b.Core {
		return true
	}
	if !strings.HasSuffix(a.Core[0], b.Core[0]) && !strings.HasSuffix(b.Core[0], a.Core[0]) ||
		!strings.HasPrefix(a.Core[2], b.Core[2]) && !strings.HasPrefix(b.Core[2], a.Core[2]) {
		return false
	}
	return min(len(a.Core[0]), len(b.Core[0]))+len(a.Core[1])+min(len(a.Core[2]), len(b.Core[2])) >= coreLeast
}

// Collect adds a hit to the hits of its task, which come in the order of their places. With Joined, a twin of an
// earlier hit joins that hit: the message of the user's history represents both, at the earlier place, so that pages
// do not depend on later hits.
func (q Query) Collect(hits []Hit, h Hit) []Hit {
	for i := len(hits) - 1; q.joined && i >= 0 && h.Place-hits[i].Place <= twinsApart; i-- {
		e := &hits[i]
		if !twins(*e, h) {
			continue
		}
		twin := h
		if e.History == HistoryAPI { // the user's history takes its place
			twin = *e
			h.Score, h.Place, h.Also = e.Score, e.Place, e.Also
			*e = h
		}
		e.Tool = cmp.Or(e.Tool, twin.Tool)
		e.Also = append(e.Also, api.Twin{History: twin.History, Number: twin.Number, Kind: twin.Kind})
		return hits
	}
	return append(hits, h)
}

func (q Query) looksInto(m Message, p Piece) bool {
	if q.names || p.Class == Called {
		return q.names && p.Class == Called
	}
	return len(q.scopes) == 0 || slices.ContainsFunc(q.scopes, func(s string) bool {
		return s == m.History || s == "tool" && p.Class != Words || s == "path" && p.Class == Path
	})
}

// wanted returns what a part must contain to have a hit of the query.
func (q Query) wanted() wanted {
	var w wanted
	for _, term := range q.terms {
		w.want(term)
	}
	return w
}

// wordAt reports whether no letter or digit touches n bytes of a text.
func wordAt(s string, at, n int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+n:])
	letter := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' }
	return !letter(before) && !letter(after)
}

// snippet returns one line of text around a place. The place, at, is an offset in the folded text.
func snippet(text, folded string, at, n int) string {
	const before, after = 50, 110
	from := byteOf(text, utf8.RuneCountInString(folded[:at])) // a rune's lower case may be longer or shorter
	to := from + byteOf(text[from:], utf8.RuneCountInString(folded[at:at+n]))
	for i := 0; i < before && from > 0; i++ {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	to = min(to+byteOf(text[to:], after), from+4000) // a term may be very long
	out := strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "\uFFFD")), " ")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// byteOf returns the byte at which rune n of a text begins.
func byteOf(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
