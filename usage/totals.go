package usage

import (
	"sync"

	"github.com/roost-dev/roost/esjson"
)

// Tokens are Roo's sums over a UI list. They are doubles because Roo's are:
// old rows hold fractions, and the cost is one.
type Tokens struct {
	In, Out       float64 // tokens
	CacheWrites   float64 // tokens; 0 until HasCacheWrites
	CacheReads    float64 // tokens; 0 until HasCacheReads
	Cost          float64 // USD
	ContextTokens float64 // size of the newest request and its reply

	HasCacheWrites bool // a row held a number for it; Roo leaves the sum out otherwise
	HasCacheReads  bool
}

// The numeric members of a request row, in the order of entry.val.
const (
	tokensIn = iota
	tokensOut
	cacheWrites
	cacheReads
	cost
	fields
)

var fieldNames = [fields]string{"tokensIn", "tokensOut", "cacheWrites", "cacheReads", "cost"}

// entry is one row that counts: a request or a condensation.
type entry struct {
	val     [fields]float64
	has     [fields]bool // the member is a number
	set     [fields]bool // the member is there at all
	context float64
}

func (e *entry) addTo(t *Tokens) {
	t.In += e.val[tokensIn]
	t.Out += e.val[tokensOut]
	t.CacheWrites += e.val[cacheWrites]
	t.CacheReads += e.val[cacheReads]
	t.Cost += e.val[cost]
	t.HasCacheWrites = t.HasCacheWrites || e.has[cacheWrites]
	t.HasCacheReads = t.HasCacheReads || e.has[cacheReads]
	if e.context != 0 {
		t.ContextTokens = e.context
	}
}

// memory is lent for reading one row after the other: the text of a row is JSON inside of JSON, and in tasks of 2024 it holds the
// whole request.
type memory struct {
	text  []byte
	index esjson.Index
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// textRoom is how long the text of a request row may be, in bytes, to be looked at: no model takes a quarter of that.
const textRoom = 16 << 20

// fields takes the members that count; false when the text is no object. One that is too long for its memory to be kept is gone
// over without an index, which of nothing but short members would be ten times as large.
func (m *memory) fields(e *entry) bool {
	if esjson.TypeOf(m.text) != esjson.TypeObject {
		return false
	}
	if len(m.text) > lendable {
		if !esjson.Valid(m.text) {
			return false
		}
		for key, val := range esjson.Fields(m.text) {
			e.field(key, val)
		}
		return true
	}
	if !m.index.Read(m.text, 1) {
		return false
	}
	for key, i := range m.index.Parts(0) {
		e.field(key, m.index.Raw(i))
	}
	return true
}

func (e *entry) field(key, val []byte) {
	for f, name := range fieldNames {
		if string(key) == name {
			e.set[f] = true
			e.val[f], e.has[f] = numberOf(val)
		}
	}
}

// lendable is how large memory may be that is kept.
const lendable = 1 << 20

// read takes what counts from the text of a request row, a JSON string.
func (e *entry) read(text []byte) {
	if esjson.TypeOf(text) != esjson.TypeString || len(text) > textRoom {
		return
	}
	m := memories.Get().(*memory)
	var err error
	if m.text, err = esjson.AppendUnquoted(m.text[:0], text); err == nil && m.fields(e) {
		e.context = e.val[tokensIn] + e.val[tokensOut]
	}
	if cap(m.text) <= lendable {
		memories.Put(m)
	}
}

// merge is {...started, ...finished} for the members that count.
func (e *entry) merge(finished entry) {
	for f := range fields {
		if finished.set[f] {
			e.val[f], e.has[f], e.set[f] = finished.val[f], finished.has[f], true
		}
	}
	e.context = e.val[tokensIn] + e.val[tokensOut]
}

// Sum is the token usage of a list as it stands, without any joining.
func Sum(messages [][]byte) Tokens {
	var t Tokens
	for _, m := range messages {
		if e, ok := entryOf(parseRow(m)); ok {
			e.addTo(&t)
		}
	}
	return t
}

func entryOf(r row) (e entry, ok bool) {
	switch {
	case r.isSay("api_req_started"):
		e.read(r.text)
		return e, true
	case r.isSay("condense_context"):
		if esjson.TypeOf(r.condens) == esjson.TypeObject {
			v, _ := esjson.Get(r.condens, "cost")
			e.val[cost], e.has[cost] = numberOf(v)
			v, _ = esjson.Get(r.condens, "newContextTokens")
			e.context, _ = numberOf(v)
		}
		return e, true
	}
	return e, false
}

// Totals keeps what the history row needs of a growing UI list, so that a new
// row costs its own size and not a scan of the list. The zero value is the empty
// list. Rows that change or go (a finalised request, a rewind) are the caller's
// to handle: Set for the former, a new Totals for the latter.
//
// What is kept for each request row is a small record (about 100 bytes), because
// an api_req_finished row of old tasks reaches back, and because doubles must be
// summed in list order to give Roo's digits.
type Totals struct {
	rows    int
	title   string      // decoded text of row 0
	ts      []byte      // of the last row that is no resume question
	first   []byte      // ts of row 0
	tsRow   int         // which row that is
	found   bool        // such a row was seen
	entries []entry     // of the rows from 1 on
	before  []Tokens    // before[i] is the sum of entries[:i]
	open    []int       // entries of started rows that have no finished row yet
	index   map[int]int // row -> entry
	sum     Tokens
	todos   []byte
}

// Add takes the next row of the list.
func (t *Totals) Add(message []byte) {
	r := parseRow(message)
	at := t.rows
	t.rows++
	if at == 0 {
		t.title, t.first = r.textString(), clone(r.ts)
	}
	if !r.isResume() {
		t.ts, t.tsRow, t.found = clone(r.ts), at, true
	}
	if list, ok := todosOf(r); ok {
		t.todos = clone(list)
	}
	if at == 0 || r.isOutput() {
		return
	}
	if r.isSay("api_req_finished") {
		t.finish(r)
		return
	}
	e, ok := entryOf(r)
	if !ok {
		return
	}
	if t.index == nil {
		t.index = make(map[int]int)
	}
	t.index[at] = len(t.entries)
	if r.isSay("api_req_started") {
		t.open = append(t.open, len(t.entries))
	}
	t.before = append(t.before, t.sum)
	t.entries = append(t.entries, e)
	e.addTo(&t.sum)
}

// finish merges a finished row into the newest started row that has none.
func (t *Totals) finish(r row) {
	if len(t.open) == 0 {
		return
	}
	i := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	var f entry
	f.read(r.text)
	t.entries[i].merge(f)
	t.resum(i)
}

// resum adds up again from entry i on. For the newest request, the usual case,
// that is one addition.
func (t *Totals) resum(i int) {
	t.sum = t.before[i]
	for ; i < len(t.entries); i++ {
		t.before[i] = t.sum
		t.entries[i].addTo(&t.sum)
	}
}

// Update tells that the request row at position at, added before, now reads
// message: the usage of a reply is written into its row when the reply ends. It
// reports false, and changes nothing, when the row cannot be exchanged by itself
// (it was no request row, is none now, or the list is of the old kind that has
// api_req_finished rows); the caller then starts a new Totals.
func (t *Totals) Update(at int, message []byte) bool {
	i, ok := t.index[at]
	r := parseRow(message)
	if !ok || !r.isSay("api_req_started") || r.isOutput() || !t.isOpen(i) {
		return false
	}
	e, _ := entryOf(r)
	t.entries[i] = e
	t.resum(i)
	if t.found && at == t.tsRow {
		t.ts = clone(r.ts)
	}
	return true
}

// isOpen: entry i is a started row that took no finished row. The newest is
// looked at first.
func (t *Totals) isOpen(i int) bool {
	for k := len(t.open) - 1; k >= 0 && t.open[k] >= i; k-- {
		if t.open[k] == i {
			return true
		}
	}
	return false
}

// Tokens is the usage as Roo's history row has it: rows joined, without the
// first one.
func (t *Totals) Tokens() Tokens { return t.sum }

// Rows is how many rows were added.
func (t *Totals) Rows() int { return t.rows }

// Todos is the newest stored todo list, a JSON array; nil when there is none.
func (t *Totals) Todos() []byte { return t.todos }

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte(nil), b...)
}
