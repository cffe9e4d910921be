package object

import (
	"fmt"
)

// maxDelta is how large an object may be that is stored as a difference: it is put
// together in memory. Our own packs hold none, and the settings that a new store
// gets keep git from making any above 16 MB.
const maxDelta = 128 << 20

// maxChain is how many differences may stand on each other; git makes 50, and 4095 at most.
const maxChain = 4096

// applyDelta puts an object together from its base. Damaged input is ErrDamaged.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, rest, ok := deltaSize(delta)
	if !ok || from != int64(len(base)) {
		return nil, fmt.Errorf("a difference %w: it is to something else", ErrDamaged)
	}
	size, rest, ok := deltaSize(rest)
	if !ok || size > maxDelta {
		return nil, fmt.Errorf("a difference %w: it says that it gives too much", ErrDamaged)
	}
	out := make([]byte, 0, min(size, int64(len(base)+len(delta))+4096))
	for len(rest) > 0 {
		op := rest[0]
		rest = rest[1:]
		if op == 0 {
			return nil, fmt.Errorf("a difference %w: an instruction is unknown", ErrDamaged)
		}
		var piece []byte
		if op&0x80 == 0 {
			if int(op) > len(rest) {
				return nil, fmt.Errorf("a difference %w: it is cut off", ErrDamaged)
			}
			piece, rest = rest[:op], rest[op:]
		} else {
			var at, n int
			if at, n, rest, ok = deltaCopy(op, rest); !ok || at > len(base) || n > len(base)-at {
				return nil, fmt.Errorf("a difference %w: it copies what is not there", ErrDamaged)
			}
			piece = base[at : at+n]
		}
		if int64(len(out)+len(piece)) > size {
			return nil, fmt.Errorf("a difference %w: it gives more than it says", ErrDamaged)
		}
		out = append(out, piece...)
	}
	if int64(len(out)) != size {
		return nil, fmt.Errorf("a difference %w: it gives less than it says", ErrDamaged)
	}
	return out, nil
}

// deltaSize reads a number as a difference begins with: seven bits a byte, the
// lowest first.
func deltaSize(b []byte) (n int64, rest []byte, ok bool) {
	for shift := 0; len(b) > 0 && shift < 56; shift += 7 {
		c := b[0]
		b = b[1:]
		n |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			return n, b, true
		}
	}
	return 0, nil, false
}

// deltaCopy reads where a copy begins and how long it is: only the bytes that op
// has a bit for are there.
func deltaCopy(op byte, b []byte) (at, n int, rest []byte, ok bool) {
	for i := range 7 {
		if op&(1<<i) == 0 {
			continue
		}
		if len(b) == 0 {
			return 0, 0, nil, false
		}
		if i < 4 {
			at |= int(b[0]) << (8 * i)
		} else {
			n |= int(b[0]) << (8 * (i - 4))
		}
		b = b[1:]
	}
	if n == 0 {
		n = 0x10000
	}
	return at, n, b, true
}
