package esjson

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax is wrapped by every error about text that JSON.parse would refuse.
var ErrSyntax = errors.New("not JSON")

// Quote appends s as a JSON string literal, spelled as JSON.stringify spells it: short escapes for \b \t \n \f \r,
// quote and backslash, \u00xx for other control characters, \udxxx for a lone surrogate (given as its three WTF-8
// bytes), everything else unchanged. Bytes that are neither UTF-8 nor a surrogate become U+FFFD, as in Node.
func Quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c, n := s[i], 1
		if c >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(s[i:])
		}
		if n > 1 || c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		high, half := surrogateAt(s, i)
		switch {
		case c < utf8.RuneSelf:
			dst = appendEscape(dst, c)
		case half:
			n = 3
			low, _ := surrogateAt(s, i+3)
			// A pair of halves that joining strings brought together is one character, as in ECMAScript.
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				dst, n = utf8.AppendRune(dst, r), 6
			} else {
				dst = fmt.Appendf(dst, `\u%04x`, high)
			}
		default:
			n = badLength(s[i:])
			dst = append(dst, "\uFFFD"...)
		}
		i += n
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	if i := strings.IndexByte("\"\\\b\t\n\f\r", c); i >= 0 {
		return append(dst, '\\', `"\btnfr`[i])
	}
	return fmt.Appendf(dst, `\u%04x`, c)
}

// surrogateAt decodes the three-byte WTF-8 form of a lone surrogate.
func surrogateAt(s string, i int) (rune, bool) {
	if i+2 < len(s) && s[i] == 0xED && s[i+1] >= 0xA0 && s[i+1] <= 0xBF && s[i+2] >= 0x80 && s[i+2] <= 0xBF {
		return 0xD000 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F), true
	}
	return 0, false
}

// badLength returns the number of bytes at the start of s (which is not UTF-8 there) that become one U+FFFD: the
// longest beginning of a well-formed sequence, else one byte. That is the rule of the Encoding standard, which Node
// follows.
func badLength(s string) int {
	n := 1
	for n < len(s) && !utf8.FullRuneInString(s[:n+1]) {
		n++
	}
	return n
}

// Unquote decodes a JSON string literal (blanks around it are allowed) into WTF-8. A pair of surrogate escapes
// becomes one character; a lone one keeps its three bytes. Raw bytes that are not UTF-8 become U+FFFD, as for
// every reader in Node. The error wraps ErrSyntax.
func Unquote(raw []byte) (string, error) {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '"' {
		return "", fmt.Errorf("reading a string: no quote at offset %d: %w", i, ErrSyntax)
	}
	var sc scanner
	body := raw[i:]
	if n := sc.feed(body, false); n < len(body) || !sc.complete() {
		return "", fmt.Errorf("reading a string: invalid at offset %d: %w", i+n, ErrSyntax)
	}
	text := body[1:bytes.LastIndexByte(body, '"')]
	if plain(text) {
		return string(text), nil
	}
	return string(appendUnquoted(make([]byte, 0, len(text)+8), text)), nil
}

// Text returns the text of a string literal, "" for any other value.
func Text(raw []byte) string {
	if TypeOf(raw) != TypeString {
		return ""
	}
	s, _ := Unquote(raw)
	return s
}

// plain reports whether the inner text of a literal equals the text that the literal stands for.
func plain(text []byte) bool { return bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) }

// appendUnquoted decodes the inner text of a valid literal.
func appendUnquoted(dst, p []byte) []byte {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\\')
		if n < 0 {
			return appendPlain(dst, p)
		}
		dst = appendPlain(dst, p[:n])
		r, size := escapedAt(p, n)
		if utf16.IsSurrogate(r) {
			dst = append(dst, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r&0x3F)) // WTF-8
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		p = p[n+size:]
	}
	return dst
}

// appendPlain appends text without escapes, with U+FFFD for bytes that are not UTF-8.
func appendPlain(dst, p []byte) []byte {
	if utf8.Valid(p) {
		return append(dst, p...)
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n == 1 {
			n = badLength(string(p[:min(len(p), 4)]))
		}
		dst = utf8.AppendRune(dst, r)
		p = p[n:]
	}
	return dst
}

// escapeAt decodes the escape at p[i]=='\\' into a UTF-16 unit and its length in bytes.
func escapeAt(p []byte, i int) (u rune, n int) {
	if i+1 >= len(p) {
		return '\\', 1
	}
	switch c := p[i+1]; {
	case shortEscape[c] != 0:
		return rune(shortEscape[c]), 2
	case c == 'u' && i+5 >= len(p):
		return utf8.RuneError, len(p) - i
	case c == 'u':
		unit, _ := strconv.ParseUint(string(p[i+2:i+6]), 16, 16) // of broken text: 0
		return rune(unit), 6
	default:
		return rune(c), 2
	}
}

// escapedAt decodes the escape at p[i], or the pair that begins there, into a character and the length in bytes; half
// a pair becomes its surrogate.
func escapedAt(p []byte, i int) (r rune, n int) {
	r, n = escapeAt(p, i)
	if utf16.IsSurrogate(r) && i+n+5 < len(p) && p[i+n] == '\\' && p[i+n+1] == 'u' {
		low, m := escapeAt(p, i+n)
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, n + m
		}
	}
	return r, n
}

// Number appends f as ECMAScript prints it: -0 as 0, plain digits from 1e-6 up to below 1e21, else an exponent with its
// sign. NaN and infinities become null, as JSON.stringify writes them.
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

// appendNumber appends the number literal lit in ECMAScript's spelling. With how lossless, a literal keeps its
// spelling where a double cannot hold its value (too many digits, too big, too small): no digit is lost, and the next
// reader decides what it can hold.
func appendNumber(dst, lit []byte, how spelling) []byte {
	f, _ := strconv.ParseFloat(string(lit), 64) // a range error still gives the infinity or zero that JavaScript has
	at := len(dst)
	dst = Number(dst, f)
	if how == lossless && !bytes.Equal(dst[at:], lit) && !sameDecimal(f, string(dst[at:]), string(lit)) {
		return append(dst[:at], lit...)
	}
	return dst
}

// sameDecimal reports whether two spellings of a number denote the same decimal value; f is about that value. It
// returns false for a literal longer than any that a program writes, because the comparison would take long.
func sameDecimal(f float64, a, b string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(b), "e")
	if f == 0 || math.IsInf(f, 0) || len(b) > 200 {
		return f == 0 && !strings.ContainsAny(mantissa, "123456789")
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

// Type is the kind of a JSON value.
type Type uint8

// String returns the kind's name in lower case.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "invalid"
}

// TypeOf returns the kind of a value by its first byte after blanks. It does not check the rest; see Valid.
func TypeOf(raw []byte) Type {
	i := skipSpace(raw, 0)
	if i == len(raw) {
		return TypeInvalid
	}
	switch c := raw[i]; {
	case c == '{':
		return TypeObject
	case c == '[':
		return TypeArray
	case c == '"':
		return TypeString
	case c == '-' || c >= '0' && c <= '9':
		return TypeNumber
	case c == 't' || c == 'f':
		return TypeBool
	case c == 'n':
		return TypeNull
	}
	return TypeInvalid
}

// nameOf returns the name that a literal spells. It shares memory with the literal if possible.
func nameOf(lit []byte) []byte {
	if len(lit) < 2 {
		return nil
	}
	if text := lit[1 : len(lit)-1]; !plain(text) {
		return appendUnquoted(nil, text)
	}
	return lit[1 : len(lit)-1]
}

// isName reports whether the name literal lit spells key.
func isName(lit []byte, key string) bool { return len(lit) > 1 && string(nameOf(lit)) == key }
