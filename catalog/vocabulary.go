package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Vocabulary holds every word of all parts. A term may be a part of a word, so a search first looks the term up here.
type Vocabulary []WordList

// WordList is a list of words as a backend keeps it. It never changes under its ID.
type WordList struct {
	ID    int64
	Words []byte // a line break before the first word and after each word
}

// OpenWordList reads what Pack returned. Errors wrap ErrDamaged.
func OpenWordList(id int64, packed []byte) (WordList, error) {
	words, err := coders().dec.DecodeAll(packed, nil)
	if err != nil || len(words) < 2 || words[0] != '\n' || words[len(words)-1] != '\n' {
		return WordList{}, fmt.Errorf("%w: its vocabulary cannot be read", ErrDamaged)
	}
	return WordList{id, words}, nil
}

// Pack returns the list in the form that a backend keeps.
func (l WordList) Pack() []byte { return coders().enc.EncodeAll(l.Words, nil) }

// mostLists is the number of lists of words above which Extend joins some into one: every search reads all lists.
const mostLists = 16

// WordSet are the words of some parts.
type WordSet map[string]struct{}

// Add adds the words of a part.
func (w WordSet) Add(p Kept) {
	for line := range bytes.Lines(p.Words) {
		word := line[:len(line)-1]
		if _, ok := w[string(word)]; !ok { // the lookup makes no copy of the word
			w[string(word)] = struct{}{}
		}
	}
}

// Extend removes from w the words that the vocabulary already has. It returns a list of the other words, which
// replaces the old lists with the IDs instead; the list has no Words when no word is new. Words of removed tasks
// stay: each costs a search a lookup.
func (v Vocabulary) Extend(w WordSet) (add WordList, instead []int64) {
	for _, list := range v {
		for line := range bytes.Lines(list.Words[1:]) {
			delete(w, string(line[:len(line)-1]))
		}
	}
	if len(w) == 0 {
		return add, nil
	}
	add.Words = []byte("\n" + strings.Join(slices.Sorted(maps.Keys(w)), "\n") + "\n")
	if len(v) < mostLists {
		return add, nil
	}
	// The short lists become one, and the longest stays until the others have as many words. So the bytes that one new
	// word costs, for the writer and for each server that holds the lists in memory, do not grow with the vocabulary.
	old := slices.SortedFunc(slices.Values(v), func(a, b WordList) int { return cmp.Compare(len(a.Words), len(b.Words)) })
	for i, list := range old {
		if i == len(old)-1 && len(list.Words) > len(add.Words) {
			break
		}
		add.Words = append(add.Words, list.Words[1:]...)
		instead = append(instead, list.ID)
	}
	return add, instead
}

// manyWords bounds the words that a search looks up for one term. A term that occurs in more words is in most parts,
// and looking up its words takes longer than reading the parts.
const manyWords = 200

// with returns the words that contain stretch; ok is false when there are more than manyWords. A line break in
// stretch is the edge of a word.
func (v Vocabulary) with(stretch string) (out []string, ok bool) {
	want := []byte(stretch)
	for _, l := range v {
		list := l.Words
		for at := 0; ; {
			i := bytes.Index(list[at:], want)
			if i < 0 {
				break
			}
			place := at + i
			if want[0] == '\n' {
				place++ // the word begins behind it
			}
			if len(out) == manyWords {
				return nil, false
			}
			from := bytes.LastIndexByte(list[:place], '\n') + 1
			end := place + bytes.IndexByte(list[place:], '\n')
			out = append(out, string(list[from:end]))
			at = end // the break that the next word begins at
		}
	}
	return out, true
}

// Lookup is what a part must have for a hit: one word of each of Words, and all Joints. An empty Lookup allows any
// part.
type Lookup struct {
	Words  [][]string
	Joints []uint32
}

// lookup finds the words that contain the wanted terms; ok is false when no part can contain them.
func (v Vocabulary) lookup(w wanted) (l Lookup, ok bool) {
	for _, stretch := range w.words {
		words, ok := v.with(stretch)
		switch {
		case !ok:
		case len(words) == 0:
			return Lookup{}, false
		default:
			l.Words = append(l.Words, words)
		}
	}
	l.Joints = w.joints
	return l, true
}
