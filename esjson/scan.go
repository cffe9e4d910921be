// Package esjson reads and writes JSON as ECMAScript does, byte for byte.
//
// Roo's files are written by JSON.stringify. To write bytes that Roo cannot distinguish
// from its own, and to change one message without touching the others, this
// package works on raw bytes: it splits, peeks, splices and re-encodes without
// ever going through Go values that would lose key order, number spelling or
// lone surrogates.
package esjson

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// state is the position of a scanner in the grammar. One resumable machine serves whole texts (Valid, Stringify) and
// streams (Split), so that both accept the same JSON.
type state uint8

const (
	wantValue      state = iota // a value must begin
	wantValueOrEnd              // after '[': a value or ']'
	wantKey                     // after ',' in an object
	wantKeyOrEnd                // after '{': a key or '}'
	wantColon
	afterValue // ',' or the closing bracket, or the end at depth 0
	inString
	inEscape
	inHex     // need more hex digits (scanner.left of them)
	inLiteral // expects the rest of true, false, null (scanner.lit)
	numMinus
	numZero
	numInt
	numDot
	numFrac
	numE
	numESign
	numExp
	broken
)

// scanner checks JSON text as JSON.parse reads it, in pieces of any size. Only memory limits the nesting: one bit per
// level and no recursion, because a hostile file may hold megabytes of '['.
type scanner struct {
	st    state
	key   bool // the string being read is a member name
	left  uint8
	lit   string
	depth int
	objs  uint64   // bit d set: level d+1 is an object
	more  []uint64 // the same for the levels from 65 on, which hardly any text reaches
	index *Index   // records the positions of values; nil = none
}

// levels returns the word with the bit of a level, counted from 0.
func (s *scanner) levels(d int) *uint64 {
	if d < 64 {
		return &s.objs
	}
	if d/64 > len(s.more) {
		s.more = append(s.more, 0)
	}
	return &s.more[d/64-1]
}

func (s *scanner) push(obj bool) {
	w, bit := s.levels(s.depth), uint64(1)<<(s.depth%64)
	if obj {
		*w |= bit
	} else {
		*w &^= bit
	}
	s.depth++
}

func (s *scanner) inObject() bool {
	d := s.depth - 1
	return d >= 0 && *s.levels(d)>>(d%64)&1 == 1
}

// complete reports whether the text may end here. A number at the top level ends only at the end of the text.
func (s *scanner) complete() bool {
	if s.depth != 0 {
		return false
	}
	switch s.st {
	case afterValue, numZero, numInt, numFrac, numExp:
		return true
	}
	return false
}

// feed continues with p and returns the number of bytes that fit the grammar. Fewer than len(p) means that the next
// byte is not allowed there, or, with stop set, that the value begun at depth 1 has just ended (afterValue).
func (s *scanner) feed(p []byte, stop bool) int {
	i := 0
	for i < len(p) {
		c := p[i]
		switch s.st {
		case inString:
			i += stringRun(p[i:])
			if i == len(p) {
				return i
			}
			switch p[i] {
			case '"':
				i++
				if s.key {
					s.key, s.st = false, wantColon
					if s.index != nil && s.depth <= s.index.limit {
						s.index.name[1] = s.index.base + i
					}
					continue
				}
				s.ended(i)
				if stop && s.depth == 1 {
					return i
				}
				continue
			case '\\':
				s.st = inEscape
			default:
				s.st = broken
				return i
			}
		case inEscape:
			switch {
			case shortEscape[c] != 0:
				s.st = inString
			case c == 'u':
				s.st, s.left = inHex, 4
				if s.index != nil {
					s.index.unicode = true
				}
			default:
				s.st = broken
				return i
			}
		case inHex:
			if !isHex(c) {
				s.st = broken
				return i
			}
			if s.left--; s.left == 0 {
				s.st = inString
			}
		case inLiteral:
			if c != s.lit[0] {
				s.st = broken
				return i
			}
			if s.lit = s.lit[1:]; s.lit == "" {
				s.ended(i + 1)
				if stop && s.depth == 1 {
					return i + 1
				}
			}
		case numMinus, numZero, numInt, numDot, numFrac, numE, numESign, numExp:
			next := s.number(c)
			if next == afterValue {
				s.ended(i)
				if stop && s.depth == 1 {
					return i
				}
				continue // c belongs to what follows
			}
			s.st = next
			if next == broken {
				return i
			}
		case broken:
			return i
		default:
			if isSpace(c) {
				i++
				continue
			}
			closed := c == ']' || c == '}'
			if s.index != nil && s.depth <= s.index.limit+1 {
				s.index.token(s, c, i)
			}
			if !s.token(c) {
				s.st = broken
				return i
			}
			if stop && closed && s.depth == 1 {
				return i + 1
			}
		}
		i++
	}
	return i
}

// ended records that a string, number or literal ends before p[at].
func (s *scanner) ended(at int) {
	s.st = afterValue
	if s.index != nil && s.depth <= s.index.limit {
		s.index.scalar(at)
	}
}

// token processes one byte that is no blank and not inside a string, number or literal.
func (s *scanner) token(c byte) bool {
	switch s.st {
	case wantValue, wantValueOrEnd:
		switch {
		case c == '"':
			s.st = inString
		case c == '{':
			s.push(true)
			s.st = wantKeyOrEnd
		case c == '[':
			s.push(false)
			s.st = wantValueOrEnd
		case c == ']' && s.st == wantValueOrEnd:
			s.depth--
			s.st = afterValue
		case c == '-':
			s.st = numMinus
		case c == '0':
			s.st = numZero
		case c >= '1' && c <= '9':
			s.st = numInt
		case c == 't':
			s.st, s.lit = inLiteral, "rue"
		case c == 'f':
			s.st, s.lit = inLiteral, "alse"
		case c == 'n':
			s.st, s.lit = inLiteral, "ull"
		default:
			return false
		}
		return true
	case wantKey, wantKeyOrEnd:
		switch {
		case c == '"':
			s.st, s.key = inString, true
		case c == '}' && s.st == wantKeyOrEnd:
			s.depth--
			s.st = afterValue
		default:
			return false
		}
		return true
	case wantColon:
		s.st = wantValue
		return c == ':'
	case afterValue:
		if s.depth == 0 {
			return false
		}
		obj := s.inObject()
		switch {
		case c == ',' && obj:
			s.st = wantKey
		case c == ',':
			s.st = wantValue
		case c == '}' && obj, c == ']' && !obj:
			s.depth--
		default:
			return false
		}
		return true
	}
	return false
}

// number returns the state after one more byte in or after a number; afterValue means that the byte is after it.
func (s *scanner) number(c byte) state {
	class := 5
	switch {
	case c == '0':
		class = 0
	case c >= '1' && c <= '9':
		class = 1
	case c == '.':
		class = 2
	case c == 'e' || c == 'E':
		class = 3
	case c == '+' || c == '-':
		class = 4
	}
	return numberStates[s.st-numMinus][class]
}

// numberStates holds, for the states from numMinus on, the next state after 0, another digit, the point, an e, a
// sign, and any other byte.
var numberStates = [...][6]state{
	{numZero, numInt, broken, broken, broken, broken},                // numMinus
	{broken, broken, numDot, numE, afterValue, afterValue},           // numZero
	{numInt, numInt, numDot, numE, afterValue, afterValue},           // numInt
	{numFrac, numFrac, broken, broken, broken, broken},               // numDot
	{numFrac, numFrac, afterValue, numE, afterValue, afterValue},     // numFrac
	{numExp, numExp, broken, broken, numESign, broken},               // numE
	{numExp, numExp, broken, broken, broken, broken},                 // numESign
	{numExp, numExp, afterValue, afterValue, afterValue, afterValue}, // numExp
}

// shortEscape is the meaning of a byte after a backslash; 0 = no escape of two bytes.
var shortEscape = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// Valid reports whether JSON.parse accepts src. It refuses a byte order mark, as JSON.parse does. Bytes that are not
// UTF-8 are valid inside strings (Node reads them as U+FFFD before parsing) and nowhere else.
func Valid(src []byte) bool {
	var s scanner
	return s.feed(src, false) == len(src) && s.complete()
}

// skipSpace returns the index of the first byte at or after i that is not a JSON blank.
func skipSpace(p []byte, i int) int {
	for i < len(p) && isSpace(p[i]) {
		i++
	}
	return i
}

// StringEnd returns the index after the string literal that begins at p[i]=='"', or len(p) when it does not end. Even
// in broken text, a quote ends the literal unless an odd number of backslashes comes before it.
func StringEnd(p []byte, i int) int {
	for i++; i < len(p); i++ {
		if i += stringRun(p[i:]); i == len(p) {
			break
		}
		switch p[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(p)
}

// skipValue returns the index after the value that begins at p[i]. It trusts p to be valid and never reads outside
// it.
func skipValue(p []byte, i int) int {
	depth := 0
	for i < len(p) {
		switch p[i] {
		case '"':
			i = StringEnd(p, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ' ', '\n', '\r', '\t', ',', ':':
			i++
			if depth > 0 {
				continue
			}
			return i
		default:
			for i++; i < len(p) && !isDelimiter(p[i]); i++ {
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(p)
}

func isDelimiter(c byte) bool {
	return isSpace(c) || c == ',' || c == ':' || c == ']' || c == '}' || c == '[' || c == '{' || c == '"'
}

// Prefix returns the index after the value that src begins with, after blanks, and whether that value is whole and
// valid. If not, n is the offset of the fault. The text after the value does not matter; after a number some byte
// must follow, since more digits could come.
func Prefix(src []byte) (n int, ok bool) {
	var s scanner
	s.push(false)
	s.st = wantValue
	n = s.feed(src, true)
	return n, s.st == afterValue && s.depth == 1
}

// Eight bytes are compared at once, as one word. The comparisons use the low seven bits of each byte, so that no sum
// carries into the next byte, and put their result in its high bit.
const (
	ones  = 0x0101010101010101
	lows  = ones * 0x7f
	highs = ones * 0x80
)

// differ sets the high bit of each byte of low that is not c.
func differ(low, c uint64) uint64 { return (low ^ ones*c) + lows }

// special sets the high bit of each byte of x that is a quote, a backslash or a control byte.
func special(x uint64) uint64 {
	low := x & lows
	return ^(differ(low, '"')&differ(low, '\\')&(low+ones*(0x80-' ')) | x) & highs
}

// plainRun counts the bytes before the first quote, backslash or control byte.
func plainRun(p []byte) int {
	i := 0
	for ; i+8 <= len(p); i += 8 {
		if m := special(binary.LittleEndian.Uint64(p[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}

// stringRun counts the bytes at the beginning of p that certainly belong to a string, if the first byte does and is
// not escaped. It stops at the quote that ends the string, or at a byte or escape that the caller must check. It
// accepts escapes of two bytes, but not \u. Message files are mostly long strings, so stringRun decides how fast they
// are read.
func stringRun(p []byte) int {
	n := plainRun(p)
	if n < len(p) && p[n] == '"' {
		return n
	}
	for {
		n += escapedWords(p[n:])
		for end := n + 16; n < end; n++ { // byte by byte, beyond the word that stopped it
			switch {
			case n == len(p):
				return n
			case p[n] == '\\' && n+1 < len(p) && shortEscape[p[n+1]] != 0:
				n++
			case p[n] == '"' || p[n] == '\\' || p[n] < ' ':
				return n
			}
		}
	}
}

// escapedWords is stringRun for whole words, without a branch for each escape: source code has one in each line, and
// mispredicted branches would cost most of the time. It stops at the word in which the run ends or a backslash is
// escaped, or at the backslash before that word. Assembly with SSE2 was rejected: it was three times as fast on this
// loop alone, but it was a second implementation of the same rules, and disks and the work after the scan decide the
// total.
func escapedWords(p []byte) int {
	i := 0
	var escaped uint64 // bit for the first byte of the word: the word before ends in a backslash
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		low := x & lows
		noQuote := differ(low, '"')
		slash := ^(differ(low, '\\') | x) & highs
		end := ^(noQuote&(low+ones*(0x80-' ')) | x) & highs
		escaped |= slash << 8
		// One comparison covers b and r, which differ in one bit, and one covers f and n.
		noEscape := noQuote & differ(low, '/') & differ(low, 't') & differ(low|ones*0x10, 'r') & differ(low|ones*0x08, 'n')
		if end&^escaped|escaped&(noEscape|x) != 0 {
			break
		}
		escaped = slash >> 56
	}
	return i - int(escaped>>7&1)
}

// Index holds the positions of the values in the upper levels of one text, found while the text is checked: one pass
// over the bytes serves callers that check a message and read its members and their parts. The zero value is empty.
// Reading the next text reuses its memory. One goroutine uses it.
type Index struct {
	src     []byte
	base    int // offset in src of the bytes that the scanner is fed
	limit   int // the deepest level that the index records, as the scanner counts
	nodes   []node
	open    []int // containers that have not ended yet
	name    [2]int
	unicode bool
}

// node is a value, in the order in which values begin.
type node struct {
	name  [2]int // begin and end of its name's literal; 0, 0 for none
	begin int
	end   int
	next  int // number of the node after it and all that it contains
}

// Read checks src and records the positions of the values in its first levels: the value itself (level 0), its
// members or elements (level 1) and so on. It returns what Valid returns; when that is false, the index is empty. The
// index keeps src, which must not change while the index is used.
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

// begin prepares for a value at a depth of the text.
func (x *Index) begin(depth, levels int) {
	*x = Index{limit: depth + levels, nodes: x.nodes[:0], open: x.open[:0]}
}

// Unicode reports whether some string or name of the text contains a \u escape. A text in UTF-8 without one holds no
// lone surrogate.
func (x *Index) Unicode() bool { return x.unicode }

// Raw returns the text of value i, without the blanks around it; value 0 is the whole text; nil if there is no value
// i.
func (x *Index) Raw(i int) []byte {
	if i < 0 || i >= len(x.nodes) {
		return nil
	}
	return x.src[x.nodes[i].begin:x.nodes[i].end:x.nodes[i].end]
}

// Parts yields the members or elements of value i: their names, nil in an array, and their numbers. It yields none
// below the deepest level that was read. A name is valid until the text changes.
func (x *Index) Parts(i int) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		if i >= len(x.nodes) {
			return
		}
		for k, end := i+1, x.nodes[i].next; k < end; k = x.nodes[k].next {
			if !yield(nameOf(x.src[x.nodes[k].name[0]:x.nodes[k].name[1]]), k) {
				return
			}
		}
	}
}

// token is called for every byte that begins or ends something, before the scanner processes it.
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
