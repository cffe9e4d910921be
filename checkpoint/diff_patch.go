package checkpoint

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// patch is a unified diff of two texts, with the two lines of headers in front.
func patch(old, made string, a, b [][]byte, edits []edit) (string, error) {
	offsets := make([]int, len(a)+1)
	for i, l := range a {
		offsets[i+1] = offsets[i] + len(l)
	}
	list := make([]udiff.Edit, len(edits))
	for i, e := range edits {
		list[i] = udiff.Edit{Start: offsets[e.from], End: offsets[e.to], New: string(bytes.Join(b[e.newFrom:e.newTo], nil))}
	}
	text, err := udiff.ToUnified(old, made, string(bytes.Join(a, nil)), list, udiff.DefaultContextLines)
	if err != nil {
		return "", fmt.Errorf("write the patch: %w", err)
	}
	return text, nil
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
