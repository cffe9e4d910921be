package esjson

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// ErrTooDeep is returned where nesting goes beyond what JSON.stringify itself can write.
var ErrTooDeep = errors.New("nested too deeply")

// maxDepth bounds the recursive functions, to within 64 levels. Node's own limit for writing is of this order.
const maxDepth = 5000

// Stringify appends JSON.stringify(JSON.parse(src)), except where that would lose some of the user's data:
//
//   - members keep their order (ECMAScript moves integer-like names to the front) and duplicates stay, in place;
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
	dst = slices.Grow(dst, len(src))
	return appendTokens(dst, src, true), nil
}

// Compact appends src without the blanks between tokens; strings and numbers keep their spelling. It is for unchanged
// elements: it changes less than Stringify. Errors are those of Stringify.
func Compact(dst, src []byte) ([]byte, error) {
	if err := check(src); err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, len(src))
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case isSpace(c):
			i++
		case c == '"':
			end := StringEnd(src, i)
			dst = append(dst, src[i:end]...)
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst, nil
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

// appendTokens re-encodes valid text token by token, in the order it has.
func appendTokens(dst, src []byte, keep bool) []byte {
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case isSpace(c):
			i++
		case c == '"':
			end := StringEnd(src, i)
			dst = appendString(dst, src[i:end], keep)
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := skipValue(src, i)
			dst = appendNumber(dst, src[i:end], keep)
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// appendString re-encodes a valid literal. It works on the spelling, not through Unquote, so that raw bytes which
// only look like a surrogate are not taken for one.
func appendString(dst, lit []byte, keep bool) []byte {
	dst = append(dst, '"')
	p := lit[1 : len(lit)-1]
	for i := 0; i < len(p); {
		c := p[i]
		if c == '\\' {
			r, n := escapedAt(p, i)
			i += n
			switch {
			case r >= 0xD800 && r < 0xE000:
				dst = appendHex(dst, uint16(r))
			case r < 0x20 || r == '"' || r == '\\':
				dst = appendEscape(dst, byte(r))
			default:
				dst = utf8.AppendRune(dst, r)
			}
			continue
		}
		n := i + plainRun(p[i:])
		if keep || utf8.Valid(p[i:n]) {
			dst = append(dst, p[i:n]...)
		} else {
			dst = appendUnquoted(dst, p[i:n], false)
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
	return appendNode(dst, src[skipSpace(src, 0):])
}

// deep reports whether valid text is nested deeper than the recursive functions accept. They check it first, because
// each of their levels reads the text below it again.
func deep(src []byte) bool {
	var s scanner
	s.feed(src, false)
	return (len(s.more)+1)*64 > maxDepth
}

func appendNode(dst, v []byte) ([]byte, error) {
	var err error
	switch TypeOf(v) {
	case TypeArray:
		dst = append(dst, '[')
		first := true
		for e := range Array(v) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			if dst, err = appendNode(dst, e); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case TypeObject:
		dst = append(dst, '{')
		for i, m := range nodeMembers(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(Quote(dst, m.name), ':')
			if dst, err = appendNode(dst, m.value); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
	return appendTokens(dst, v, false), nil
}

type member struct {
	name  string
	value []byte
	index uint32
	isInt bool
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
		index, isInt := arrayIndex(name)
		list = append(list, member{name, value, index, isInt})
	}
	slices.SortStableFunc(list, func(a, b member) int {
		switch {
		case a.isInt && b.isInt:
			return int(int64(a.index) - int64(b.index))
		case a.isInt:
			return -1
		case b.isInt:
			return 1
		}
		return 0
	})
	return list
}

// arrayIndex reports whether a property name is an array index: the decimal spelling of 0 to 2^32-2.
func arrayIndex(name string) (uint32, bool) {
	if name == "" || len(name) > 10 || name[0] == '0' && len(name) > 1 || name[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(name, 10, 32)
	return uint32(n), err == nil && n < 1<<32-1
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// Equal reports whether two texts are the same value for JSON.parse: members in any order, of duplicates the last,
// strings by content, numbers as doubles (so 1 and 1.0 are equal, and integers that round to the same double).
// Text that is not valid equals nothing. Below some 5000 levels, members must also be in the same order.
func Equal(a, b []byte) bool {
	if !Valid(a) || !Valid(b) {
		return false
	}
	if deep(a) || deep(b) {
		return bytes.Equal(appendTokens(nil, a, true), appendTokens(nil, b, true))
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
		ma, mb := lastMembers(a), lastMembers(b)
		if len(ma) != len(mb) {
			return false
		}
		for k, va := range ma {
			vb, ok := mb[k]
			if !ok || !equal(va, vb) {
				return false
			}
		}
		return true
	case TypeArray:
		var list [][]byte
		for e := range Array(b) {
			list = append(list, e)
		}
		i := 0
		for e := range Array(a) {
			if i == len(list) || !equal(e, list[i]) {
				return false
			}
			i++
		}
		return i == len(list)
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

func lastMembers(obj []byte) map[string][]byte {
	m := map[string][]byte{}
	for k, v := range Members(obj) {
		m[k] = v
	}
	return m
}
