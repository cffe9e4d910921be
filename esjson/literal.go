package esjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

// ErrSyntax is wrapped by every error about text that JSON.parse would refuse.
var ErrSyntax = errors.New("not JSON")

const hexDigits = "0123456789abcdef"

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// plainWords counts the leading bytes, in eights, that appear unchanged in a string
// literal. Most text is such bytes, and looking at each of them takes four times as long.
func plainWords(s string) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(s) >= n+8; n += 8 {
		w := uint64(s[n]) | uint64(s[n+1])<<8 | uint64(s[n+2])<<16 | uint64(s[n+3])<<24 |
			uint64(s[n+4])<<32 | uint64(s[n+5])<<40 | uint64(s[n+6])<<48 | uint64(s[n+7])<<56
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// The top bit of a byte is set where it is under 0x20, a quote, a backslash or
		// not ASCII. A borrow can set more of them above such a byte, never below.
		if ((w-ones*0x20)|(quote-ones)|(slash-ones)|w)&tops != 0 {
			break
		}
	}
	return n
}

// Quote appends s as a JSON string literal, spelled as JSON.stringify spells it: short escapes for \b \t \n \f \r,
// quote and backslash, \u00xx for other control characters, \udxxx for a lone surrogate (given as its three WTF-8
// bytes), everything else unchanged. Bytes that are neither UTF-8 nor a surrogate become U+FFFD, as in Node.
func Quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if i += plainWords(s[i:]); i == len(s) {
			break
		}
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		if r, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
			i += n
			continue
		}
		if u, ok := surrogateAt(s, i); ok {
			dst = append(dst, s[start:i]...)
			i += 3
			// A pair of halves that joining strings brought together is one character, as in ECMAScript.
			if lo, ok := surrogateAt(s, i); ok && u < 0xDC00 && lo >= 0xDC00 {
				dst = utf8.AppendRune(dst, (rune(u)-0xD800)<<10|(rune(lo)-0xDC00)+0x10000)
				i += 3
			} else {
				dst = appendHex(dst, u)
			}
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = append(dst, "\uFFFD"...)
		i += badLength(s[i:])
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return appendHex(dst, uint16(c))
}

func appendHex(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

// surrogateAt reads the three-byte WTF-8 form of a lone surrogate.
func surrogateAt(s string, i int) (uint16, bool) {
	if i+2 < len(s) && s[i] == 0xED && s[i+1] >= 0xA0 && s[i+1] <= 0xBF && s[i+2] >= 0x80 && s[i+2] <= 0xBF {
		return 0xD000 | uint16(s[i+1]&0x3F)<<6 | uint16(s[i+2]&0x3F), true
	}
	return 0, false
}

// badLength is the number of bytes at the start of s (which is not UTF-8 there) that become one U+FFFD: the longest
// beginning of a well-formed sequence, else one byte. That is the rule of the Encoding standard, which Node follows.
func badLength(s string) int {
	lo, hi, need := byte(0x80), byte(0xBF), 0
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	}
	n := 1
	for ; n <= need && n < len(s) && s[n] >= lo && s[n] <= hi; n++ {
		lo, hi = 0x80, 0xBF
	}
	return n
}

// Unquote decodes a JSON string literal (blanks around it are allowed) into WTF-8. A pair of surrogate escapes
// becomes one character; a lone one keeps its three bytes. Raw bytes that are not UTF-8 become U+FFFD, as for
// every reader in Node. The error wraps ErrSyntax.
func Unquote(raw []byte) (string, error) {
	text, err := inside(raw)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text), nil
	}
	return string(appendUnquoted(make([]byte, 0, len(text)+8), text, false)), nil
}

// AppendUnquoted is Unquote for callers that have memory for it: it appends to dst, and returns dst unchanged with an
// error.
func AppendUnquoted(dst, raw []byte) ([]byte, error) {
	text, err := inside(raw)
	if err != nil {
		return dst, err
	}
	return appendUnquoted(slices.Grow(dst, len(text)+8), text, false), nil
}

// inside is the text between the quotes of a valid literal.
func inside(raw []byte) ([]byte, error) {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '"' {
		return nil, fmt.Errorf("reading a string: no quote at offset %d: %w", i, ErrSyntax)
	}
	var sc scanner
	body := raw[i:]
	if n := sc.feed(body, false); n < len(body) || !sc.complete() {
		return nil, fmt.Errorf("reading a string: bad at offset %d: %w", i+n, ErrSyntax)
	}
	return body[1:bytes.LastIndexByte(body, '"')], nil
}

// appendUnquoted decodes the inner text of a valid literal. With keep set, bytes that are not UTF-8 stay.
func appendUnquoted(dst, p []byte, keep bool) []byte {
	for i := 0; i < len(p); {
		c := p[i]
		switch {
		case c < utf8.RuneSelf && c != '\\':
			n := 0
			dst, n = appendASCII(dst, p[i:])
			i += n
		case c != '\\':
			end := i + max(plainRun(p[i:]), 1) // in broken text a quote or control byte may be here
			dst = appendPlain(dst, p[i:end], keep)
			i = end
		case i+1 < len(p) && shortEscape[p[i+1]] != 0:
			dst = append(dst, shortEscape[p[i+1]])
			i += 2
		default:
			r, n := escapedAt(p, i)
			i += n
			if r >= 0xD800 && r < 0xE000 {
				dst = append(dst, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r&0x3F)) // WTF-8
			} else {
				dst = utf8.AppendRune(dst, r)
			}
		}
	}
	return dst
}

// appendASCII takes ASCII and the usual escapes from the beginning of p, eight bytes at a time, and returns how many
// bytes of p that were. A call for each piece between two escapes would cost more than the copying.
func appendASCII(dst, p []byte) ([]byte, int) {
	dst = slices.Grow(dst, len(p)+8)
	out := dst[len(dst):cap(dst)]
	i, n := 0, 0
	for i+8 <= len(p) && n+8 <= len(out) {
		x := binary.LittleEndian.Uint64(p[i:])
		binary.LittleEndian.PutUint64(out[n:], x)
		b := x ^ ones*'\\'
		m := (((b - ones) &^ b) | x) & highs // a borrow can only mark bytes after a true match
		if m == 0 {
			i, n = i+8, n+8
			continue
		}
		k := bits.TrailingZeros64(m) / 8
		i, n = i+k, n+k
		if i+1 >= len(p) || p[i] != '\\' || shortEscape[p[i+1]] == 0 {
			return dst[:len(dst)+n], i
		}
		out[n] = shortEscape[p[i+1]]
		i, n = i+2, n+1
	}
	for ; i < len(p) && n < len(out) && p[i] != '\\' && p[i] < utf8.RuneSelf; i++ {
		out[n] = p[i]
		n++
	}
	return dst[:len(dst)+n], i
}

// appendPlain appends text without escapes; unless keep is set, what is not UTF-8 as U+FFFD.
func appendPlain(dst, p []byte, keep bool) []byte {
	if keep || utf8.Valid(p) {
		return append(dst, p...)
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n <= 1 {
			n = badLength(string(p[:min(len(p), 4)]))
			dst = append(dst, "\uFFFD"...)
		} else {
			dst = append(dst, p[:n]...)
		}
		p = p[n:]
	}
	return dst
}

// escapeAt decodes the escape at p[i]=='\\' into a UTF-16 unit and its length in bytes.
func escapeAt(p []byte, i int) (u uint16, n int) {
	if i+1 >= len(p) {
		return '\\', 1
	}
	switch c := p[i+1]; {
	case shortEscape[c] != 0:
		return uint16(shortEscape[c]), 2
	case c == 'u':
		if i+5 >= len(p) {
			return 0xFFFD, len(p) - i
		}
		for _, h := range p[i+2 : i+6] {
			u = u<<4 | uint16(hexValue(h)&15)
		}
		return u, 6
	default:
		return uint16(c), 2
	}
}

// escapedAt decodes the escape at p[i], or the two that are a pair, into a character and the length in bytes; half a
// pair into its surrogate.
func escapedAt(p []byte, i int) (r rune, n int) {
	u, n := escapeAt(p, i)
	if u >= 0xD800 && u < 0xDC00 && i+n+5 < len(p) && p[i+n] == '\\' && p[i+n+1] == 'u' {
		if lo, m := escapeAt(p, i+n); lo >= 0xDC00 && lo < 0xE000 {
			return (rune(u)-0xD800)<<10 | (rune(lo) - 0xDC00) + 0x10000, n + m
		}
	}
	return rune(u), n
}

// Number appends f as ECMAScript prints it: -0 as 0, plain digits from 1e-6 up to below 1e21, else an exponent with
// its sign. What is no number in JSON (NaN, infinities) becomes null, as JSON.stringify makes it.
func Number(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if f == 0 {
		return append(dst, '0')
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go writes at least two exponent digits, ECMAScript as few as possible.
	if n := len(dst); n-at > 4 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// appendNumber appends the number literal lit in ECMAScript's spelling. With keep set, a literal whose value a double
// cannot hold (too many digits, too big, too small) keeps its spelling: the next reader then decides what it can hold,
// and no digit is lost.
func appendNumber(dst, lit []byte, keep bool) []byte {
	if len(lit) <= 15 && plainInteger(lit) {
		return append(dst, lit...)
	}
	f, _ := strconv.ParseFloat(string(lit), 64) // a range error still gives the infinity or zero that JavaScript has
	at := len(dst)
	dst = Number(dst, f)
	if keep && !bytes.Equal(dst[at:], lit) && !sameDecimal(dst[at:], lit) {
		return append(dst[:at], lit...)
	}
	return dst
}

// plainInteger reports whether lit is digits only, perhaps with a sign, and not -0.
func plainInteger(lit []byte) bool {
	if len(lit) > 1 && lit[0] == '-' {
		if lit[1] == '0' {
			return false
		}
		lit = lit[1:]
	}
	for _, c := range lit {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// sameDecimal reports whether two number literals denote the same decimal value in any spelling.
func sameDecimal(a, b []byte) bool {
	na, da, ea, ok1 := decimal(a)
	nb, db, eb, ok2 := decimal(b)
	if !ok1 || !ok2 {
		return false
	}
	if len(da) == 0 || len(db) == 0 {
		return len(da) == len(db)
	}
	return na == nb && ea == eb && bytes.Equal(da, db)
}

// decimal takes a literal apart: sign, significant digits without zeros at either end, and the power of ten of the
// last of them. ok is false for what is no number, or an exponent beyond reason.
func decimal(lit []byte) (neg bool, digits []byte, exp int, ok bool) {
	if len(lit) > 0 && lit[0] == '-' {
		neg, lit = true, lit[1:]
	}
	mant := lit
	if i := bytes.IndexAny(lit, "eE"); i >= 0 {
		mant = lit[:i]
		e := lit[i+1:]
		if len(e) > 0 && e[0] == '+' {
			e = e[1:]
		}
		n, err := strconv.Atoi(string(e))
		if err != nil && bytes.ContainsAny(mant, "123456789") {
			return false, nil, 0, false
		}
		exp = n
	}
	digits = make([]byte, 0, len(mant))
	point := false
	for _, c := range mant {
		switch {
		case c == '.':
			point = true
		case c >= '0' && c <= '9':
			digits = append(digits, c)
			if point {
				exp--
			}
		default:
			return false, nil, 0, false
		}
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exp++
	}
	return neg, bytes.TrimLeft(digits, "0"), exp, len(mant) > 0
}
