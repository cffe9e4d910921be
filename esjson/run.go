package esjson

import (
	"encoding/binary"
	"math/bits"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plainRun counts the bytes before the first quote, backslash or control byte, eight at a time.
func plainRun(p []byte) int {
	i := 0
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		q := x ^ ones*'"'
		b := x ^ ones*'\\'
		// Each term sets the high bit of every matching byte; a borrow can only mark bytes after a true match.
		m := ((q - ones) &^ q) | ((b - ones) &^ b) | ((x - ones*0x20) &^ x)
		if m &= highs; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

// shortRun is how long a string must be before it is read in blocks: names and kinds are shorter.
const shortRun = 32

// stringRun counts the bytes at the beginning of p that certainly stand inside a string, when its first byte stands there and
// is not escaped: up to a quote that ends it, or a byte or an escape that the caller must look at. Escapes of two bytes are taken,
// \u is not. Message files are long strings, and this decides how fast they are read.
func stringRun(p []byte) int {
	n := plainRun(p[:min(len(p), shortRun)])
	if n < len(p) && p[n] == '"' {
		return n
	}
	n += stringBlocks(p[n:])
	return n + stringRest(p[n:])
}

// stringRest is stringRun byte by byte, as far as escapes go.
func stringRest(p []byte) int {
	i := plainRun(p)
	for i+1 < len(p) && p[i] == '\\' && shortEscape[p[i+1]] != 0 {
		i += 2
		i += plainRun(p[i:])
	}
	return i
}
