package object

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// index is the table of one pack, as its .idx file (version 2) has it: ids in
// order, and where their entries begin. Its parts are slices of the file.
type index struct {
	fan   []byte // 256 counts: how many ids begin with a byte up to this one
	ids   []byte
	crcs  []byte // of the entries as they lie in the pack
	offs  []byte
	big   []byte // offsets that need more than 31 bits
	n     int
	check sum // the pack's own checksum
}

const (
	idxMagic = "\xfftOc\x00\x00\x00\x02"
	idxHead  = len(idxMagic) + 256*4
	idxTail  = 2 * sha1.Size
)

// parseIndex reads an index. Nothing is allocated by what it says; a damaged one is an
// error, never a wrong answer out of bounds.
func parseIndex(data []byte) (*index, error) {
	bad := func(why string) (*index, error) {
		return nil, fmt.Errorf("a pack's index %w: %s", ErrDamaged, why)
	}
	if len(data) < idxHead+idxTail || string(data[:len(idxMagic)]) != idxMagic {
		return bad("it does not begin as one")
	}
	if h := sha1.Sum(data[:len(data)-sha1.Size]); !bytes.Equal(h[:], data[len(data)-sha1.Size:]) {
		return bad("its checksum is wrong")
	}
	x := &index{fan: data[len(idxMagic):idxHead]}
	var last uint32
	for i := range 256 {
		c := binary.BigEndian.Uint32(x.fan[4*i:])
		if c < last {
			return bad("its counts go down")
		}
		last = c
	}
	rest := data[idxHead : len(data)-idxTail]
	n := uint64(last)
	if uint64(len(rest)) < n*28 || (uint64(len(rest))-n*28)%8 != 0 {
		return bad("its length does not fit its counts")
	}
	x.n = int(n)
	x.ids, rest = rest[:20*n], rest[20*n:]
	x.crcs, rest = rest[:4*n], rest[4*n:]
	x.offs, x.big = rest[:4*n], rest[4*n:]
	copy(x.check[:], data[len(data)-idxTail:])
	for i := 1; i < x.n; i++ {
		if bytes.Compare(x.ids[20*(i-1):20*i], x.ids[20*i:20*i+20]) >= 0 {
			return bad("its ids are not in order")
		}
	}
	for i := range x.n {
		if x.ids[20*i] != byte(sort.Search(256, func(b int) bool { return x.count(b) > uint32(i) })) {
			return bad("its counts do not fit its ids")
		}
		if x.offset(i) < packHead {
			return bad("an entry lies outside the pack")
		}
	}
	return x, nil
}

func (x *index) count(b int) uint32 { return binary.BigEndian.Uint32(x.fan[4*b:]) }

func (x *index) id(i int) (s sum) {
	copy(s[:], x.ids[20*i:])
	return s
}

func (x *index) crc(i int) uint32 { return binary.BigEndian.Uint32(x.crcs[4*i:]) }

// offset is where an entry begins; -1 when the index does not know.
func (x *index) offset(i int) int64 {
	o := binary.BigEndian.Uint32(x.offs[4*i:])
	if o&(1<<31) == 0 {
		return int64(o)
	}
	at := int(o&^(1<<31)) * 8
	if at+8 > len(x.big) {
		return -1
	}
	if v := binary.BigEndian.Uint64(x.big[at:]); v < 1<<62 {
		return int64(v)
	}
	return -1
}

func (x *index) find(id sum) (int, bool) {
	lo, hi := 0, int(x.count(int(id[0])))
	if id[0] > 0 {
		lo = int(x.count(int(id[0]) - 1))
	}
	i, ok := sort.Find(hi-lo, func(i int) int { return bytes.Compare(id[:], x.ids[20*(lo+i):20*(lo+i)+20]) })
	return lo + i, ok
}

// indexed is what the index says of one entry.
type indexed struct {
	id  sum
	crc uint32
	off int64
}

// encodeIndex writes an index for a pack with this checksum. It sorts the list.
func encodeIndex(list []indexed, check sum) []byte {
	slices.SortFunc(list, func(a, b indexed) int { return bytes.Compare(a.id[:], b.id[:]) })
	out := make([]byte, 0, idxHead+28*len(list)+idxTail)
	out = append(out, idxMagic...)
	at := 0
	for b := range 256 {
		for at < len(list) && int(list[at].id[0]) <= b {
			at++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(at))
	}
	for _, e := range list {
		out = append(out, e.id[:]...)
	}
	for _, e := range list {
		out = binary.BigEndian.AppendUint32(out, e.crc)
	}
	var big []byte
	for _, e := range list {
		o := uint32(e.off)
		if e.off >= 1<<31 {
			o = 1<<31 | uint32(len(big)/8)
			big = binary.BigEndian.AppendUint64(big, uint64(e.off))
		}
		out = binary.BigEndian.AppendUint32(out, o)
	}
	out = append(out, big...)
	out = append(out, check[:]...)
	h := sha1.Sum(out)
	return append(out, h[:]...)
}
