package catalog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// A segment is the index of some parts: a list of their words, and for each word and
// each number of a joint the parts that have it. It is written once. Parts whose task
// is gone stay in it until it is merged.

const (
	postSize   = 16 << 10 // bytes of lists in one row
	manyWords  = 1500     // a stretch of characters in more words than that narrows nothing
	numberBits = 20       // of a part's number in its segment
	mostParts  = 1 << numberBits
)

// owner is whose a part is, and where in its task's order it begins.
type owner struct {
	task  int64
	first int
}

// indexer makes a segment.
type indexer struct {
	owners []owner
	at     map[string]int
	words  []string
	lists  [][]uint32 // of words
	joints [][2]uint32
	text   int
}

// add takes in a part and returns its number.
func (x *indexer) add(task int64, p part) int {
	n := uint32(len(x.owners))
	x.owners = append(x.owners, owner{task, p.first})
	x.text += p.text
	if x.at == nil {
		x.at = map[string]int{}
	}
	for rest := p.words; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		i, ok := x.at[string(rest[:end])]
		if !ok {
			i = len(x.words)
			w := string(rest[:end])
			x.at[w] = i
			x.words, x.lists = append(x.words, w), append(x.lists, nil)
		}
		if l := x.lists[i]; len(l) == 0 || l[len(l)-1] != n {
			x.lists[i] = append(l, n)
		}
		rest = rest[end+1:]
	}
	for _, j := range p.joints {
		x.joints = append(x.joints, [2]uint32{j, n})
	}
	return int(n)
}

// segment is what is stored of an index.
type segment struct {
	id     int64
	owners []byte
	words  []byte // sorted, between line breaks
	count  int    // of words
	bits   int    // of a joint's number here
	posts  []post
}

// post is some lists one behind the other, each with its length in bytes before it.
type post struct {
	first int // number of its first list
	body  []byte
}

func (x *indexer) segment() segment {
	// As many joint lists as there are some parts for each: few parts need few.
	s := segment{count: len(x.words), bits: min(max(bits.Len(uint(len(x.joints)/4)), 6), jointBits)}
	for _, o := range x.owners {
		s.owners = binary.AppendUvarint(s.owners, uint64(o.task))
		s.owners = binary.AppendUvarint(s.owners, uint64(o.first))
	}
	order := make([]int, len(x.words))
	size := 1
	for i := range order {
		order[i] = i
		size += len(x.words[i]) + 1
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(x.words[a], x.words[b]) })
	all := append(make([]byte, 0, size), '\n')
	w := postWriter{}
	for _, i := range order {
		all = append(append(all, x.words[i]...), '\n')
		w.list(x.lists[i])
	}
	s.words = all
	for l := range x.byJoint(s.bits) {
		w.list(l)
	}
	s.posts = w.end()
	return s
}

// byJoint gives the parts of each joint's shortened number, also of those without.
func (x *indexer) byJoint(width int) func(func([]uint32) bool) {
	starts := make([]uint32, 1<<width+1)
	shift := jointBits - width
	for _, j := range x.joints {
		starts[j[0]>>shift+1]++
	}
	for i := range 1 << width {
		starts[i+1] += starts[i]
	}
	places, parts := slices.Clone(starts), make([]uint32, len(x.joints))
	for _, j := range x.joints { // in the order of parts
		k := j[0] >> shift
		parts[places[k]] = j[1]
		places[k]++
	}
	return func(yield func([]uint32) bool) {
		for k := range 1 << width {
			if !yield(slices.Compact(parts[starts[k]:starts[k+1]])) {
				return
			}
		}
	}
}

type postWriter struct {
	done  []post
	first int
	next  int
	body  []byte
	one   []byte
}

func (w *postWriter) list(parts []uint32) {
	w.one = w.one[:0]
	last := uint32(0)
	for _, n := range parts {
		w.one = binary.AppendUvarint(w.one, uint64(n-last))
		last = n
	}
	w.body = append(binary.AppendUvarint(w.body, uint64(len(w.one))), w.one...)
	if w.next++; len(w.body) >= postSize {
		w.flush()
	}
}

func (w *postWriter) flush() {
	w.done = append(w.done, post{w.first, slices.Clone(w.body)})
	w.first, w.body = w.next, w.body[:0]
}

func (w *postWriter) end() []post {
	if len(w.body) > 0 {
		w.flush()
	}
	return w.done
}

// lists calls f with the parts of the lists that are wanted, whose numbers rise.
func (p post) lists(wanted []int, f func(list []byte)) error {
	rest, number := p.body, p.first
	for _, want := range wanted {
		for ; ; number++ {
			n, head := binary.Uvarint(rest)
			if head <= 0 || n > uint64(len(rest)-head) {
				return fmt.Errorf("%w: a list of parts ends early", ErrDamaged)
			}
			list := rest[head : head+int(n)]
			if number == want {
				f(list)
				break
			}
			rest = rest[head+int(n):]
		}
	}
	return nil
}

// set is which parts of a segment are meant.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) has(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }

// addAll adds a list of parts, as a segment keeps it.
func (s set) addAll(list []byte) error {
	at := uint64(0)
	for len(list) > 0 {
		step, n := binary.Uvarint(list)
		if at += step; n <= 0 || at/64 >= uint64(len(s)) {
			return fmt.Errorf("%w: a list names a part that is not there", ErrDamaged)
		}
		s[at/64] |= 1 << (at % 64)
		list = list[n:]
	}
	return nil
}

func (s set) and(o set) {
	for i := range s {
		s[i] &= o[i]
	}
}

func (s set) empty() bool { return !slices.ContainsFunc(s, func(w uint64) bool { return w != 0 }) }

func fullSet(n int) set {
	s := newSet(n)
	for i := range s {
		s[i] = ^uint64(0)
	}
	return s
}

func readOwners(raw []byte) ([]owner, error) {
	d := decoder{data: raw}
	var out []owner
	for len(d.data) > 0 {
		out = append(out, owner{int64(d.uvarint()), int(d.uvarint())})
	}
	if d.bad {
		return nil, fmt.Errorf("%w: the owners of parts end early", ErrDamaged)
	}
	return out, nil
}

// numbersOf are the numbers of the words that a stretch stands in; ok is false when
// there are too many to be worth it, or when the words do not begin as words do:
// then every part is looked at, which finds what a damaged list would hide.
func numbersOf(words []byte, stretch string) (out []int, ok bool) {
	if len(words) > 0 && words[0] != '\n' {
		return nil, false
	}
	want := []byte(stretch)
	number, counted := 0, 1 // line breaks before counted; the one at 0 begins word 0
	for at := 0; ; {
		i := bytes.Index(words[at:], want)
		if i < 0 {
			return out, true
		}
		place := at + i
		if want[0] == '\n' {
			place++ // the word begins behind it
		}
		number += bytes.Count(words[counted:place], []byte("\n"))
		counted = place
		if len(out) == manyWords {
			return nil, false
		}
		out = append(out, number)
		end := bytes.IndexByte(words[place:], '\n')
		if end < 0 {
			return out, true
		}
		at = place + end // the break that the next word begins at
	}
}
