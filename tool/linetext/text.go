// Package linetext measures, cuts, compares and numbers lines of text as Roo does, which is
// JavaScript: lengths are UTF-16 code units, blanks are those of ECMAScript, and lone
// surrogates (three bytes that are not UTF-8) count as one unit. It is pure.
package linetext

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/workspace/terminal"
)

// IsSpace is \s and trim() of ECMAScript. unicode.IsSpace differs: it includes U+0085 and not U+FEFF.
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

// Cut keeps at most n UTF-16 code units, and never half of a character: a
// JavaScript substring would leave a lone surrogate there.
func Cut(s string, n int) string {
	for i := 0; i < len(s); {
		r, size := terminal.DecodeRune(s[i:])
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

// SplitLines cuts at \n or \r\n and drops the line ends.
func SplitLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i, l := range lines[:len(lines)-1] {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// PlainTypography replaces typographic quotes, dashes, ellipses and blanks by the characters of a keyboard.
var PlainTypography = strings.NewReplacer(
	"\u201c", `"`, "\u201d", `"`, "\u2018", "'", "\u2019", "'",
	"\u2026", "...", "\u2014", "-", "\u2013", "-", "\u00a0", " ")

// NormalLine returns a line without typography, with runs of blanks made one, and without blanks at the ends.
func NormalLine(s string) string {
	return strings.Join(strings.FieldsFunc(PlainTypography.Replace(s), IsSpace), " ")
}

// MaxLine is the length up to which a line is shown, in UTF-16 code units.
const MaxLine = 2000

// Numbered prefixes lines with their right-aligned numbers, which begin at first.
func Numbered(lines []string, first int) string {
	return terminal.Number(api.Each(lines, Shorten), first)
}

// Shorten cuts a line to MaxLine units, with an ellipsis at the end.
func Shorten(line string) string {
	if len(line) > MaxLine && terminal.Units(line) > MaxLine {
		return Cut(line, MaxLine-3) + "..."
	}
	return line
}

// Lines yields the lines of a text with their ends; each is valid until the next one is read. If a line exceeds limit
// by more than 8 KB, Lines yields its beginning and its end.
func Lines(r io.Reader, limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		br := bufio.NewReaderSize(r, 8<<10)
		for {
			line, err := br.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long := bytes.Clone(line)
				for errors.Is(err, bufio.ErrBufferFull) {
					line, err = br.ReadSlice('\n')
					long = append(long, line[:min(len(line), max(0, limit-len(long)))]...)
				}
				if err == nil && long[len(long)-1] != '\n' {
					long = append(long, '\n')
				}
				line = long
			}
			ended := errors.Is(err, io.EOF)
			if err != nil && !ended {
				yield(nil, err)
				return
			}
			if len(line) > 0 && !yield(line, nil) || ended {
				return
			}
		}
	}
}
