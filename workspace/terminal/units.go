package terminal

import (
	"unicode/utf16"
	"unicode/utf8"
)

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// length is the number of UTF-16 code units in s.
func length(s string) int {
	if ascii(s) {
		return len(s)
	}
	return len(units(s))
}

// units converts to UTF-16. The three-byte form of a surrogate becomes that
// surrogate, any other bad byte U+FFFD.
func units(s string) []uint16 {
	out := make([]uint16, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			if u, ok := surrogate(s[i:]); ok {
				out = append(out, u)
				i += 3
				continue
			}
		}
		out = utf16.AppendRune(out, r)
		i += n
	}
	return out
}

func surrogate(s string) (uint16, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | uint16(s[1]&0x3F)<<6 | uint16(s[2]&0x3F), true
}

// text is the reverse of units.
func text(u []uint16) string {
	out := make([]byte, 0, len(u))
	for i := 0; i < len(u); i++ {
		c := u[i]
		switch {
		case high(c) && i+1 < len(u) && low(u[i+1]):
			out = utf8.AppendRune(out, utf16.DecodeRune(rune(c), rune(u[i+1])))
			i++
		case high(c) || low(c):
			out = append(out, 0xED, 0x80|byte(c>>6)&0x3F, 0x80|byte(c)&0x3F)
		default:
			out = utf8.AppendRune(out, rune(c))
		}
	}
	return string(out)
}

func high(c uint16) bool { return c >= 0xD800 && c < 0xDC00 }
func low(c uint16) bool  { return c >= 0xDC00 && c < 0xE000 }

// splits reports whether a cut before u[i] falls inside a pair.
func splits(u []uint16, i int) bool {
	return i > 0 && i < len(u) && high(u[i-1]) && low(u[i])
}
