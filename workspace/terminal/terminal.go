// Package terminal turns output for a terminal into text for a model: overwritten lines are resolved, repeated lines
// folded, long output cut in the middle. The functions are pure.
//
// Lengths and offsets are UTF-16 code units, as in the tasks that other tools wrote; strings are UTF-8 in which a
// lone surrogate, where the input holds one, has its three-byte form. No function makes a lone surrogate: where a cut
// would fall inside a pair, the other half is dropped, too.
package terminal

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

// Overwrite resolves carriage returns: within a line, the text after one replaces the text before it, up to its own
// length. An empty piece replaces nothing.
func Overwrite(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.IndexByte(line, '\r') >= 0 {
			lines[i] = overwriteLine(line)
		}
	}
	return strings.Join(lines, "\n")
}

func overwriteLine(line string) string {
	pieces := strings.Split(line, "\r")
	cur := UTF16(pieces[0])
	for _, p := range pieces[1:] {
		u := UTF16(p)
		n := len(u)
		if n >= len(cur) {
			cur = u
			continue
		}
		// Half a pair cannot stay: a blank takes its place.
		half := n > 0 && (high(u[n-1]) || low(cur[n]))
		copy(cur, u)
		if half {
			cur[n] = ' '
		}
	}
	return text(cur)
}

// Erase resolves backspaces: each removes the code unit before it, also across lines. Half a pair that remains at the
// end is removed, too.
func Erase(s string) string {
	if strings.IndexByte(s, '\b') < 0 {
		return s
	}
	u := UTF16(s)
	out := u[:0]
	var halves []int // where in out a pair lost its second half
	for _, c := range u {
		if c != '\b' {
			out = append(out, c)
			continue
		}
		n := len(out) - 1
		if n < 0 {
			continue
		}
		if len(halves) > 0 && halves[len(halves)-1] == n {
			halves = halves[:len(halves)-1]
		}
		if splits(out, n) {
			halves = append(halves, n-1)
		}
		out = out[:n]
	}
	kept := out[:0]
	for i, c := range out {
		if len(halves) > 0 && halves[0] == i {
			halves = halves[1:]
			continue
		}
		kept = append(kept, c)
	}
	return text(kept)
}

// Plain removes escape sequences (colours, cursor movement, titles, links) and control characters, except newline,
// tab, carriage return and backspace, which Overwrite and Erase resolve. It also removes a sequence that the end of s
// cuts off.
func Plain(s string) string {
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

// Escape returns the length of the escape sequence that s begins with; s begins with ESC. Control strings (OSC, DCS,
// APC, PM, SOS) end at BEL or ST, or before the next line: a sequence without an end must not remove the text after
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

// FoldRepeats replaces runs of equal lines by the line and a note of how often it was repeated, if the note is
// shorter than the run. The result may still be a little longer than the run; this is Roo's rule.
func FoldRepeats(s string) string {
	var out strings.Builder
	for s != "" {
		line := s
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			line = s[:i+1]
		}
		n := 1
		for strings.HasPrefix(s[n*len(line):], line) && strings.HasSuffix(line, "\n") {
			n++
		}
		run := s[:n*len(line)]
		s = s[len(run):]
		note := fmt.Sprintf("<previous line repeated %d additional times>\n", n-1)
		if n > 1 && len(note) < n*Units(line) {
			out.WriteString(line)
			out.WriteString(note)
			continue
		}
		out.WriteString(run)
	}
	return out.String()
}

// headShare is the share of a limit for the beginning, one fifth; errors are mostly at the end.
const headShare = 5

// Truncate cuts the middle out of s. It first checks the limit on characters; when it cuts because of that, it
// ignores the limit on lines. 0 = no limit.
func Truncate(s string, lines, chars int) string {
	if chars > 0 {
		if cut, ok := truncateChars(s, chars); ok {
			return cut
		}
	}
	if lines > 0 {
		return truncateLines(s, lines)
	}
	return s
}

func truncateChars(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return "", false // never more units than bytes
	}
	u := UTF16(s)
	if len(u) <= limit {
		return "", false
	}
	before := limit / headShare
	after := len(u) - (limit - before)
	if splits(u, before) {
		before--
	}
	if splits(u, after) {
		after++
	}
	return text(u[:before]) + fmt.Sprintf("\n[...%d characters omitted...]\n", after-before) + text(u[after:]), true
}

func truncateLines(s string, limit int) string {
	total := strings.Count(s, "\n") + 1
	if total <= limit {
		return s
	}
	before := limit / headShare
	start := 0
	for range before {
		start += strings.IndexByte(s[start:], '\n') + 1
	}
	end := len(s)
	for n := limit - before; n > 0; n-- {
		end = strings.LastIndexByte(s[:end], '\n')
	}
	return s[:start] + fmt.Sprintf("\n[...%d lines omitted...]\n\n", total-limit) + s[end+1:]
}

// Number puts "<number> | " before each line, right-aligned, counting from first. No
// line end follows the last one.
func Number(lines []string, first int) string {
	if len(lines) == 0 {
		return ""
	}
	width := len(strconv.Itoa(first + len(lines) - 1))
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		number := strconv.Itoa(first + i)
		b.WriteString(strings.Repeat(" ", width-len(number)) + number + " | " + l)
	}
	return b.String()
}

// StripNumbers removes the numbers that Number adds, from the lines that have them. The aggressive form also removes
// a bare "| ", and requires a blank after the bar. Line ends become CRLF when there is any CRLF.
func StripNumbers(s string, aggressive bool) string {
	end := "\n"
	if strings.Contains(s, "\r\n") {
		end = "\r\n"
	}
	form := numbered()
	if aggressive {
		form = barred()
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if i < len(lines)-1 {
			line = strings.TrimSuffix(line, "\r")
		}
		if m := form.FindStringSubmatch(line); m != nil {
			line = strings.Join(m[1:], "")
		}
		lines[i] = line
	}
	return strings.Join(lines, end)
}

var (
	numbered = lazyregexp.New(`^` + Space + `*[0-9]+` + Space + `+\|(?:` + Space + `(` + inLine + `*)|()|([^|` + lineEnds + `]` + inLine + `*))$`)
	barred   = lazyregexp.New(`^` + Space + `*(?:[0-9]+` + Space + `)?\|` + Space + `(` + inLine + `*)$`)
)

// Space is a character class: \s of ECMAScript.
const Space = `[\t\n\v\f\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]`

// inLine matches any character but lineEnds, like the dot of ECMAScript.
const (
	lineEnds = `\n\r\x{2028}\x{2029}`
	inLine   = `[^` + lineEnds + `]`
)

// Units returns the length in UTF-16 code units.
func Units(s string) int {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return len(s)
	}
	return len(UTF16(s))
}

// WholeEnd returns a text without an incomplete character at its end.
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

// Ends cuts the kept beginning and end of an output back to whole lines, where a line end is near, or else to whole
// characters: half a line may be half a secret, which masking does not recognise.
func Ends(head, tail []byte) (wholeHead, wholeTail []byte) {
	if i := bytes.LastIndexByte(head, '\n'); i >= len(head)/2 {
		head = head[:i+1]
	} else {
		head = WholeEnd(head)
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		return head, tail[i+1:]
	}
	for i := 0; i < utf8.UTFMax && i < len(tail); i++ {
		if utf8.RuneStart(tail[i]) {
			return head, tail[i:]
		}
	}
	return head, tail
}

// Size returns a number of bytes in the form of Roo's texts about outputs.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1fKB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1fMB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1fGB", float64(n)/(1<<30))
}

// UTF16 returns a text as JavaScript represents it. A byte that is not UTF-8 becomes U+FFFD.
func UTF16(s string) []uint16 {
	out := make([]uint16, 0, len(s))
	for i := 0; i < len(s); {
		r, size := DecodeRune(s[i:])
		i += size
		if utf16.IsSurrogate(r) {
			out = append(out, uint16(r))
			continue
		}
		out = utf16.AppendRune(out, r)
	}
	return out
}

// DecodeRune is utf8.DecodeRuneInString, except that it also accepts lone surrogates, in their three-byte form.
func DecodeRune(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 && len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, size
}

// WellFormed replaces lone surrogates, which esjson keeps in their three bytes, by one U+FFFD each, as every encoder
// does. strings.ToValidUTF8 would make one of several.
func WellFormed(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, n := DecodeRune(s[i:])
		out.WriteRune(r) // a surrogate becomes U+FFFD
		i += n
	}
	return out.String()
}

// text returns the reverse of UTF16.
func text(u []uint16) string {
	out := make([]byte, 0, len(u))
	for i := 0; i < len(u); i++ {
		c := u[i]
		switch {
		case high(c) && i+1 < len(u) && low(u[i+1]):
			out = utf8.AppendRune(out, utf16.DecodeRune(rune(c), rune(u[i+1])))
			i++
		case high(c) || low(c):
			out = append(out, 0xED, 0x80|byte(c>>6)&0x3F, 0x80|byte(c)&0x3F)
		default:
			out = utf8.AppendRune(out, rune(c))
		}
	}
	return string(out)
}

func high(c uint16) bool { return c >= 0xD800 && c < 0xDC00 }
func low(c uint16) bool  { return c >= 0xDC00 && c < 0xE000 }

// splits reports whether a cut before u[i] falls inside a pair.
func splits(u []uint16, i int) bool {
	return i > 0 && i < len(u) && high(u[i-1]) && low(u[i])
}
