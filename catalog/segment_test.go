package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// listOf reads one list of a segment.
func (s segment) listOf(t testing.TB, number, parts int) []int {
	t.Helper()
	at := slices.IndexFunc(s.posts, func(p post) bool { return p.first > number })
	if at < 0 {
		at = len(s.posts)
	}
	has := newSet(parts)
	check(t, s.posts[at-1].lists([]int{number}, func(list []byte) { check(t, has.addAll(list)) }))
	var out []int
	for n := range parts {
		if has.has(n) {
			out = append(out, n)
		}
	}
	return out
}

// A segment says of each word and joint which parts have it, however many there are,
// also when a part names one twice.
func TestSegmentSaysWhereWordsAre(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var x indexer
		parts := rapid.IntRange(1, 200).Draw(r, "parts")
		words, joints := map[string][]int{}, map[uint32][]int{}
		for n := range parts {
			p := part{first: n * 3}
			for range rapid.IntRange(0, 8).Draw(r, "words") {
				i := rapid.IntRange(0, 60).Draw(r, "word")
				w := fmt.Sprint("w", i)
				p.words, p.joints = append(p.words, w+"\n"...), append(p.joints, uint32(i*4001))
				if l := words[w]; len(l) == 0 || l[len(l)-1] != n {
					words[w], joints[uint32(i*4001)] = append(l, n), append(joints[uint32(i*4001)], n)
				}
			}
			if got := x.add(7, p); got != n {
				r.Fatalf("part %d is number %d", n, got)
			}
		}
		s := x.segment()
		if s.count != len(words) {
			r.Errorf("%d words, want %d", s.count, len(words))
		}
		for w, want := range words {
			number, ok := numbersOf(s.words, "\n"+w+"\n")
			if !ok || len(number) != 1 {
				r.Fatalf("%q is at %v", w, number)
			}
			if diff := cmp.Diff(want, s.listOf(t, number[0], parts)); diff != "" {
				r.Errorf("%q: %s", w, diff)
			}
		}
		for j, want := range joints {
			got := s.listOf(t, s.count+int(j>>(jointBits-s.bits)), parts)
			for _, n := range want { // others may share the number
				if !slices.Contains(got, n) {
					r.Errorf("joint %d is not in part %d: %v", j, n, got)
				}
			}
		}
		owners, err := readOwners(s.owners)
		check(t, err)
		if len(owners) != parts || owners[parts-1] != (owner{7, parts*3 - 3}) {
			r.Errorf("owners %v", owners)
		}
	})
}

func TestNumbersOf(t *testing.T) {
	words := []byte("\nab\nabc\nbc\nx\nxab\n")
	for _, c := range []struct {
		stretch string
		want    []int
	}{
		{"ab", []int{0, 1, 4}}, {"\nab", []int{0, 1}}, {"ab\n", []int{0, 4}}, {"\nab\n", []int{0}}, {"\nx\n", []int{3}},
		{"c", []int{1, 2}}, {"nowhere", nil}, {"b", []int{0, 1, 2, 4}}, {"\nxab\n", []int{4}},
	} {
		got, ok := numbersOf(words, c.stretch)
		if diff := cmp.Diff(c.want, got); diff != "" || !ok {
			t.Errorf("%q: %s", c.stretch, diff)
		}
	}
	if got, ok := numbersOf([]byte("\n"), "a"); len(got) > 0 || !ok {
		t.Errorf("of no words: %v", got)
	}
	if _, ok := numbersOf([]byte("a word without its break"), "a"); ok {
		t.Error("a list of words that does not begin as one narrowed a search")
	}
	if _, ok := numbersOf(bytes.Repeat([]byte("\na"), manyWords+2), "a"); ok {
		t.Error("a letter that is in every word narrows nothing, and was followed")
	}
}

// Lists of any bytes are read or damaged.
func FuzzLists(f *testing.F) {
	var w postWriter
	w.list([]uint32{1, 5, 300})
	w.list(nil)
	f.Add(w.end()[0].body, 2)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2}, 0)
	f.Add([]byte("a"), 0)
	f.Add([]byte{9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0)
	f.Fuzz(func(t *testing.T, data []byte, want int) {
		has := newSet(400)
		err := post{0, data}.lists([]int{want & 0xff}, func(list []byte) {
			if err := has.addAll(list); err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("error %v", err)
			}
		})
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
		if _, err := readOwners(data); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
		numbersOf(data, strings.Repeat("\n", want&1)+"a")
	})
}
