// Package usage reads tokens, cost, the history row and the todo list out of a
// task's UI messages, as Roo does.
//
// A message is the raw JSON it is stored with. Input that is not a JSON object
// counts as nothing; no function here fails on hostile messages.
//
// Where Roo's own metrics go wrong, this package does not follow:
//   - a row that shares the ts of a command or of an MCP question keeps its cost;
//   - token fields that are not numbers (or beyond a double's range) count as 0 and are never
//     concatenated;
//   - an MCP row whose text is not an object does not stop the whole list.
//
// Sums in doubles run in list order, because addition of doubles depends on the
// order and the history row must equal Roo's to the last digit.
package usage

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
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

// Spent is what one row of a UI list adds to the list's Tokens. A long task keeps these
// small records instead of its rows, and adds them up in list order.
type Spent struct{ entry entry }

// SpentOf reads a UI row of type "say" that was parsed already: its kind, and its members text and contextCondense as
// raw JSON, nil when they are absent. It returns false for a row that adds nothing.
//
// A task of 2024 has a second row for each finished request. It counts as a row of its own: the cost counts also
// where the first one was lost. The two rows never held the same numbers.
func SpentOf(kind string, text, contextCondense []byte) (Spent, bool) {
	r := row{typ: "say", say: kind, text: text, condens: contextCondense}
	if r.isSay("api_req_finished") {
		var s Spent
		s.entry.read(text)
		return s, true
	}
	e, ok := entryOf(r)
	return Spent{e}, ok
}

// AddTo adds it to a sum.
func (s Spent) AddTo(t *Tokens) { s.entry.addTo(t) }

// AppendBinary gives it as a few bytes, exactly.
func (s Spent) AppendBinary(dst []byte) ([]byte, error) {
	var has uint64
	for f := range fields {
		if s.entry.has[f] {
			has |= 1 << f
		}
	}
	dst = binary.AppendUvarint(dst, has)
	for _, v := range append(s.entry.val[:], s.entry.context) {
		// Small whole numbers end in zero bits: turned round, they are short.
		dst = binary.AppendUvarint(dst, bits.Reverse64(math.Float64bits(v)))
	}
	return dst, nil
}

// ErrSpent: the bytes are none that AppendBinary gave.
var ErrSpent = errors.New("usage: not a spent record")

// ReadSpent reads what AppendBinary gave and returns the bytes behind it.
func ReadSpent(src []byte) (Spent, []byte, error) {
	var s Spent
	number := func() (v uint64) {
		n := 0
		if v, n = binary.Uvarint(src); n <= 0 {
			src = nil
			return 0
		}
		src = src[n:]
		return v
	}
	has := number()
	if src == nil || has >= 1<<fields {
		return s, nil, ErrSpent
	}
	for f := range fields {
		s.entry.has[f] = has&(1<<f) != 0
		s.entry.val[f] = math.Float64frombits(bits.Reverse64(number()))
	}
	s.entry.context = math.Float64frombits(bits.Reverse64(number()))
	if src == nil {
		return s, nil, ErrSpent
	}
	return s, src, nil
}

// row is what the metrics need of a UI message. Strings are only decoded where a kind is compared; other text stays
// raw until it is needed.
type row struct {
	typ     string
	ask     string
	say     string
	text    []byte // raw JSON value, nil when absent
	ts      []byte // raw JSON value, nil when absent
	condens []byte // raw contextCondense, nil when absent
}

func parseRow(raw []byte) row {
	var r row
	if esjson.TypeOf(raw) != esjson.TypeObject {
		return r
	}
	for key, val := range esjson.Members(raw) {
		switch key {
		case "type":
			r.typ = stringOf(val)
		case "ask":
			r.ask = stringOf(val)
		case "say":
			r.say = stringOf(val)
		case "text":
			r.text = val
		case "ts":
			r.ts = val
		case "contextCondense":
			r.condens = val
		}
	}
	return r
}

// textString is the decoded text, "" when it is absent or no string.
func (r row) textString() string { return stringOf(r.text) }

func (r row) isSay(kind string) bool { return r.typ == "say" && r.say == kind }

func (r row) isAsk(kind string) bool { return r.typ == "ask" && r.ask == kind }

func (r row) isOutput() bool { return r.ask == "command_output" || r.say == "command_output" }

// isResume reports whether the row only records that a task was opened again.
func (r row) isResume() bool { return r.ask == "resume_task" || r.ask == "resume_completed_task" }

func stringOf(raw []byte) string {
	if esjson.TypeOf(raw) != esjson.TypeString {
		return ""
	}
	s, err := esjson.Unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

// isSpace is ECMAScript's \s, which is also what trim() removes.
func isSpace(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r == ' ', r == 0xA0, r == 0x1680, r >= 0x2000 && r <= 0x200A,
		r == 0x2028, r == 0x2029, r == 0x202F, r == 0x205F, r == 0x3000, r == 0xFEFF:
		return true
	}
	return false
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// numberOf is the value of a raw JSON number; ok is false for any other value
// and for what no double can hold.
func numberOf(raw []byte) (f float64, ok bool) {
	if esjson.TypeOf(raw) != esjson.TypeNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil { // out of range: JSON.parse makes it an infinity, which would swallow every sum
		return 0, false
	}
	return f, true
}
