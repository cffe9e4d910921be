package esjson

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrTooDeep is returned where nesting exceeds what JSON.stringify itself can write, or would take minutes to read.
var ErrTooDeep = errors.New("nested too deeply")

// maxDepth bounds the recursive functions, to within 64 levels. Node's own limit for writing is of this order.
const maxDepth = 5000

// maxRead bounds the bytes that the recursive functions read over all levels: about a second.
const maxRead = 1 << 31

// Stringify appends JSON.stringify(JSON.parse(src)), except where that would lose some of the user's data:
//
//   - members keep their order (ECMAScript moves integer-like names to the front), and duplicates stay in place;
//     a reader takes the last one before and after;
//   - a number that a double cannot hold keeps its spelling (ECMAScript would round it, or write null or 0);
//   - bytes in strings that are not UTF-8 stay (Node would have read U+FFFD).
//
// So JSON.parse sees the same value in src and in the result, and readers other than Node lose nothing.
// Use Node for the exact text. The result is stable: Stringify of it gives the same bytes. Any nesting works.
// The error wraps ErrSyntax and names the offset; dst is then returned as it was.
func Stringify(dst, src []byte) ([]byte, error) {
	if err := check(src); err != nil {
		return dst, err
	}
	return appendTokens(slices.Grow(dst, len(src)), src, lossless), nil
}

// spelling selects how literals are written.
type spelling uint8

const (
	asRead   spelling = iota // unchanged
	lossless                 // as ECMAScript spells them, where that loses nothing
	asNode                   // as ECMAScript spells them
)

// Compact appends src without the blanks between tokens; strings and numbers keep their spelling. It is for unchanged
// elements: it changes less than Stringify. Errors are those of Stringify.
func Compact(dst, src []byte) ([]byte, error) {
	if err := check(src); err != nil {
		return dst, err
	}
	return appendTokens(slices.Grow(dst, len(src)), src, asRead), nil
}

// check returns nil for text that JSON.parse accepts, else an error that names the offset.
func check(src []byte) error {
	var s scanner
	if n := s.feed(src, false); n < len(src) {
		return fmt.Errorf("reading JSON: unexpected byte 0x%02x at offset %d of %d: %w", src[n], n, len(src), ErrSyntax)
	}
	if !s.complete() {
		return fmt.Errorf("reading JSON: the text ends early, at offset %d: %w", len(src), ErrSyntax)
	}
	return nil
}

// appendTokens writes valid text again token by token, in the same order.
func appendTokens(dst, src []byte, how spelling) []byte {
	for i := 0; i < len(src); {
		end := i + 1
		switch c := src[i]; {
		case isSpace(c):
		case c == '"':
			end = StringEnd(src, i)
			dst = appendString(dst, src[i:end], how)
		case how != asRead && (c == '-' || c >= '0' && c <= '9'):
			end = skipValue(src, i)
			dst = appendNumber(dst, src[i:end], how)
		default:
			dst = append(dst, c)
		}
		i = end
	}
	return dst
}

// appendString writes a valid literal again. It works on the spelling and not through Unquote, so that raw bytes
// which only look like a surrogate stay as they are.
func appendString(dst, lit []byte, how spelling) []byte {
	if how == asRead {
		return append(dst, lit...)
	}
	dst = append(dst, '"')
	p := lit[1 : len(lit)-1]
	for i := 0; i < len(p); {
		if p[i] == '\\' {
			r, n := escapedAt(p, i)
			i += n
			switch {
			case utf16.IsSurrogate(r):
				dst = fmt.Appendf(dst, `\u%04x`, r)
			case r < 0x20 || r == '"' || r == '\\':
				dst = appendEscape(dst, byte(r))
			default:
				dst = utf8.AppendRune(dst, r)
			}
			continue
		}
		n := i + plainRun(p[i:])
		if how == lossless {
			dst = append(dst, p[i:n]...)
		} else {
			dst = appendPlain(dst, p[i:n])
		}
		i = n
	}
	return append(dst, '"')
}

// Node appends exactly what Node writes for JSON.stringify(JSON.parse(src)), with all its losses (see Stringify):
// integer-like names first, one member for each name, rounded numbers, U+FFFD. It is for finding out whether another
// program has rewritten a file. Errors wrap ErrSyntax or ErrTooDeep.
func Node(dst, src []byte) ([]byte, error) {
	if err := check(src); err != nil {
		return dst, err
	}
	if deep(src) {
		return dst, fmt.Errorf("writing JSON below level %d: %w", maxDepth, ErrTooDeep)
	}
	return appendNode(dst, src[skipSpace(src, 0):]), nil
}

// deep reports whether valid text is nested deeper than the recursive functions accept. They check it first, because
// each of their levels reads the text below it again: a long text may have fewer levels.
func deep(src []byte) bool {
	var s scanner
	s.feed(src, false)
	levels := (len(s.more) + 1) * 64
	return levels > maxDepth || levels > 64 && levels*len(src) > maxRead
}

func appendNode(dst, v []byte) []byte {
	switch TypeOf(v) {
	case TypeArray:
		dst = append(dst, '[')
		for e := range Array(v) {
			dst = append(appendNode(dst, e), ',')
		}
		return closed(dst, ']')
	case TypeObject:
		dst = append(dst, '{')
		for _, m := range nodeMembers(v) {
			dst = append(Quote(dst, m.name), ':')
			dst = append(appendNode(dst, m.value), ',')
		}
		return closed(dst, '}')
	}
	return appendTokens(dst, v, asNode)
}

// closed ends a list or an object with a bracket, in place of the comma after its last part.
func closed(dst []byte, bracket byte) []byte {
	return append(bytes.TrimSuffix(dst, []byte{','}), bracket)
}

type member struct {
	name  string
	value []byte
	index uint64 // see arrayIndex
}

// nodeMembers lists the properties of an object as ECMAScript orders them.
func nodeMembers(obj []byte) []member {
	var list []member
	place := map[string]int{}
	for name, value := range Members(obj) {
		if i, ok := place[name]; ok {
			list[i].value = value
			continue
		}
		place[name] = len(list)
		list = append(list, member{name, value, arrayIndex(name)})
	}
	slices.SortStableFunc(list, func(a, b member) int { return cmp.Compare(a.index, b.index) })
	return list
}

// arrayIndex returns the number that a property name spells, if the name is an array index: the decimal spelling of 0
// to 2^32-2. Every other name gets one and the same larger number.
func arrayIndex(name string) uint64 {
	n, err := strconv.ParseUint(name, 10, 32)
	if err != nil || n == math.MaxUint32 || strconv.FormatUint(n, 10) != name {
		return math.MaxUint64
	}
	return n
}

// Equal reports whether two texts are the same value for JSON.parse: members in any order, the last of duplicates,
// strings by content, numbers as doubles (so 1 and 1.0 are equal, and integers that round to the same double).
// Invalid text equals nothing. Below some 5000 levels, fewer in a text of megabytes, members must also be in the same
// order.
func Equal(a, b []byte) bool {
	if !Valid(a) || !Valid(b) {
		return false
	}
	if deep(a) || deep(b) {
		return bytes.Equal(appendTokens(nil, a, lossless), appendTokens(nil, b, lossless))
	}
	return equal(a[skipSpace(a, 0):], b[skipSpace(b, 0):])
}

func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	t := TypeOf(a)
	if t != TypeOf(b) {
		return false
	}
	switch t {
	case TypeObject:
		return maps.EqualFunc(maps.Collect(Members(a)), maps.Collect(Members(b)), equal)
	case TypeArray:
		return slices.EqualFunc(slices.Collect(Array(a)), slices.Collect(Array(b)), equal)
	case TypeString:
		sa, errA := Unquote(a)
		sb, errB := Unquote(b)
		return errA == nil && errB == nil && sa == sb
	case TypeNumber:
		fa, _ := strconv.ParseFloat(string(bytes.TrimSpace(a)), 64)
		fb, _ := strconv.ParseFloat(string(bytes.TrimSpace(b)), 64)
		return fa == fb
	}
	return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}

// dataSize is the length, in bytes, from which a string without blanks counts as data that no person can read.
const dataSize = 1 << 10

// WithoutData returns a value as JSON without white space, and without the data of files in it. It reads the text
// once, however deep the value nests.
func WithoutData(value []byte) string {
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); {
		end := i + 1
		if value[i] == '"' {
			end = StringEnd(value, i)
		}
		text := value[i:end]
		switch {
		case isSpace(text[0]):
		case len(text) > dataSize && !bytes.ContainsAny(text, " \\\n"):
			out = fmt.Appendf(out, `"[%d bytes of data]"`, len(text)-2)
		default:
			out = append(out, text...)
		}
		i = end
	}
	return string(out)
}
