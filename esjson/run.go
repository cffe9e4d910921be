package esjson

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes are compared at once, as one word. The comparisons look at the low seven bits
// of each byte, so that no sum carries into the next one, and report in its high bit.
const (
	ones  = 0x0101010101010101
	lows  = ones * 0x7f
	highs = ones * 0x80
)

// differ sets the high bit of each byte of low that is not c.
func differ(low, c uint64) uint64 { return (low ^ ones*c) + lows }

// special sets the high bit of each byte of x that is a quote, a backslash or a control byte.
func special(x uint64) uint64 {
	low := x & lows
	return ^(differ(low, '"')&differ(low, '\\')&(low+ones*(0x80-' ')) | x) & highs
}

// plainRun counts the bytes before the first quote, backslash or control byte.
func plainRun(p []byte) int {
	i := 0
	for ; i+8 <= len(p); i += 8 {
		if m := special(binary.LittleEndian.Uint64(p[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}

// stringRun counts the bytes at the beginning of p that certainly belong to a string, given that the first byte does
// and is not escaped: up to a quote that ends the string, or a byte or an escape that the caller must check. It
// accepts escapes of two bytes, but not \u. Message files are mostly long strings, so stringRun decides how fast they
// are read.
func stringRun(p []byte) int {
	n := plainRun(p)
	if n < len(p) && p[n] == '"' {
		return n
	}
	for {
		n += escapedWords(p[n:])
		for end := n + 16; n < end; n++ { // byte by byte, beyond the word that stopped it
			switch {
			case n == len(p):
				return n
			case p[n] == '\\' && n+1 < len(p) && shortEscape[p[n+1]] != 0:
				n++
			case p[n] == '"' || p[n] == '\\' || p[n] < ' ':
				return n
			}
		}
	}
}

// escapedWords is stringRun for whole words, without a branch for each escape: source code has one in each line, and
// mispredicted branches would cost most of the time. It stops at the word in which the run ends or a backslash is
// escaped, or at the backslash before that word. Assembly with SSE2 was rejected: it was three times as fast on this
// loop alone, but it was a second implementation of the same rules, and disks and the work after the scan decide the
// total.
func escapedWords(p []byte) int {
	i := 0
	var escaped uint64 // in the first byte of the word: the word before ends in a backslash
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		low := x & lows
		noQuote := differ(low, '"')
		slash := ^(differ(low, '\\') | x) & highs
		end := ^(noQuote&(low+ones*(0x80-' ')) | x) & highs
		escaped |= slash << 8
		// One comparison covers b and r, which differ in one bit, and one covers f and n.
		noEscape := noQuote & differ(low, '/') & differ(low, 't') & differ(low|ones*0x10, 'r') & differ(low|ones*0x08, 'n')
		if end&^escaped|escaped&(noEscape|x) != 0 {
			break
		}
		escaped = slash >> 56
	}
	return i - int(escaped>>7&1)
}
