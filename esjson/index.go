package esjson

import "iter"

// Index holds the upper levels of one text, found while it is checked: one pass over the bytes serves callers that
// check a message, take its members apart and look into the parts. The zero value is empty. Reading the next text
// reuses its memory. It is for use by one goroutine.
type Index struct {
	src     []byte
	base    int // where the bytes that the scanner is fed begin in src
	limit   int // the deepest level that the index records, as the scanner counts
	nodes   []node
	open    []int // containers that have not ended
	name    [2]int
	unicode bool
}

// node is a value, in the order in which values begin.
type node struct {
	name  [2]int // where its name's literal begins and ends; 0, 0 for none
	begin int
	end   int
	next  int // the node after it and all that it contains
}

// Read checks src and records where the values of its first levels are: the value itself (level 0), its members or
// elements (level 1) and so on. It returns what Valid returns; when that is false, the index is empty. The index keeps
// src, which must not change while the index is used.
func (x *Index) Read(src []byte, levels int) bool {
	*x = Index{src: src, limit: levels, nodes: x.nodes[:0], open: x.open[:0]}
	s := scanner{index: x}
	if n := s.feed(src, false); n < len(src) || !s.complete() {
		*x = Index{nodes: x.nodes[:0], open: x.open[:0]}
		return false
	}
	if x.nodes[0].end == 0 { // a number that ends with the text
		x.scalar(len(src))
	}
	return true
}

// begin prepares for a value at the given depth of what the scanner reads.
func (x *Index) begin(depth, levels int) {
	*x = Index{limit: depth + levels, nodes: x.nodes[:0], open: x.open[:0]}
}

// Unicode reports whether some string or name of the text contains a \u escape. Without one there is no lone surrogate
// in a text that is UTF-8.
func (x *Index) Unicode() bool { return x.unicode }

// Raw is the text of value i, without the blanks around it; value 0 is the whole.
func (x *Index) Raw(i int) []byte {
	if i >= len(x.nodes) {
		return nil
	}
	return x.src[x.nodes[i].begin:x.nodes[i].end:x.nodes[i].end]
}

// Parts yields the members or elements of value i: their names, nil in an array, and their numbers. There are none
// below the deepest level that was read. A name is valid until the next step.
func (x *Index) Parts(i int) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		for k, end := x.Within(i); k < end; k = x.Next(k) {
			if !yield(x.Name(k), k) {
				return
			}
		}
	}
}

// Within is Parts for loops that must not allocate: it returns the number of the first part of value i, from which Next
// leads to the others, and the end. For a value without parts, first equals end.
func (x *Index) Within(i int) (first, end int) {
	if i >= len(x.nodes) {
		return i + 1, i + 1
	}
	return i + 1, x.nodes[i].next
}

// Next is the number of the part after part k.
func (x *Index) Next(k int) int { return x.nodes[k].next }

// Name is the name of value k, nil for an element of an array. It is valid until the text changes.
func (x *Index) Name(k int) []byte {
	n := x.nodes[k].name
	if n[1] == 0 {
		return nil
	}
	name, exact := inner(x.src[n[0]:n[1]])
	if !exact {
		name = appendUnquoted(nil, name, false)
	}
	return name
}

// token is called with every byte that begins or ends something, before the scanner takes it.
func (x *Index) token(s *scanner, c byte, at int) {
	at += x.base
	switch s.st {
	case wantKey, wantKeyOrEnd:
		if c == '"' {
			if s.depth <= x.limit {
				x.name = [2]int{at, at}
			}
			return
		}
	case wantValue, wantValueOrEnd:
		if c != ']' {
			if s.depth > x.limit {
				return
			}
			if c == '{' || c == '[' {
				x.open = append(x.open, len(x.nodes))
			}
			x.nodes = append(x.nodes, node{name: x.name, begin: at})
			x.name = [2]int{}
			return
		}
	case afterValue:
	default:
		return
	}
	if (c == '}' || c == ']') && s.depth-1 <= x.limit && len(x.open) > 0 {
		last := len(x.open) - 1
		n := &x.nodes[x.open[last]]
		n.end, n.next = at+1, len(x.nodes)
		x.open = x.open[:last]
	}
}

// scalar ends the newest value, which contains no others.
func (x *Index) scalar(end int) {
	n := &x.nodes[len(x.nodes)-1]
	n.end, n.next = x.base+end, len(x.nodes)
}
