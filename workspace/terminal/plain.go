package terminal

import "strings"

// Plain removes escape sequences (colours, cursor movement, titles, links) and
// control characters, except newline, tab, carriage return and backspace, which
// Overwrite and Erase resolve. A sequence that the end of s cuts off is removed as
// far as it goes.
func Plain(s string) string {
	if !controlled(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == 0x1b:
			i += Escape(s[i:])
		case c == 0xC2 && i+1 < len(s) && s[i+1] >= 0x80 && s[i+1] < 0xA0: // a C1 control in UTF-8
			i += 2
		case c == '\n' || c == '\t' || c == '\r' || c == '\b' || c >= 0x20 && c != 0x7f:
			out.WriteByte(c)
			i++
		default:
			i++
		}
	}
	return out.String()
}

func controlled(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\n' && c != '\t' || c == 0x7f || c == 0xC2 {
			return true
		}
	}
	return false
}

// Escape returns the length of the escape sequence that s begins with; s begins with ESC. Control strings (OSC, DCS,
// APC, PM, SOS) end at BEL or ST, or before the next line: a sequence without an end must not swallow the text behind
// it.
func Escape(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == '\n' || s[i] == 0x1b:
				return i
			}
		}
		return len(s)
	}
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f { // intermediate bytes
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		i++
	}
	return i
}
