package task

import (
	"encoding/binary"
	"math"
)

// packer writes a snapshot: numbers as varints, each string once.
type packer struct {
	out   []byte
	index map[string]uint64 // strings written before
}

func (p *packer) uint(v uint64) { p.out = binary.AppendUvarint(p.out, v) }
func (p *packer) int(v int64)   { p.out = binary.AppendVarint(p.out, v) }

func (p *packer) flags(bits ...bool) {
	var v uint64
	for i, b := range bits {
		if b {
			v |= 1 << i
		}
	}
	p.uint(v)
}

func (p *packer) bytes(b []byte) {
	p.uint(uint64(len(b)))
	p.out = append(p.out, b...)
}

// word writes a string that comes often: the first time whole, then its number.
func (p *packer) word(s string) {
	if n, ok := p.index[s]; ok {
		p.uint(n)
		return
	}
	p.uint(0)
	p.bytes([]byte(s))
	p.index[s] = uint64(len(p.index) + 1)
}

func (p *packer) place(at place) {
	p.word(at.Blob)
	if at.Blob != "" {
		p.int(at.Off)
		p.int(at.Len)
		return
	}
	p.uint(at.Seq)
	p.uint(uint64(at.Event))
}

func (p *packer) places(list []place) {
	p.uint(uint64(len(list)))
	for _, at := range list {
		p.place(at)
	}
}

// unpacker reads it back. After the first thing that does not fit, everything is
// zero and bad is set.
type unpacker struct {
	in    []byte
	words []string
	bad   bool
}

func (u *unpacker) fail() {
	u.bad, u.in = true, nil
}

func (u *unpacker) uint() uint64 {
	v, n := binary.Uvarint(u.in)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.in = u.in[n:]
	return v
}

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.in)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.in = u.in[n:]
	return v
}

// small is a number that is used as an index.
func (u *unpacker) small() int {
	v := u.uint()
	if v > math.MaxInt32 {
		u.fail()
		return 0
	}
	return int(v)
}

// count is how many things follow, each at least one byte long: a number that
// cannot be true must not make us allocate.
func (u *unpacker) count() int {
	v := u.uint()
	if v > uint64(len(u.in)) {
		u.fail()
		return 0
	}
	return int(v)
}

func (u *unpacker) flags(bits ...*bool) {
	v := u.uint()
	for i, b := range bits {
		*b = v&(1<<i) != 0
	}
}

func (u *unpacker) bytes() []byte {
	n := u.count()
	b := u.in[:n:n]
	u.in = u.in[n:]
	return b
}

func (u *unpacker) word() string {
	n := u.uint()
	if n == 0 {
		s := string(u.bytes())
		u.words = append(u.words, s)
		return s
	}
	if n > uint64(len(u.words)) {
		u.fail()
		return ""
	}
	return u.words[n-1]
}

func (u *unpacker) place() (at place) {
	if at.Blob = u.word(); at.Blob != "" {
		at.Off, at.Len = u.int(), u.int()
		return at
	}
	at.Seq, at.Event = u.uint(), u.small()
	return at
}

func (u *unpacker) places() []place {
	n := u.count()
	if n == 0 {
		return nil
	}
	list := make([]place, n)
	for i := range list {
		list[i] = u.place()
	}
	return list
}
