package checkpoint

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// contextLines is how many equal lines a patch shows around a change.
const contextLines = 3

// hunks writes the edits of one text as a unified diff without file headers.
func hunks(out *bytes.Buffer, a, b [][]byte, edits []edit) {
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].from-edits[n-1].to <= 2*contextLines {
			n++
		}
		hunk(out, a, b, edits[:n])
		edits = edits[n:]
	}
}

func hunk(out *bytes.Buffer, a, b [][]byte, edits []edit) {
	first, last := edits[0], edits[len(edits)-1]
	from, newFrom := first.from, first.newFrom
	lead := min(contextLines, from)
	from, newFrom = from-lead, newFrom-lead
	trail := min(contextLines, len(a)-last.to)
	to, newTo := last.to+trail, last.newTo+trail
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(from, to), span(newFrom, newTo))
	at := from
	for _, e := range edits {
		signed(out, ' ', a[at:e.from])
		signed(out, '-', a[e.from:e.to])
		signed(out, '+', b[e.newFrom:e.newTo])
		at = e.to
	}
	signed(out, ' ', a[at:to])
}

// span is a hunk's first line and how many there are, as diff and git write them: of
// none it is the line before.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return strconv.Itoa(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func signed(out *bytes.Buffer, sign byte, lines [][]byte) {
	for _, l := range lines {
		out.WriteByte(sign)
		out.Write(l)
		if l[len(l)-1] != '\n' {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// named is a path as a patch names it: quoted, as git does, where it holds what would
// break the line or a terminal.
func named(prefix, p string) string {
	p = prefix + filepath.ToSlash(OnDisk(p))
	if !strings.ContainsFunc(p, func(r rune) bool {
		return r == '"' || r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r)
	}) {
		return p
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(p) {
		switch c := p[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
