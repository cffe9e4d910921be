// Package codec writes and reads the binary form of a snapshot: numbers as varints, each string once. It allocates for
// what the input holds and never for a count that the input cannot be long enough for.
package codec

import (
	"encoding/binary"
	"math"
)

// Writer appends to Out. Its zero value is not usable: see NewWriter.
type Writer struct {
	Out   []byte
	index map[string]uint64 // the number of each string written before
}

// NewWriter returns a writer that appends to out.
func NewWriter(out []byte) Writer { return Writer{Out: out, index: map[string]uint64{}} }

// Uint writes an unsigned number as a varint.
func (p *Writer) Uint(v uint64) { p.Out = binary.AppendUvarint(p.Out, v) }

// Int writes a signed number as a varint.
func (p *Writer) Int(v int64) { p.Out = binary.AppendVarint(p.Out, v) }

// Flags writes up to 64 bits as one number, the first one lowest.
func (p *Writer) Flags(bits ...bool) {
	var v uint64
	for i, b := range bits {
		if b {
			v |= 1 << i
		}
	}
	p.Uint(v)
}

// Bytes writes a length and the bytes.
func (p *Writer) Bytes(b []byte) {
	p.Uint(uint64(len(b)))
	p.Out = append(p.Out, b...)
}

// Word writes a string that comes often: the first time whole, then its number.
func (p *Writer) Word(s string) {
	if n, ok := p.index[s]; ok {
		p.Uint(n)
		return
	}
	p.Uint(0)
	p.Bytes([]byte(s))
	p.index[s] = uint64(len(p.index) + 1)
}

// Reader reads what a Writer wrote. After the first value that does not fit, every further value is zero and Bad is set.
type Reader struct {
	In    []byte
	Bad   bool
	words []string
}

// Fail marks the input as bad and drops the rest of it.
func (u *Reader) Fail() {
	u.Bad, u.In = true, nil
}

// Uint reads an unsigned number.
func (u *Reader) Uint() uint64 {
	v, n := binary.Uvarint(u.In)
	if n <= 0 {
		u.Fail()
		return 0
	}
	u.In = u.In[n:]
	return v
}

// Int reads a signed number.
func (u *Reader) Int() int64 {
	v, n := binary.Varint(u.In)
	if n <= 0 {
		u.Fail()
		return 0
	}
	u.In = u.In[n:]
	return v
}

// Small reads a number that is used as an index.
func (u *Reader) Small() int {
	v := u.Uint()
	if v > math.MaxInt32 {
		u.Fail()
		return 0
	}
	return int(v)
}

// Count reads how many values follow, each at least one byte long. A count that cannot be true allocates nothing.
func (u *Reader) Count() int {
	v := u.Uint()
	if v > uint64(len(u.In)) {
		u.Fail()
		return 0
	}
	return int(v)
}

// Flags reads what Writer.Flags wrote.
func (u *Reader) Flags(bits ...*bool) {
	v := u.Uint()
	for i, b := range bits {
		*b = v&(1<<i) != 0
	}
}

// Bytes reads what Writer.Bytes wrote. The result shares memory with In.
func (u *Reader) Bytes() []byte {
	n := u.Count()
	b := u.In[:n:n]
	u.In = u.In[n:]
	return b
}

// Word reads what Writer.Word wrote.
func (u *Reader) Word() string {
	n := u.Uint()
	if n == 0 {
		s := string(u.Bytes())
		u.words = append(u.words, s)
		return s
	}
	if n > uint64(len(u.words)) {
		u.Fail()
		return ""
	}
	return u.words[n-1]
}
