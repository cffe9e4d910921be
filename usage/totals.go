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

// fields takes the members that count; false when the text is no object. A text that is too long for its memory to be
// kept is scanned without an index, which for nothing but short members would be ten times as large.
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

// totals are the sums of Roo's history row: without the first row, which is the task itself, and without the output
// of commands. In a task of 2024 a row of its own holds the result of a request; it belongs to the newest request
// that has none yet. They are added up only then, because the sum of doubles depends on the order and the history row
// must equal Roo's to the last digit.
type totals struct {
	entries []entry
	open    []int // started rows that have no finished row
}

func (t *totals) add(r row) {
	if r.isOutput() {
		return
	}
	if r.isSay("api_req_finished") {
		if last := len(t.open) - 1; last >= 0 {
			var f entry
			f.read(r.text)
			t.entries[t.open[last]].merge(f)
			t.open = t.open[:last]
		}
		return
	}
	if e, ok := entryOf(r); ok {
		if r.isSay("api_req_started") {
			t.open = append(t.open, len(t.entries))
		}
		t.entries = append(t.entries, e)
	}
}

func (t *totals) sum() (sum Tokens) {
	for i := range t.entries {
		t.entries[i].addTo(&sum)
	}
	return sum
}
