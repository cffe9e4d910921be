package conformance

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
)

// Value is raw JSON of a case, nil when it is absent. Its methods look into an
// object or array and give the zero value for what is not there, so that a case
// reads as data. It is a []byte for everything that takes one.
type Value []byte

// Get is a member's raw value.
func (v Value) Get(key string) Value {
	m, _ := esjson.Get(v, key)
	return m
}

// Has reports whether a member exists, null included.
func (v Value) Has(key string) bool {
	_, ok := esjson.Get(v, key)
	return ok
}

// Str is a member that is a string, lone surrogates in their three-byte form.
func (v Value) Str(key string) string {
	s, _ := esjson.GetString(v, key)
	return s
}

// Int is a member that is a whole number, or other.
func (v Value) Int(key string, other int64) int64 {
	if n, ok := esjson.GetInt(v, key); ok {
		return n
	}
	return other
}

// Float is a member that is a number.
func (v Value) Float(key string) float64 {
	f, _ := esjson.GetFloat(v, key)
	return f
}

// Bool is a member that is true or false, or other.
func (v Value) Bool(key string, other bool) bool {
	if b, ok := esjson.GetBool(v, key); ok {
		return b
	}
	return other
}

// List are the elements of an array. They share the case's memory.
func (v Value) List() [][]byte {
	var out [][]byte
	for e := range esjson.Array(v) {
		out = append(out, e)
	}
	return out
}

// Strings are the elements of an array of strings.
func (v Value) Strings() []string {
	var out []string
	for e := range esjson.Array(v) {
		s, _ := esjson.Unquote(e)
		out = append(out, s)
	}
	return out
}

// Array is the JSON array of raw elements.
func Array(elements [][]byte) Value {
	return append(append([]byte("["), bytes.Join(elements, []byte(","))...), ']')
}

// ReplaceHalves replaces each unpaired half of a surrogate pair with a text.
func ReplaceHalves(s, instead string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 && len(s) >= i+3 && s[i] == 0xED && s[i+1] >= 0xA0 && s[i+1] < 0xC0 && s[i+2]&0xC0 == 0x80 {
			out.WriteString(instead)
			i += 3
			continue
		}
		out.WriteString(s[i : i+n])
		i += n
	}
	return out.String()
}
