package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task/codec"
)

// Task is a task whose text is kept.
type Task struct {
	ID    int64
	Stamp string
}

// Snapshot is the catalogue at one moment: later writes of other processes are
// not seen. To be used by one goroutine, and closed.
type Snapshot struct {
	conn *sql.Conn
}

// Snapshot begins reading.
func (db *DB) Snapshot(ctx context.Context) (*Snapshot, error) {
	c, err := db.sql.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, errors.Join(fmt.Errorf("read the catalogue: %w", err), c.Close())
	}
	return &Snapshot{conn: c}, nil
}

// Close ends reading.
func (s *Snapshot) Close() {
	rollback(context.Background(), s.conn)
	_ = s.conn.Close() // it is given back; that fails when it was thrown away
}

// Tasks are all tasks whose text is kept, by their keys.
func (s *Snapshot) Tasks(ctx context.Context) (map[string]Task, error) {
	out := map[string]Task{}
	err := scan(ctx, s.conn, "SELECT id, key, stamp FROM task", func(v values) {
		out[v.text(1)] = Task{ID: v.int(0), Stamp: v.text(2)}
	})
	return out, err
}

// Part is where some messages of a task lie.
type Part struct {
	id    int64
	first int // none of its messages has a lower place, nor has one of a later part
}

// Parts are the parts that may hold a query, by task, in the order of their messages.
func (s *Snapshot) Parts(ctx context.Context, q Query) (map[int64][]Part, error) {
	lists, err := vocabulary(ctx, s.conn)
	if err != nil {
		return nil, err
	}
	out := map[int64][]Part{}
	text, none := q.wanted().expression(lists)
	if none {
		return out, nil
	}
	query, args := "SELECT id, task, first FROM part", []any(nil)
	if text != "" {
		query, args = "SELECT id, task, first FROM feature LEFT JOIN part ON id = feature.rowid WHERE feature MATCH ?", []any{text}
	}
	missing := false
	err = scan(ctx, s.conn, query, func(v values) {
		missing = missing || v[0] == nil
		out[v.int(1)] = append(out[v.int(1)], Part{v.int(0), int(v.int(2))})
	}, args...)
	if err == nil && missing {
		err = fmt.Errorf("read the catalogue: %w: parts are missing", ErrDamaged)
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Part) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.id, b.id)) })
	}
	return out, err
}

// Hits are the messages of a task's parts that hold a query, in the order of Rank. Of
// more than most hits the first are given (0 is all): parts whose hits cannot be
// among them are not read.
func (s *Snapshot) Hits(ctx context.Context, parts []Part, q Query, most int) ([]Hit, error) {
	var out []Hit
	r := reader{q: q}
	read, err := s.conn.PrepareContext(ctx, "SELECT text FROM body WHERE part = ?")
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer read.Close() //nolint:errcheck // nothing was written
	for _, p := range parts {
		if most > 0 && enough(out, p.first, most) {
			break
		}
		var body []byte
		if err := read.QueryRowContext(ctx, p.id).Scan(&body); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = fmt.Errorf("%w: it is not there", ErrDamaged)
			}
			return nil, fmt.Errorf("read the catalogue: part %d: %w", p.id, err)
		}
		if out, err = r.hits(out, body); err != nil {
			return nil, fmt.Errorf("read the catalogue: part %d: %w", p.id, err)
		}
	}
	slices.SortFunc(out, Rank)
	if most > 0 && len(out) > most {
		out = out[:most]
	}
	return out, nil
}

// Any reports whether a message in some parts holds a query.
func (s *Snapshot) Any(ctx context.Context, parts []Part, q Query) (bool, error) {
	for _, p := range parts {
		if hits, err := s.Hits(ctx, []Part{p}, q, 1); err != nil || len(hits) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// enough reports whether no hit at or behind a place can be among the first, or a twin of one of them.
func enough(hits []Hit, place, most int) bool {
	n := 0
	for _, h := range hits {
		if h.Score == BestScore && h.Place+twinsApart < place {
			n++
		}
	}
	return n >= most
}

// ErrQuery is wrapped by errors about a query that cannot be looked for.
var ErrQuery = errors.New("nothing to look for")

// Scopes are the places that a query can be narrowed to: the two histories, what
// tools were given and gave back, and paths of files.
var Scopes = api.Scopes

// Query is what a search looks for: a message must have every term, in any case, also
// as a part of a word.
type Query struct {
	terms  []string // folded
	phrase string   // all of it, folded
	scopes []string
	names  bool // terms are names of tools, and are one whole
	joined bool // see Joined
}

// Joined is the query of which messages of both histories about one event are one hit.
func (q Query) Joined() Query {
	q.joined = true
	return q
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
	q.terms = api.QueryTerms(text)
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
	path = strings.ToLower(path)
	return Query{terms: []string{path}, phrase: path, scopes: []string{"path"}}
}

// Hit is a message that holds a query.
type Hit struct {
	History string
	Number  int
	TS      int64
	Kind    string
	Snippet string // one line around the first term
	Score   int    // among the hits of one task; more is better, at most BestScore
	Place   int    // of its message
	Tool    string // the tool that the message calls or answers, as it is kept; "" = none is known
	Also    []api.Twin

	Core [3]string // letters and digits before, of and behind the first term: what twins have in common
}

// What makes a hit better than another of its task.
const (
	wholePhrase = 4 // it has the query as typed
	wholeWord   = 2 // its first word is not the part of a longer one
	saidWords   = 1 // it is from the person or the model, not from a tool
	BestScore   = wholePhrase + wholeWord + saidWords
)

// Rank is the order of the hits of one task: the better first, then in the order of the task.
func Rank(a, b Hit) int { return cmp.Or(b.Score-a.Score, a.Place-b.Place) }

// Match judges a message.
func (q Query) Match(m Message) (Hit, bool) {
	folded := make([]string, len(m.Pieces))
	for i, p := range m.Pieces {
		if q.looksInto(m, p) {
			folded[i] = strings.ToLower(p.Text)
		}
	}
	hit := Hit{History: m.History, Number: m.Number, TS: m.TS, Place: m.Place}
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
		hit.Tool = toolNear(m, at)
		hit.Core = core(folded[at], place, len(term))
	}
	return hit, true
}

// TitleScore judges the title of a task: 2 when it has all of the query as whole words, 1 when it has every term, else 0.
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

// toolNear is the tool whose call or result a piece of a message belongs to; "" = of none.
func toolNear(m Message, at int) (tool string) {
	p := m.Pieces[at]
	if p.Class == Words {
		return ""
	}
	for i := at; i >= 0; i-- { // the head of a result may be a piece of its own
		if head := resultHead.FindStringSubmatch(m.Pieces[i].Text); head != nil {
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
	coreLeast  = 12 // fewer in common do not make twins
	twinsApart = 12 // places between two messages about one event, at most
)

// core is what a folded text has around a stretch, letters and digits only.
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
	for len(before) > coreLength {
		_, size := utf8.DecodeRuneInString(before)
		before = before[size:]
	}
	for len(after) > coreLength {
		_, size := utf8.DecodeLastRuneInString(after)
		after = after[:len(after)-size]
	}
	return [3]string{before, plain(folded[at : at+n]), after}
}

// twins reports whether two hits of the two histories are about one event: they are near each other, and what
// surrounds the first term is alike as far as both have it.
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

// Collect adds a hit to those of its task, which come in the order of their places. With Joined, a twin of an earlier hit joins it: what
// the user saw stands for both, at the earlier place, so that pages do not depend on what comes later.
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

// ErrDamaged is wrapped when the file does not hold what was written into it.
var ErrDamaged = errors.New("the catalogue is damaged")

// draft is a part that is being filled.
type draft struct {
	first int
	text  int             // bytes of its texts
	known map[string]bool // its texts
	out   codec.Writer
}

// message appends a message: history, number, place in the task's order, time, and of
// each piece class, kind and text. A text is written once.
func (d *draft) message(m Message) {
	d.out.Word(m.History)
	d.out.Uint(uint64(m.Number))
	d.out.Uint(uint64(m.Place))
	d.out.Int(m.TS)
	d.out.Uint(uint64(len(m.Pieces)))
	for _, p := range m.Pieces {
		d.out.Uint(uint64(p.Class))
		d.out.Word(p.Kind)
		d.out.Word(p.Text)
	}
}

type coder struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// coders are shared: both calls in use here keep no state between texts.
var coders = sync.OnceValue(func() coder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		panic("catalog: " + err.Error()) // only wrong options fail
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		panic("catalog: " + err.Error())
	}
	return coder{enc, dec}
})

// reader reads parts for one query.
type reader struct {
	q    Query
	data []byte
}

// open uncompresses a part.
func (r *reader) open(body []byte) (u codec.Reader, err error) {
	if r.data, err = coders().dec.DecodeAll(body, r.data[:0]); err != nil {
		return u, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	return codec.Reader{In: r.data}, nil
}

// hits appends the hits of a part.
func (r *reader) hits(to []Hit, body []byte) ([]Hit, error) {
	u, err := r.open(body)
	for err == nil && len(u.Rest()) > 0 {
		m := message(&u)
		if u.Bad {
			err = fmt.Errorf("%w: a message ends early", ErrDamaged)
		} else if hit, ok := r.q.Match(m); ok {
			to = r.q.Collect(to, hit)
		}
	}
	return to, err
}

// message reads what draft.message wrote.
func message(u *codec.Reader) Message {
	m := Message{History: u.Word(), Number: u.Small(), Place: u.Small(), TS: u.Int()}
	for range u.Count() {
		m.Pieces = append(m.Pieces, Piece{Class: Class(u.Uint()), Kind: u.Word(), Text: u.Word()})
	}
	return m
}
