package patch

import (
	"fmt"
	"sort"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/tool/linetext"
)

// plainText is a text with plain line feeds, which can be mapped back to the bytes of the file. A model writes line
// feeds for any file.
type plainText struct {
	raw  string
	text string
	cuts []int // places in text of line feeds that had a carriage return before them
}

func flatten(raw string) plainText {
	parts := strings.Split(raw, "\r\n")
	f := plainText{raw: raw, text: strings.Join(parts, "\n")}
	at := 0
	for _, part := range parts[:len(parts)-1] {
		f.cuts = append(f.cuts, at+len(part))
		at += len(part) + 1
	}
	return f
}

// at returns the place in raw for a place in text. A place before a line feed is also before its carriage return.
func (f plainText) at(i int) int { return i + sort.SearchInts(f.cuts, i) }

// occurrences returns the places of old in the text, overlapping ones too: "aa" is in "aaa" twice, and nothing shows
// which of the two is meant.
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

// edit is a place in the text that gets a new text.
type edit struct {
	span
	fresh string
}

// replace makes edits that do not overlap, in their order. The new text gets the line ends of the text it replaces,
// otherwise those of the file.
func (f plainText) replace(edits []edit) string {
	var b strings.Builder
	done := 0
	for _, e := range edits {
		from, to := f.at(e.from), f.at(e.to)
		b.WriteString(f.raw[done:from])
		b.WriteString(withEnds(e.fresh, f.raw[from:to], f.raw))
		done = to
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

// separate returns the places that do not overlap an earlier one.
func separate(places []int, size int) (out []int) {
	end := 0
	for _, p := range places {
		if p >= end {
			out, end = append(out, p), p+size
		}
	}
	return out
}

// PlainEnds replaces line ends by line feeds.
func PlainEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// Replacement replaces one text by another.
type Replacement struct {
	Old, New string
	Times    int  // expected number of places; 0 = one or more
	Tolerant bool // if the text does not occur exactly, accept other blanks
}

// Apply makes one replacement. If it cannot, why is the reason.
func (r Replacement) Apply(text, name string) (out, why string) {
	if r.Old == "" {
		if text != "" {
			return "", "old_string is empty."
		}
		return r.New, ""
	}
	f := flatten(text)
	places := f.occurrences(r.Old)
	if r.Times != 1 {
		places = separate(places, len(r.Old)) // for one place an overlapping second one is a doubt too
	}
	n := len(places)
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
	return f.replace(api.Each(places, func(p int) edit { return edit{span{p, p + len(r.Old)}, r.New} })), ""
}

// maxTolerant is the largest text, in bytes, that is searched with other blanks, and maxTolerantSteps the most words
// that are compared: a text of one repeated word would take for ever.
const (
	maxTolerant      = 4 << 20
	maxTolerantSteps = 1 << 24
)

// span is a stretch of a text.
type span struct{ from, to int }

// How blanks may differ.
const (
	sameLines = iota // runs of blanks within a line may differ, and the number of line ends between lines
	anyBlanks        // any blanks match any others, and blanks around the text are ignored
)

// findTolerant returns the places where a text occurs with other blanks, overlapping ones too, at most one more than
// limit: the words (what is between blanks) are equal, and both have blanks in the same places. The first word may be
// the end of a longer one and the last the beginning of one, as in an exact search. Models forget how a file is
// indented, or write blanks for tabs; they hardly ever get a word wrong that they have seen.
func findTolerant(text, old string, how, limit int) []span {
	want := splitWords(old)
	if len(want) == 0 || len(text) > maxTolerant {
		return nil
	}
	words := splitWords(text)
	var out []span
	steps := 0
next:
	for i := 0; i+len(want) <= len(words) && len(out) <= limit; i++ {
		for j, w := range want {
			if steps++; steps > maxTolerantSteps {
				return nil
			}
			has, wants := text[words[i+j].from:words[i+j].to], old[w.from:w.to]
			switch {
			case has == wants:
			case len(want) == 1: // a single word that is not there exactly
				continue next
			case j == 0 && strings.HasSuffix(has, wants):
			case j == len(want)-1 && strings.HasPrefix(has, wants):
			default:
				continue next
			}
			if j > 0 && how == sameLines {
				a := text[words[i+j-1].to:words[i+j].from]
				b := old[want[j-1].to:w.from]
				if strings.Contains(a, "\n") != strings.Contains(b, "\n") {
					continue next
				}
			}
		}
		first, last := want[0], want[len(want)-1]
		s := span{words[i].to - (first.to - first.from), words[i+len(want)-1].from + (last.to - last.from)}
		if len(want) == 1 {
			s.to = s.from + (first.to - first.from)
		}
		out = append(out, s)
	}
	return out
}

// splitWords returns the stretches without blanks.
func splitWords(s string) []span {
	var out []span
	from := -1
	for i, r := range s {
		switch blank := linetext.IsSpace(r); {
		case blank && from >= 0:
			out, from = append(out, span{from, i}), -1
		case !blank && from < 0:
			from = i
		}
	}
	if from >= 0 {
		out = append(out, span{from, len(s)})
	}
	return out
}

// replaceTolerantly replaces the text where it occurs with other blanks. When ok is false, n is the number of places.
func (r Replacement) replaceTolerantly(f plainText) (out string, n int, ok bool) {
	for how := sameLines; how <= anyBlanks; how++ {
		places := findTolerant(f.text, r.Old, how, r.Times)
		if len(places) == 0 {
			continue
		}
		if len(places) != r.Times {
			return "", len(places), false
		}
		var edits []edit
		end := 0
		for _, p := range places {
			if p.from < end {
				return "", len(places), false // two that overlap: it is not clear which is meant
			}
			end = p.to
			edits = append(edits, r.refit(f.text, p))
		}
		return f.replace(edits), len(places), true
	}
	return "", 0, false
}

// refit returns the exact place and the new text, for a place that was found with other blanks. The blanks around the
// place stay the file's, and refit indents the new lines as the file indents the lines that the model gave: the
// model's indentation would break languages in which indentation has a meaning.
func (r Replacement) refit(text string, p span) edit {
	fresh := r.New
	if linetext.TrimRight(r.Old) != r.Old {
		fresh = linetext.TrimRight(fresh)
	}
	start := strings.LastIndexByte(text[:p.from], '\n') + 1
	lead := text[start:p.from]
	if linetext.Trim(lead) != "" { // in the middle of a line
		if linetext.TrimLeft(r.Old) != r.Old {
			fresh = linetext.TrimLeft(fresh)
		}
		return edit{p, fresh}
	}
	if linetext.Trim(fresh) == "" && strings.HasSuffix(r.Old, "\n") {
		if rest, _, ended := strings.Cut(text[p.to:], "\n"); ended && linetext.Trim(rest) == "" {
			return edit{span{start, p.to + len(rest) + 1}, ""} // whole lines go with their ends
		}
	}
	old := r.Old[len(r.Old)-len(linetext.TrimLeft(r.Old)):]
	model := r.Old[:len(r.Old)-len(old)]
	if strings.Contains(model, "\n") {
		fresh = strings.TrimLeft(fresh, "\n")
	}
	indents := map[string]string{model[strings.LastIndexByte(model, '\n')+1:]: lead}
	was, is := strings.Split(old, "\n"), strings.Split(text[p.from:p.to], "\n")
	for i := 1; i < min(len(was), len(is)) && linetext.NormalLine(was[i]) == linetext.NormalLine(is[i]); i++ {
		model, file := indentOf(was[i]), indentOf(is[i])
		if _, known := indents[model]; !known && linetext.Trim(was[i]) != "" {
			indents[model] = file
		}
	}
	lines := strings.Split(fresh, "\n")
	for i, l := range lines {
		has := indentOf(l)
		for n := len(has); n >= 0 && len(l) > len(has); n-- {
			if to, ok := indents[has[:n]]; ok {
				lines[i] = to + l[n:]
				break
			}
		}
	}
	return edit{span{start, p.to}, strings.Join(lines, "\n")}
}
