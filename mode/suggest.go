package mode

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// UnknownError: there is no mode with that slug.
type UnknownError struct {
	Slug    string
	Closest []string // similar slugs, the best first
	Known   []string // all slugs
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no mode %q; there are %s", e.Slug, strings.Join(e.Known, ", "))
}

// Lookup is Find with a helpful error: an *UnknownError.
func (s Set) Lookup(slug string) (Mode, error) {
	if m, ok := s.Find(slug); ok {
		return m, nil
	}
	return Mode{}, &UnknownError{Slug: slug, Closest: s.closestSlugs(slug), Known: s.Slugs()}
}

// closestSlugs returns the slugs of modes whose slug or name resembles the given one.
func (s Set) closestSlugs(given string) []string {
	type scored struct {
		slug  string
		score int
	}
	word := normalizeName(given)
	var found []scored
	for _, m := range s.All() {
		score := min(distance(word, normalizeName(m.Slug)), distance(word, normalizeName(m.Name)))
		if word != "" && (strings.HasPrefix(normalizeName(m.Slug), word) || strings.HasPrefix(word, normalizeName(m.Slug))) {
			score = min(score, 1)
		}
		if score <= max(1, len(word)/3) {
			found = append(found, scored{m.Slug, score})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return a.score - b.score })
	var out []string
	for _, f := range found {
		out = append(out, f.slug)
	}
	return out
}

// normalizeName reduces a name to its lower-case letters and digits.
func normalizeName(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s[:min(len(s), 64)])
}

// distance is how many letters must be inserted, removed, changed or swapped with the next one.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			d := rows[i][j]
			if x[i] != y[j] {
				d = 1 + min(d, rows[i][j+1], rows[i+1][j])
			}
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(x)][len(y)]
}
