package view

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
)

// object reports whether text is a JSON object; the JSON in messages may be damaged.
func object(text string) ([]byte, bool) {
	raw := []byte(text)
	if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
		return nil, false
	}
	return raw, true
}

func str(raw []byte, key string) string { s, _ := esjson.GetString(raw, key); return s }

func set(names string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		out[name] = true
	}
	return out
}

// short is the beginning of s, n bytes at most, without half a character.
func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Count writes a number of tokens for people, cut and not rounded: 950, 1.2k, 34k,
// 1.2M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000:
		return fmt.Sprintf("%d.%dk", n/1000, n%1000/100)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%d.%dM", n/1_000_000, n%1_000_000/100_000)
}

// lineEnds are the ways to end a line. A single carriage return is one, too: the output of progress bars is full of them,
// and a terminal would overwrite the line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func unixEnds(text string) string { return lineEnds.Replace(text) }

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func joinWords(a, b string) string { return strings.TrimSpace(a + " " + b) }
