package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// gramBits is how many different grams there are. Two that share a number cost a
// look into a part for nothing, and no hit.
const gramBits = 20

// gramSet collects the grams of a part, each once. The bitmap is what makes that
// cheap: a map took five times as long.
type gramSet struct {
	seen [1 << gramBits / 64]uint64
	list []uint32
}

func (g *gramSet) add(n uint32) {
	if g.seen[n/64]&(1<<(n%64)) == 0 {
		g.seen[n/64] |= 1 << (n % 64)
		g.list = append(g.list, n)
	}
}

// reset empties the set at the cost of what is in it.
func (g *gramSet) reset() {
	for _, n := range g.list {
		g.seen[n/64] = 0
	}
	g.list = g.list[:0]
}

// tokens are the grams as the full-text table takes them.
func (g *gramSet) tokens() string {
	var b strings.Builder
	b.Grow(len(g.list) * 5)
	for i, n := range g.list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.Write(token(n))
	}
	return b.String()
}

// text adds the grams of a folded text: each three runes, and of scripts that write
// words with one or two characters these, too.
func (g *gramSet) text(folded string) {
	var a, b rune
	n := 0
	for _, c := range folded {
		n++
		if wide(c) {
			g.add(gram(0, 0, c))
			if n > 1 {
				g.add(gram(0, b, c))
			}
		}
		if n > 2 {
			g.add(gram(a, b, c))
		}
		a, b = b, c
	}
}

// wanted are the grams that every part with this term has; none when the term is
// too short to have one.
func wanted(folded string) []uint32 {
	var g gramSet
	if utf8.RuneCountInString(folded) >= 3 {
		var a, b rune
		n := 0
		for _, c := range folded {
			if n++; n > 2 {
				g.add(gram(a, b, c))
			}
			a, b = b, c
		}
		return g.list
	}
	runes := []rune(folded)
	if len(runes) == 0 || !wide(runes[len(runes)-1]) {
		return nil
	}
	if len(runes) == 2 {
		return []uint32{gram(0, runes[0], runes[1])}
	}
	return []uint32{gram(0, 0, runes[0])}
}

// gram is the number of three runes.
func gram(a, b, c rune) uint32 {
	h := uint64(a)*0x9E3779B97F4A7C15 ^ uint64(b)*0xC2B2AE3D27D4EB4F ^ uint64(c)*0x165667B19E3779F9
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return uint32(h >> (64 - gramBits))
}

const letters = "abcdefghijklmnopqrstuvwxyz234567"

// token spells a gram with four letters.
func token(n uint32) []byte {
	return []byte{letters[n>>15&31], letters[n>>10&31], letters[n>>5&31], letters[n&31]}
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
