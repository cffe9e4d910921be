package patch

import (
	"strings"

	"github.com/roost-dev/roost/tool/linetext"
)

// maxTolerant is the largest text that is searched with other blanks, in bytes, and
// maxTolerantSteps how many words are compared at most: a text of nothing but one
// word would take for ever.
const (
	maxTolerant      = 4 << 20
	maxTolerantSteps = 1 << 24
)

// span is a stretch of a text.
type span struct{ from, to int }

// How much blanks may differ.
const (
	sameLines = iota // runs of blanks in a line differ, and how many line ends are between lines
	anyBlanks        // any blanks match any others, and those around the text do not count
)

// findTolerant gives the places where a text occurs with other blanks, overlapping
// ones too, at most one more than limit: words (what is between blanks) are the
// same, and where one has blanks the other has some. The first word may be the end of
// a longer one and the last the beginning of one, as in an exact search. Models forget how a
// file is indented, or write blanks for tabs; they hardly ever get a word wrong that they
// have seen.
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

// splitWords are the stretches without blanks.
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

// replaceTolerantly makes a replacement where the text occurs with other blanks. n is how
// many places there are, when ok is false.
func (r Replacement) replaceTolerantly(f plainText) (out string, n int, ok bool) {
	for how := sameLines; how <= anyBlanks; how++ {
		places := findTolerant(f.text, r.Old, how, r.Times)
		if len(places) == 0 {
			continue
		}
		if len(places) != r.Times {
			return "", len(places), false
		}
		var b strings.Builder
		done, end := 0, 0
		for _, p := range places {
			if p.from < end {
				return "", len(places), false // two that overlap: it is not clear which is meant
			}
			end = p.to
			place, fresh := r.refit(f.text, p)
			from, to := f.at(place.from), f.at(place.to)
			b.WriteString(f.raw[done:from])
			b.WriteString(withEnds(fresh, f.raw[from:to], f.raw))
			done = to
		}
		return b.String() + f.raw[done:], len(places), true
	}
	return "", 0, false
}

// refit gives what to put where for a place that was found with other blanks. Those
// around it are the file's, and lines are indented as the file indents the lines that
// the model gave: to take the model's would spoil what goes by indentation.
func (r Replacement) refit(text string, p span) (place span, fresh string) {
	fresh = r.New
	if linetext.TrimRight(r.Old) != r.Old {
		fresh = linetext.TrimRight(fresh)
	}
	start := strings.LastIndexByte(text[:p.from], '\n') + 1
	lead := text[start:p.from]
	if linetext.Trim(lead) != "" { // in the middle of a line
		if linetext.TrimLeft(r.Old) != r.Old {
			fresh = linetext.TrimLeft(fresh)
		}
		return p, fresh
	}
	if linetext.Trim(fresh) == "" && strings.HasSuffix(r.Old, "\n") {
		if rest, _, ended := strings.Cut(text[p.to:], "\n"); ended && linetext.Trim(rest) == "" {
			return span{start, p.to + len(rest) + 1}, "" // whole lines go with their ends
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
	return span{start, p.to}, strings.Join(lines, "\n")
}
