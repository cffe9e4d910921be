package filetool

import (
	"sort"
	"strings"
)

// flat is a text with plain line feeds, and the way back to the bytes of the file.
// A model writes line feeds, whatever the file has.
type flat struct {
	raw  string
	text string
	cuts []int // places in text of line feeds that had a carriage return before them
}

func flatten(raw string) flat {
	f := flat{raw: raw, text: raw}
	if !strings.Contains(raw, "\r\n") {
		return f
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\r' && i+1 < len(raw) && raw[i+1] == '\n' {
			f.cuts = append(f.cuts, b.Len())
			continue
		}
		b.WriteByte(raw[i])
	}
	f.text = b.String()
	return f
}

// at is the place in raw of a place in text. A place before a line feed is before its
// carriage return too.
func (f flat) at(i int) int { return i + sort.SearchInts(f.cuts, i) }

// occurrences are the places of old in the text, overlapping ones too: "aa" is in
// "aaa" twice, and which of them is meant cannot be told.
func (f flat) occurrences(old string) []int {
	var out []int
	for from := 0; ; {
		i := strings.Index(f.text[from:], old)
		if i < 0 {
			return out
		}
		out = append(out, from+i)
		from += i + 1
	}
}

// replace puts fresh in the place of old at the given places, those that overlap the
// one before them left out. Its line ends are those of what it replaces, else those
// of the file.
func (f flat) replace(old, fresh string, places []int) string {
	var b strings.Builder
	end, done := 0, 0
	for _, p := range places {
		if p < end {
			continue
		}
		from, to := f.at(p), f.at(p+len(old))
		b.WriteString(f.raw[done:from])
		b.WriteString(withEnds(fresh, f.raw[from:to], f.raw))
		end, done = p+len(old), to
	}
	return b.String() + f.raw[done:]
}

func withEnds(fresh, replaced, file string) string {
	like := file
	if strings.Contains(replaced, "\n") {
		like = replaced
	}
	if lineEnd(like) == "\r\n" {
		return strings.ReplaceAll(fresh, "\n", "\r\n")
	}
	return fresh
}

// separate is how many of the places do not overlap.
func separate(places []int, size int) int {
	n, end := 0, 0
	for _, p := range places {
		if p >= end {
			n, end = n+1, p+size
		}
	}
	return n
}

// plainEnds writes line feeds for line ends.
func plainEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
