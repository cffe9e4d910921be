package filetool

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shown is a name as it is put into lines of text, for the model and for a person.
// A name with line ends, escape sequences, characters that turn text around or
// bytes that are no UTF-8 is quoted: it could else pass for other lines, or act on
// a terminal on which somebody decides.
func shown(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, misleading) {
		return name
	}
	return strconv.Quote(name)
}

func misleading(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Bidi_Control, r)
}

func shownAll(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = shown(n)
	}
	return strings.Join(out, ", ")
}
