package tool

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SafeName is a file name as it is put into lines of text, for the model and for a person. A
// name with line ends, escape sequences, characters that turn text around or bytes that are
// no UTF-8 is quoted: otherwise it could pass for other lines, or act on the terminal on which
// a person decides.
func SafeName(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, misleading) {
		return name
	}
	return strconv.Quote(name)
}

// SafeNames is SafeName for several names, with commas between them.
func SafeNames(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = SafeName(n)
	}
	return strings.Join(out, ", ")
}

// misleading reports whether a character acts on a terminal or turns text around.
func misleading(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Bidi_Control, r)
}
