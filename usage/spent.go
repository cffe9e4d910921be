package usage

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

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
