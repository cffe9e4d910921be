// Package linetext measures, cuts, compares and numbers lines of text as Roo does, which is
// JavaScript: lengths are UTF-16 code units, blanks are those of ECMAScript, and lone
// surrogates (three bytes that are not UTF-8) count as one unit. It is pure.
package linetext

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/workspace/terminal"
)

// IsSpace is \s and trim() of ECMAScript. unicode.IsSpace differs: it takes
// U+0085 and not U+FEFF.
func IsSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}

// Trim removes the blanks of ECMAScript from both ends.
func Trim(s string) string { return strings.TrimFunc(s, IsSpace) }

// TrimLeft removes blanks from the beginning.
func TrimLeft(s string) string { return strings.TrimLeftFunc(s, IsSpace) }

// TrimRight removes blanks from the end.
func TrimRight(s string) string { return strings.TrimRightFunc(s, IsSpace) }

// Units gives the length in UTF-16 code units. A lone surrogate, three bytes
// that are not UTF-8, is one.
func Units(s string) int {
	n := 0
	for i := 0; i < len(s); {
		r, size := DecodeRune(s[i:])
		i += size
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// Cut keeps at most n UTF-16 code units, and never half of a character: a
// JavaScript substring would leave a lone surrogate there.
func Cut(s string, n int) string {
	for i := 0; i < len(s); {
		r, size := DecodeRune(s[i:])
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

// UTF16 returns the text as JavaScript holds it.
func UTF16(s string) []uint16 {
	out := make([]uint16, 0, len(s))
	for i := 0; i < len(s); {
		r, size := DecodeRune(s[i:])
		i += size
		if r >= 0xD800 && r < 0xE000 {
			out = append(out, uint16(r))
			continue
		}
		out = utf16.AppendRune(out, r)
	}
	return out
}

// DecodeRune is utf8.DecodeRuneInString that also takes lone surrogates.
func DecodeRune(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 && len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, size
}

// SplitLines cuts at \n or \r\n; the line ends are not kept.
func SplitLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i, l := range lines[:len(lines)-1] {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// PlainTypography writes typographic quotes, dashes, ellipses and blanks as a keyboard would.
var PlainTypography = strings.NewReplacer(
	"\u201c", `"`, "\u201d", `"`, "\u2018", "'", "\u2019", "'",
	"\u2026", "...", "\u2014", "-", "\u2013", "-", "\u00a0", " ")

// NormalLine is a line without typography, runs of blanks and blank ends.
func NormalLine(s string) string {
	s = PlainTypography.Replace(s)
	if !strings.ContainsFunc(s, IsSpace) {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, IsSpace), " ")
}

// NormalText is NormalLine for lines joined with line feeds.
func NormalText(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if l = NormalLine(l); l == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(l)
	}
	return b.String()
}

// WholeEnd is a text without the beginning of a character at its end.
func WholeEnd(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// MaxLine is how much of a line is shown, in UTF-16 code units.
const MaxLine = 2000

// Numbered prefixes lines with their numbers, right-aligned, from first on.
func Numbered(lines []string, first int) string {
	short := make([]string, len(lines))
	for i, l := range lines {
		short[i] = Shorten(l)
	}
	return terminal.Number(short, first)
}

// Shorten cuts a line to MaxLine units, with an ellipsis at the end.
func Shorten(line string) string {
	if len(line) > MaxLine && Units(line) > MaxLine {
		return Cut(line, MaxLine-3) + "..."
	}
	return line
}
