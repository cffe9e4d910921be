package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/workspace/terminal"
)

// Terminal makes text of unknown origin safe to print: escape sequences go, as
// do control characters but newline and tab, marks that turn the direction of
// text, invisible format characters and bytes that are no UTF-8 (as U+FFFD). A
// carriage return before a newline goes silently; elsewhere it becomes a newline,
// so that nothing is overprinted. The joiner within emoji and words stays.
func Terminal(s string) string {
	if harmless(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			out.WriteRune(utf8.RuneError)
		case r == 0x1b:
			n = max(terminal.Escape(s[i:]), 1)
		case r == '\r':
			out.WriteByte('\n')
		case r == '\n' || r == '\t' || r == 0x200C || r == 0x200D:
			out.WriteRune(r)
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co):
			// dropped
		default:
			out.WriteRune(r)
		}
		i += n
	}
	return out.String()
}

func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}
