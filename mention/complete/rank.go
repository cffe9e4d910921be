// Package complete finds what may be meant by the beginning of a word: files and folders behind "@", commands and skills
// behind "/", and names from any list.
//
// Limits: of a workspace the first 20,000 names count, folders near the root first; a list counts for five seconds, so
// that a person who types on does not wait for the disk; 50 words are offered.
package complete

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
)

// offered bounds the words that are offered; a person types on rather than going through more.
const offered = 50

// Rank gives the words that fit what was typed, the best first. about: the description counts, too, for names that say
// nothing. A word that cannot be shown as it is is left out: it cannot be chosen.
func Rank(list []api.Completion, begun string, about bool) []api.Completion {
	type scored struct {
		api.Completion
		score int
	}
	var fits []scored
	for _, word := range list {
		score, ok := fuzzy(begun, word.Text)
		if other, fit := fuzzy(begun, word.About); about && !ok && fit {
			score, ok = other+1000, true
		}
		if ok && redact.Terminal(word.Text) == word.Text && !strings.Contains(word.Text, "\n") {
			fits = append(fits, scored{word, score})
		}
	}
	slices.SortStableFunc(fits, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	var out []api.Completion
	for _, f := range fits[:min(len(fits), offered)] {
		out = append(out, f.Completion)
	}
	return out
}

// fuzzy reports whether all characters of what was typed occur in a word in this order, and how far the word is from
// it: 0 is the word itself. A beginning is nearer than a part, a part nearer than single characters, and of those the
// ones at the beginnings of words are nearer. Nothing typed is as near to every word.
func fuzzy(begun, word string) (score int, ok bool) {
	if begun == "" {
		return 0, true
	}
	b, w := strings.ToLower(begun), strings.ToLower(word)
	rest := len(w) - len(b)
	switch i := strings.Index(w, b); {
	case i == 0:
		return min(rest, 99), true
	case i > 0 && !letterAt(w, i-1):
		return 100 + min(rest, 99), true
	case i > 0:
		return 200 + min(rest, 99), true
	}
	score, at := 300, 0
	for _, r := range b {
		i := strings.IndexRune(w[at:], r)
		if i < 0 {
			return 0, false
		}
		if i > 0 && letterAt(w, at+i-1) {
			score += min(i, 20)
		}
		at += i + len(string(r))
	}
	return score + min(len(w)/10, 50), true
}

// letterAt reports whether a letter or digit is at a byte of a text.
func letterAt(text string, i int) bool {
	r := rune(text[i])
	return r >= utf8.RuneSelf || unicode.IsLetter(r) || unicode.IsDigit(r)
}
