// Package complete completes the beginning of a word: files and folders after "@", commands and skills after "/", and
// names from any list.
//
// Limits: it uses the first 20,000 names of a workspace, folders near the root first; a list is reused for five
// seconds, so that a person who keeps typing does not wait for the disk; it offers 50 words.
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

// offered bounds the offered words; rather than read more, a person types another letter.
const offered = 50

// Rank returns the words that match the typed beginning, the best first. about: descriptions are matched too, for
// names that mean nothing to people. It leaves out a word that cannot be shown unchanged, since nobody can choose it.
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
	return api.Each(fits[:min(len(fits), offered)], func(f scored) api.Completion { return f.Completion })
}

// fuzzy reports whether all typed characters occur in a word in this order, and the distance of the word: 0 is an
// equal word. A beginning is nearer than a part, a part nearer than single characters, and single characters at the
// beginnings of words are nearer than others. The empty text is equally near to every word.
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
