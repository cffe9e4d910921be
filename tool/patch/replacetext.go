package patch

import (
	"fmt"
	"sort"
	"strings"
)

// plainText is a text with plain line feeds, and the way back to the bytes of the file.
// A model writes line feeds for any file.
type plainText struct {
	raw  string
	text string
	cuts []int // places in text of line feeds that had a carriage return before them
}

func flatten(raw string) plainText {
	f := plainText{raw: raw, text: raw}
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
func (f plainText) at(i int) int { return i + sort.SearchInts(f.cuts, i) }

// occurrences are the places of old in the text, overlapping ones too: "aa" is in
// "aaa" twice, and nothing shows which of them is meant.
func (f plainText) occurrences(old string) []int {
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
func (f plainText) replace(old, fresh string, places []int) string {
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

// PlainEnds writes line feeds for line ends.
func PlainEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// Replacement is one text for another.
type Replacement struct {
	Old, New string
	Times    int  // how many places there are to be; 0 = one or more
	Tolerant bool // other blanks will do where the text is not there as given
}

// Apply makes one replacement. why is the reason when it cannot be made.
func (r Replacement) Apply(text, name string) (out, why string) {
	if r.Old == "" {
		if text != "" {
			return "", "old_string is empty."
		}
		return r.New, ""
	}
	f := flatten(text)
	places := f.occurrences(r.Old)
	n := len(places)
	if r.Times != 1 {
		n = separate(places, len(r.Old)) // for one place an overlapping second one is a doubt too
	}
	if n == 0 && r.Tolerant {
		text, places, ok := r.replaceTolerantly(f)
		if ok {
			return text, ""
		}
		n = places
	}
	switch {
	case n == 0:
		return "", fmt.Sprintf("the old text was not found in %s. It must be there as given, with the same blanks. Read the "+
			"file and copy it.", name)
	case r.Times == 1 && n > 1:
		return "", fmt.Sprintf("the old text occurs %d times in %s, so it is not clear which place is meant. Give more of "+
			"the lines around it, or ask for all of them.", n, name)
	case r.Times > 1 && n != r.Times:
		return "", fmt.Sprintf("the old text occurs %d times in %s and not %d times as expected.", n, name, r.Times)
	}
	return f.replace(r.Old, r.New, places), ""
}
