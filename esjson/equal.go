package esjson

import (
	"bytes"
	"strconv"
)

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
