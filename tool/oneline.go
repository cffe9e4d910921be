package tool

import (
	"strings"
)

// OneLine makes text from a model fit for Ask.Title: the first line that is not
// blank, in which characters that act on a terminal or turn text around are
// replaced by U+FFFD. A person decides by this line.
func OneLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(s, "\r\n"), "\n")
	return strings.Map(func(r rune) rune {
		if misleading(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimRight(line, "\r"), "\uFFFD"))
}
