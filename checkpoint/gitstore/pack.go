package gitstore

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's names of objects, not a protection
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/klauspost/compress/zlib"

	"github.com/roost-dev/roost/content"
)

// pack is one pack file with its index (version 2).
type pack struct {
	path  string
	size  int64
	count int
	ids   []byte // 20 bytes each, in order
	offs  []byte
	big   []byte // offsets that need more than 31 bits
}

const (
	indexMagic = "\xfftOc\x00\x00\x00\x02"
	indexHead  = len(indexMagic) + 256*4
	packHead   = 12
)

func damaged(why string) error { return fmt.Errorf("%w: %s", content.ErrDamaged, why) }

// openPack reads the index of a pack. Nothing is allocated because of what a damaged index claims.
func openPack(base string) (*pack, error) {
	data, err := os.ReadFile(base + ".idx")
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(base + ".pack")
	if err != nil {
		return nil, err
	}
	if len(data) < indexHead+2*sha1.Size || string(data[:len(indexMagic)]) != indexMagic {
		return nil, damaged("a pack's index does not begin as one")
	}
	body := data[:len(data)-sha1.Size]
	if h := sha1.Sum(body); !bytes.Equal(h[:], data[len(body):]) { //nolint:gosec // as above
		return nil, damaged("a pack's index has a wrong checksum")
	}
	n := uint64(binary.BigEndian.Uint32(data[indexHead-4:]))
	rest := body[indexHead : len(body)-sha1.Size]
	if uint64(len(rest)) < n*28 {
		return nil, damaged("a pack's index is too short")
	}
	return &pack{
		path: base + ".pack", size: info.Size(), count: int(n),
		ids: rest[:20*n], offs: rest[24*n : 28*n], big: rest[28*n:],
	}, nil
}

func (p *pack) id(i int) (id objectID) {
	copy(id[:], p.ids[20*i:])
	return id
}

func (p *pack) find(id objectID) (int, bool) {
	return sort.Find(p.count, func(i int) int { return bytes.Compare(id[:], p.ids[20*i:20*i+20]) })
}

// offset is where an entry begins; -1 when the index does not have it.
func (p *pack) offset(i int) int64 {
	o := binary.BigEndian.Uint32(p.offs[4*i:])
	if o&(1<<31) == 0 {
		return int64(o)
	}
	at := int(o&^(1<<31)) * 8
	if at+8 > len(p.big) {
		return -1
	}
	return int64(binary.BigEndian.Uint64(p.big[at:]) & (1<<62 - 1))
}

// Kinds of entries as a pack numbers them.
const (
	packOffset = 6 // the difference to an earlier entry of the same pack
	packRef    = 7 // the difference to an object by its name
)

var packKinds = [8]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// maxChain is how many differences may depend on each other; git makes at most 4095.
const maxChain = 4096

// maxObject bounds what is read into memory, in bytes. Earlier versions kept files of at most 64 MiB.
const maxObject = 256 << 20

// read reads the entry at off. other finds an object outside of the pack.
func (p *pack) read(f io.ReaderAt, off int64, other func(objectID) (string, []byte, error)) (kind string, data []byte, err error) {
	var deltas [][]byte
	for range maxChain {
		if off < packHead || off >= p.size-sha1.Size {
			return "", nil, damaged("an entry is outside of its pack")
		}
		var b [48]byte
		n, err := f.ReadAt(b[:], off)
		if n == 0 {
			return "", nil, err
		}
		h, err := parseHeader(b[:n], off)
		if err != nil {
			return "", nil, err
		}
		part, err := inflate(io.NewSectionReader(f, h.data, p.size-h.data), h.size)
		if err != nil {
			return "", nil, err
		}
		switch h.kind {
		case packOffset:
			deltas, off = append(deltas, part), h.back
			continue
		case packRef:
			deltas = append(deltas, part)
			if i, ok := p.find(h.base); ok {
				off = p.offset(i)
				continue
			}
			if kind, data, err = other(h.base); err != nil {
				return "", nil, err
			}
		default:
			kind, data = packKinds[h.kind], part
		}
		for i := len(deltas) - 1; i >= 0; i-- {
			if data, err = applyDelta(data, deltas[i]); err != nil {
				return "", nil, err
			}
		}
		return kind, data, nil
	}
	return "", nil, damaged("differences depend on each other without end")
}

// header precedes an entry's compressed bytes.
type header struct {
	kind byte
	size int64
	data int64    // where the compressed bytes begin
	back int64    // packOffset: where the base begins
	base objectID // packRef
}

func parseHeader(b []byte, off int64) (h header, err error) {
	short := damaged("an entry is cut off")
	at := 0
	next := func() byte {
		if at < len(b) {
			at++
			return b[at-1]
		}
		err = short
		return 0
	}
	c := next()
	h.kind, h.size = c>>4&7, int64(c&15)
	for shift := 4; c&0x80 != 0 && err == nil; shift += 7 {
		if shift > 53 {
			return h, damaged("the size of an entry is impossible")
		}
		c = next()
		h.size |= int64(c&0x7f) << shift
	}
	switch h.kind {
	case packOffset:
		c = next()
		back := int64(c & 0x7f)
		for c&0x80 != 0 && err == nil && back < 1<<50 {
			c = next()
			back = (back+1)<<7 | int64(c&0x7f)
		}
		h.back = off - back
		if back == 0 {
			return h, damaged("a difference is its own base")
		}
	case packRef:
		if at+len(h.base) > len(b) {
			return h, short
		}
		at += copy(h.base[:], b[at:])
	default:
		if packKinds[h.kind] == "" {
			return h, damaged("an entry has an unknown kind")
		}
	}
	h.data = off + int64(at)
	return h, err
}

// inflate decompresses exactly size bytes.
func inflate(r io.Reader, size int64) ([]byte, error) {
	if size > maxObject {
		return nil, fmt.Errorf("%w: an object of %d bytes", content.ErrTooLarge, size)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, damaged(err.Error())
	}
	defer z.Close()
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(z, size+1))
	if err != nil {
		return nil, damaged(err.Error())
	}
	if n != size {
		return nil, damaged("an object does not have the size in its header")
	}
	return out.Bytes(), nil
}

// applyDelta makes an object from its base and a difference.
func applyDelta(base, delta []byte) ([]byte, error) {
	bad := damaged("a difference does not fit its base")
	number := func() (n int64) {
		for shift := 0; len(delta) > 0 && shift < 56; shift += 7 {
			c := delta[0]
			delta = delta[1:]
			n |= int64(c&0x7f) << shift
			if c&0x80 == 0 {
				return n
			}
		}
		return -1
	}
	from, size := number(), number()
	if from != int64(len(base)) || size < 0 || size > maxObject {
		return nil, bad
	}
	out := make([]byte, 0, min(size, int64(len(base)+len(delta))+4096))
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 { // bytes of its own
			if op == 0 || int(op) > len(delta) {
				return nil, bad
			}
			out, delta = append(out, delta[:op]...), delta[op:]
		} else { // a copy of a part of the base; only bytes with a bit in op are present
			at, n := 0, 0
			for i := range 7 {
				if op&(1<<i) == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, bad
				}
				if i < 4 {
					at |= int(delta[0]) << (8 * i)
				} else {
					n |= int(delta[0]) << (8 * (i - 4))
				}
				delta = delta[1:]
			}
			if n == 0 {
				n = 0x10000
			}
			if at > len(base) || n > len(base)-at {
				return nil, bad
			}
			out = append(out, base[at:at+n]...)
		}
		if int64(len(out)) > size {
			return nil, bad
		}
	}
	if int64(len(out)) != size {
		return nil, bad
	}
	return out, nil
}
