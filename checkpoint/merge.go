package checkpoint

import (
	"bytes"
	"unicode/utf8"
)

// maxMerge is how many bytes each text of a merge may have. People do not check larger
// ones line by line.
const maxMerge = 4 << 20

// MergeText merges two changes of one text, line by line: what mine and theirs each changed of base. ok is false where
// they changed the same or touching lines in two ways, and where one of the texts is not text or too large: then there
// is no result. The same change on both sides is no conflict.
//
// Touching lines count as the same: two adjacent changes are seldom independent, and no person checks this merge before
// it is written.
func MergeText(base, mine, theirs []byte) (merged []byte, ok bool) {
	switch {
	case bytes.Equal(mine, theirs), bytes.Equal(base, theirs):
		return mine, true
	case bytes.Equal(base, mine):
		return theirs, true
	}
	for _, t := range [][]byte{base, mine, theirs} {
		if !isText(t) || len(t) > maxMerge {
			return nil, false
		}
	}
	b, m, t := splitLines(base), splitLines(mine), splitLines(theirs)
	left, right := diffLines(b, m), diffLines(b, t)
	at := 0 // in base
	for len(left) > 0 || len(right) > 0 {
		switch {
		case len(right) == 0 || len(left) > 0 && left[0].before(right[0]):
			merged = apply(merged, b[at:left[0].from], m[left[0].newFrom:left[0].newTo])
			at, left = left[0].to, left[1:]
		case len(left) == 0 || right[0].before(left[0]):
			merged = apply(merged, b[at:right[0].from], t[right[0].newFrom:right[0].newTo])
			at, right = right[0].to, right[1:]
		case left[0].same(right[0], m, t):
			merged = apply(merged, b[at:left[0].from], m[left[0].newFrom:left[0].newTo])
			at, left, right = left[0].to, left[1:], right[1:]
		default:
			return nil, false
		}
	}
	return apply(merged, b[at:], nil), true
}

func apply(out []byte, kept, added [][]byte) []byte {
	for _, list := range [][][]byte{kept, added} {
		for _, l := range list {
			out = append(out, l...)
		}
	}
	return out
}

// before: the edit ends before the other begins, with a line between them.
func (e edit) before(o edit) bool { return e.to < o.from }

// same reports whether two edits do the same.
func (e edit) same(o edit, mine, theirs [][]byte) bool {
	if e.from != o.from || e.to != o.to || e.newTo-e.newFrom != o.newTo-o.newFrom {
		return false
	}
	for i := range e.newTo - e.newFrom {
		if !bytes.Equal(mine[e.newFrom+i], theirs[o.newFrom+i]) {
			return false
		}
	}
	return true
}

// isText distinguishes text from bytes without lines.
func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }
