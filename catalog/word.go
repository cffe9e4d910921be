package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text is runs of word characters, with something or nothing between them. What is
// not ASCII counts as a word character. An underscore does not: the words of
// identifiers are few, the identifiers are many. Scripts that write words with one or two
// characters make runs of their own, which are kept as single characters and pairs.

const (
	longWord = 64 // bytes; a longer word is kept in overlapping pieces
	halfWord = longWord / 2
	edge     = 3 // bytes of a run that a joint keeps

	jointBits = 18 // of a joint's number
)

type runeClass byte

const (
	between runeClass = iota
	letter
	ideograph
)

// classAt is the class of the rune at the beginning of a folded text, and its length.
func classAt(s string) (runeClass, int) {
	if c := s[0]; c < utf8.RuneSelf {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return letter, 1
		}
		return between, 1
	}
	c, n := utf8.DecodeRuneInString(s)
	if wide(c) {
		return ideograph, n
	}
	return letter, n
}

// run is a stretch of a text of one class.
type run struct {
	class    runeClass
	from, to int
}

// nextRun is the first run behind a place; ok is false when there is none.
func nextRun(s string, at int) (r run, ok bool) {
	for at < len(s) {
		class, n := classAt(s[at:])
		if class == between {
			at += n
			continue
		}
		r = run{class, at, at + n}
		for r.to < len(s) {
			c, n := classAt(s[r.to:])
			if c != class {
				break
			}
			r.to += n
		}
		return r, true
	}
	return run{}, false
}

// features collects what the index keeps of a part: its words, and which ends of
// words stand beside which. The bitmap makes the latter cheap.
type features struct {
	seen   map[string]struct{}
	words  []byte // each with a line break behind it
	joined [1 << jointBits / 64]uint64
	joints []uint32
}

func (f *features) word(w string) {
	if _, ok := f.seen[w]; ok {
		return
	}
	if f.seen == nil {
		f.seen = map[string]struct{}{}
	}
	f.seen[w] = struct{}{}
	f.words = append(append(f.words, w...), '\n')
}

func (f *features) joint(n uint32) {
	if f.joined[n/64]&(1<<(n%64)) == 0 {
		f.joined[n/64] |= 1 << (n % 64)
		f.joints = append(f.joints, n)
	}
}

// reset empties the set at the cost of what is in it.
func (f *features) reset() {
	clear(f.seen)
	for _, n := range f.joints {
		f.joined[n/64] = 0
	}
	f.words, f.joints = f.words[:0], f.joints[:0]
}

// text adds the features of a folded text.
func (f *features) text(s string) {
	last, ok := run{}, false
	for at := 0; ; {
		r, more := nextRun(s, at)
		if !more {
			return
		}
		f.run(s[r.from:r.to], r.class)
		if ok {
			f.joint(joint(s[last.from:last.to], s[last.to:r.from], s[r.from:r.to]))
		}
		last, ok, at = r, true, r.to
	}
}

func (f *features) run(s string, class runeClass) {
	if class == ideograph {
		each(s, func(one, two string) {
			f.word(one)
			if two != "" {
				f.word(two)
			}
		})
		return
	}
	// Each stretch of half a piece's length is whole in one piece.
	for len(s) > longWord {
		f.word(s[:longWord])
		s = s[halfWord:]
	}
	f.word(s)
}

// each gives every character of a run, and it with the one before it.
func each(s string, f func(one, two string)) {
	before := -1
	for i, c := range s {
		end := i + utf8.RuneLen(c)
		two := ""
		if before >= 0 {
			two = s[before:end]
		}
		f(s[i:end], two)
		before = i
	}
}

// joint is the number of a place where one run ends and the next begins.
func joint(a, gap, b string) uint32 {
	h := uint64(14695981039346656037)
	add := func(s string) {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	add(a[max(0, len(a)-edge):])
	add(gap)
	add(b[:min(edge, len(b))])
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return uint32(h >> (64 - jointBits))
}

// wanted is what a part must have to hold a query.
type wanted struct {
	words  []string // as they are looked for in a list of words, each between line breaks
	joints []uint32
}

// want adds what each text with this term in it has.
func (w *wanted) want(term string) {
	last, ok := run{}, false
	for at := 0; ; {
		r, more := nextRun(term, at)
		if !more {
			return
		}
		w.run(term, r)
		if ok && (last.from > 0 || last.to-last.from >= edge) && (r.to < len(term) || r.to-r.from >= edge) {
			w.joints = append(w.joints, joint(term[last.from:last.to], term[last.to:r.from], term[r.from:r.to]))
		}
		last, ok, at = r, true, r.to
	}
}

// run adds a run of a term. At the term's ends the text's run may go on.
func (w *wanted) run(term string, r run) {
	s := term[r.from:r.to]
	if r.class == ideograph {
		n := 0
		each(s, func(_, two string) {
			if n++; two != "" {
				w.words = append(w.words, "\n"+two+"\n")
			}
		})
		if n == 1 {
			w.words = append(w.words, "\n"+s+"\n")
		}
		return
	}
	if len(s) > halfWord {
		for ; len(s) > halfWord; s = s[halfWord:] {
			w.words = append(w.words, s[:halfWord])
		}
		return
	}
	if r.from > 0 {
		s = "\n" + s
	}
	if r.to < len(term) {
		s += "\n"
	}
	w.words = append(w.words, s)
}

// wide reports whether a rune is of a script whose words are one or two characters.
func wide(c rune) bool {
	return c >= 0x1100 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// fold is a text without case. Every rune stays one rune, so that places in the
// folded text can be found in the text; and what is not ASCII does not become ASCII,
// so that a term can be looked for in bytes.
func fold(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return strings.Map(foldRune, s)
		}
	}
	return strings.ToLower(s)
}

func foldRune(c rune) rune {
	l := unicode.ToLower(c)
	if l < utf8.RuneSelf && c >= utf8.RuneSelf {
		return c // the Kelvin sign, the dotted I
	}
	return l
}
