package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/workspace/terminal"
)

// Terminal makes text of unknown origin safe to print. It removes escape sequences, control characters except newline
// and tab, marks that turn the direction of text, and invisible format characters; bytes that are no UTF-8 become
// U+FFFD. A carriage return before a newline is removed; elsewhere it becomes a newline, so that nothing is
// overprinted. A character that joins letters or emoji, or selects their form, stays after such a character and is
// removed after an ASCII one, where it could only hide something.
func Terminal(s string) string {
	if harmless(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out strings.Builder
	out.Grow(len(s))
	var last rune // that was written
	put := func(r rune) { out.WriteRune(r); last = r }
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			put(utf8.RuneError)
		case r == 0x1b:
			n = max(terminal.Escape(s[i:]), 1)
		case r == '\r':
			put('\n')
		case joins(r):
			if keycap := strings.HasPrefix(s[i+n:], "\u20e3"); last >= utf8.RuneSelf || keycap {
				put(r)
			}
		case r == '\n' || r == '\t':
			put(r)
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co):
			// dropped
		default:
			put(r)
		}
		i += n
	}
	return out.String()
}

// joins reports whether a character has no look of its own, and changes how its
// neighbours look: joiners and selectors of a form.
func joins(r rune) bool {
	return r == 0x200C || r == 0x200D || r == 0x034F || r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF
}

func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}
