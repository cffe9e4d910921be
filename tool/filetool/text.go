package filetool

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// isSpace is \s and trim() of ECMAScript. unicode.IsSpace differs: it takes
// U+0085 and not U+FEFF.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}

func trim(s string) string      { return strings.TrimFunc(s, isSpace) }
func trimLeft(s string) string  { return strings.TrimLeftFunc(s, isSpace) }
func trimRight(s string) string { return strings.TrimRightFunc(s, isSpace) }

// units gives the length in UTF-16 code units. A lone surrogate, three bytes
// that are not UTF-8, is one.
func units(s string) int {
	n := 0
	for i := 0; i < len(s); {
		r, size := decode(s[i:])
		i += size
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// cut keeps at most n UTF-16 code units, and never half of a character: a
// JavaScript substring would leave a lone surrogate there.
func cut(s string, n int) string {
	for i := 0; i < len(s); {
		r, size := decode(s[i:])
		if n--; r > 0xFFFF {
			n--
		}
		if n < 0 {
			return s[:i]
		}
		i += size
	}
	return s
}

// utf16of is the text as JavaScript holds it.
func utf16of(s string) []uint16 {
	out := make([]uint16, 0, len(s))
	for i := 0; i < len(s); {
		r, size := decode(s[i:])
		i += size
		if r >= 0xD800 && r < 0xE000 {
			out = append(out, uint16(r))
			continue
		}
		out = utf16.AppendRune(out, r)
	}
	return out
}

// decode is utf8.DecodeRuneInString that also takes lone surrogates.
func decode(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 && len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, size
}

// splitLines cuts at \n or \r\n; the line ends are not kept.
func splitLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i, l := range lines[:len(lines)-1] {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

var plainer = strings.NewReplacer(
	"\u201c", `"`, "\u201d", `"`, "\u2018", "'", "\u2019", "'",
	"\u2026", "...", "\u2014", "-", "\u2013", "-", "\u00a0", " ")

// normalLine is a line without typography, runs of blanks and blank ends.
func normalLine(s string) string {
	s = plainer.Replace(s)
	if !strings.ContainsFunc(s, isSpace) {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, isSpace), " ")
}

// normalText is normalLine for lines joined with line feeds.
func normalText(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if l = normalLine(l); l == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(l)
	}
	return b.String()
}
