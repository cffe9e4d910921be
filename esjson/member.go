package esjson

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
)

// The kinds of JSON values. TypeInvalid is the zero value.
const (
	TypeInvalid Type = iota
	TypeObject
	TypeArray
	TypeString
	TypeNumber
	TypeBool
	TypeNull
)

var typeNames = [...]string{"invalid", "object", "array", "string", "number", "boolean", "null"}

// span is the position of a member or element: the name's literal, and the value.
type span struct{ key, keyEnd, val, valEnd int }

// spans walks over the members of an object (open '{') or elements of an array (open '[') in valid text.
func spans(p []byte, open byte) iter.Seq[span] {
	return func(yield func(span) bool) {
		i := skipSpace(p, 0)
		if i == len(p) || p[i] != open {
			return
		}
		for i = skipSpace(p, i+1); i < len(p) && p[i] != ']' && p[i] != '}'; {
			var s span
			if open == '{' {
				if p[i] != '"' {
					return
				}
				s.key, s.keyEnd = i, StringEnd(p, i)
				i = skipSpace(p, s.keyEnd)
				if i == len(p) || p[i] != ':' {
					return
				}
				i = skipSpace(p, i+1)
			}
			s.val, s.valEnd = i, skipValue(p, i)
			if s.valEnd == s.val || !yield(s) {
				return
			}
			i = skipSpace(p, s.valEnd)
			if i == len(p) || p[i] != ',' {
				return
			}
			i = skipSpace(p, i+1)
		}
	}
}

// Members yields the members of an object in their order, duplicates included; none when obj is no object. obj must
// be valid; for broken text it yields some members, and never panics.
func Members(obj []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for name, val := range Fields(obj) {
			if !yield(string(name), val) {
				return
			}
		}
	}
}

// Array yields the raw elements of an array in order; none when arr is no array. arr must be valid.
func Array(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for s := range spans(arr, '[') {
			if !yield(arr[s.val:s.valEnd:s.valEnd]) {
				return
			}
		}
	}
}

// Fields is Members with the names as bytes, for callers that only compare them: it copies a name only if the name
// contains escapes. The names share memory with obj.
func Fields(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for s := range spans(obj, '{') {
			if !yield(nameOf(obj[s.key:s.keyEnd]), obj[s.val:s.valEnd:s.valEnd]) {
				return
			}
		}
	}
}

// Blocks yields the content blocks of a message, given its raw content: a content that is a text is one text block.
func Blocks(content []byte) iter.Seq[[]byte] {
	if TypeOf(content) == TypeString {
		content = List([][]byte{ObjectOf("type", "text", "text", content)})
	}
	return Array(content)
}

// Get returns the raw value of the member called key; the last one of duplicates, as JSON.parse does. obj must be
// valid. The result shares memory with obj.
func Get(obj []byte, key string) (val []byte, ok bool) {
	for s := range spans(obj, '{') {
		if isName(obj[s.key:s.keyEnd], key) {
			val, ok = obj[s.val:s.valEnd:s.valEnd], true
		}
	}
	return val, ok
}

// Take puts members of an object into variables; places alternates names and pointers. A pointer to bytes takes any
// raw value; a pointer to a string, a number or a bool takes only that kind; a pointer to a pointer to a number also
// takes null. The last of several members of one name counts. Take returns the object's number of members, and the
// first error about a value of another kind, whose variable keeps its value.
func Take(obj []byte, places ...any) (members int, err error) {
	for name, val := range Fields(obj) {
		members++
		if wrong := place(places, name, val); wrong != nil && err == nil {
			err = fmt.Errorf("member %s: %w", name, wrong)
		}
	}
	return members, err
}

// Take is esjson.Take for the members of value i. It sees only the levels that were read.
func (x *Index) Take(i int, places ...any) (members int, err error) {
	for name, k := range x.Parts(i) {
		members++
		if wrong := place(places, name, x.Raw(k)); wrong != nil && err == nil {
			err = fmt.Errorf("member %s: %w", name, wrong)
		}
	}
	return members, err
}

// Find returns the number of a member of value i, -1 when there is none. It sees only the levels that were read.
func (x *Index) Find(i int, key string) int {
	found := -1
	for name, k := range x.Parts(i) {
		if name != nil && string(name) == key {
			found = k
		}
	}
	return found
}

func place(places []any, name, val []byte) (err error) {
	for i := 0; i+1 < len(places); i += 2 {
		if key, _ := places[i].(string); key != string(name) {
			continue
		}
		switch to := places[i+1].(type) {
		case *[]byte:
			*to = val
		case *json.RawMessage:
			*to = val
		case *bool:
			*to = string(val) == "true"
		case *string:
			if TypeOf(val) != TypeString {
				return fmt.Errorf("%.40s is no string", val)
			}
			*to, err = Unquote(val)
		case *int64:
			n, ok := Int(val)
			if !ok {
				return fmt.Errorf("%.40s is no whole number", val)
			}
			*to = n
		case **int64:
			if n, ok := Int(val); ok {
				*to = &n
			} else if *to = nil; TypeOf(val) != TypeNull {
				return fmt.Errorf("%.40s is no whole number", val)
			}
		case *uint64:
			if *to, err = strconv.ParseUint(string(val), 10, 64); err != nil {
				return fmt.Errorf("%.40s is no number", val)
			}
		}
		return err
	}
	return nil
}

// GetString returns a member that is a string, decoded (see Unquote). ok is false when it is absent or something else.
func GetString(obj []byte, key string) (string, bool) {
	v, ok := Get(obj, key)
	if !ok || TypeOf(v) != TypeString {
		return "", false
	}
	s, err := Unquote(v)
	return s, err == nil
}

// Member returns the raw value of a member, nil when there is none: see Get.
func Member(obj []byte, key string) []byte {
	v, _ := Get(obj, key)
	return v
}

// TextOf returns a member that is a string, "" when it is absent or something else: see GetString.
func TextOf(obj []byte, key string) string {
	s, _ := GetString(obj, key)
	return s
}

// IntOf returns a member that is a whole number, 0 when it is absent or something else: see Int.
func IntOf(obj []byte, key string) int64 {
	n, _ := GetInt(obj, key)
	return n
}

// IsTrue reports whether a member is true.
func IsTrue(obj []byte, key string) bool { return string(Member(obj, key)) == "true" }

// GetFloat returns a member that is a number, as the double that JSON.parse makes (so it may be infinite).
func GetFloat(obj []byte, key string) (float64, bool) {
	v, _ := Get(obj, key)
	if TypeOf(v) != TypeNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil || math.IsInf(f, 0)
}

// Double returns the value of a number; ok is false for any other value, and for a number too large for a double,
// which JSON.parse turns into infinity: that would spoil every sum.
func Double(raw []byte) (f float64, ok bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if TypeOf(raw) != TypeNumber || err != nil {
		return 0, false
	}
	return f, true
}

// GetInt returns a member that is a whole number: see Int.
func GetInt(obj []byte, key string) (int64, bool) {
	v, _ := Get(obj, key)
	return Int(v)
}

// Int reads a whole number within int64, in any spelling (1e3 is 1000). Digits are exact even where a double is not.
func Int(raw []byte) (int64, bool) {
	if TypeOf(raw) != TypeNumber {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || f < -(1<<63) || f >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// GetBool returns a member that is true or false.
func GetBool(obj []byte, key string) (v, ok bool) {
	raw, ok := Get(obj, key)
	if !ok || TypeOf(raw) != TypeBool {
		return false, false
	}
	return raw[0] == 't', true
}

// Set returns a copy of obj in which the member called key has the raw value val: replaced in its place (the last of
// duplicates, which is the one that counts), or appended. Every other byte stays. obj and val must be valid; an obj
// that is no object is returned unchanged.
func Set(obj []byte, key string, val []byte) []byte {
	var last, found span
	n, hit := 0, false
	for s := range spans(obj, '{') {
		last = s
		n++
		if isName(obj[s.key:s.keyEnd], key) {
			found, hit = s, true
		}
	}
	out := make([]byte, 0, len(obj)+len(key)+len(val)+4)
	if hit {
		out = append(out, obj[:found.val]...)
		out = append(out, val...)
		return append(out, obj[found.valEnd:]...)
	}
	at := last.valEnd
	if n == 0 {
		if TypeOf(obj) != TypeObject {
			return append(out, obj...)
		}
		at = skipSpace(obj, 0) + 1
	}
	out = append(out, obj[:at]...)
	if n > 0 {
		out = append(out, ',')
	}
	out = append(Quote(out, key), ':')
	out = append(out, val...)
	return append(out, obj[at:]...)
}

// Remove returns a copy of obj without the member called key: it removes all duplicates, since an earlier one would
// count again. The other members keep their bytes. When there is none, or obj is no object, the copy is equal.
func Remove(obj []byte, key string) []byte {
	out := make([]byte, 0, len(obj))
	done, kept := 0, 0 // obj[:done] is copied or dropped; kept is the end of the newest member that is not
	for s := range spans(obj, '{') {
		switch goes := isName(obj[s.key:s.keyEnd], key); {
		case !goes:
			if kept == 0 && done > 0 {
				done = s.key // the comma goes with the dropped first members
			}
			kept = s.valEnd
		case kept > 0:
			out = append(out, obj[done:kept]...)
			done, kept = s.valEnd, s.valEnd
		default:
			if done == 0 {
				out = append(out, obj[:s.key]...)
			}
			done = s.valEnd
		}
	}
	return append(out, obj[done:]...)
}

// Object builds a JSON object member by member, as JSON.stringify would write it: in the order of the calls, without
// blanks. The zero value is an empty object. It does not look for duplicates. One goroutine uses it.
type Object struct{ buf []byte }

func (o *Object) name(k string) {
	if len(o.buf) == 0 {
		o.buf = append(o.buf, '{')
	} else {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(Quote(o.buf, k), ':')
}

// String adds a string member.
func (o *Object) String(k, s string) {
	o.name(k)
	o.buf = Quote(o.buf, s)
}

// Int adds a whole number, with all its digits.
func (o *Object) Int(k string, n int64) {
	o.name(k)
	o.buf = strconv.AppendInt(o.buf, n, 10)
}

// Float adds a number in ECMAScript's spelling.
func (o *Object) Float(k string, f float64) {
	o.name(k)
	o.buf = Number(o.buf, f)
}

// Bool adds true or false.
func (o *Object) Bool(k string, b bool) {
	o.name(k)
	o.buf = strconv.AppendBool(o.buf, b)
}

// Raw adds a member whose value is already JSON. The value is not checked. A nil or empty value adds nothing, as
// JSON.stringify leaves out undefined.
func (o *Object) Raw(k string, raw []byte) {
	if len(raw) == 0 {
		return
	}
	o.name(k)
	o.buf = append(o.buf, raw...)
}

// Grow makes room for n more bytes.
func (o *Object) Grow(n int) { o.buf = slices.Grow(o.buf, n) }

// Bytes returns the object's text. A member that is added later overwrites the end of the returned text.
func (o *Object) Bytes() []byte {
	if len(o.buf) == 0 {
		return []byte("{}")
	}
	return append(o.buf, '}')
}

// ObjectOf returns the object of names and values in this order: texts, truth values, numbers, and JSON as bytes. It
// leaves out a member whose value is nil or no bytes.
func ObjectOf(pairs ...any) []byte {
	var o Object
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case nil:
		case string:
			o.String(name, v)
		case bool:
			o.Bool(name, v)
		case int:
			o.Int(name, int64(v))
		case int64:
			o.Int(name, v)
		case float64:
			o.Float(name, v)
		case []byte:
			o.Raw(name, v)
		case json.RawMessage:
			o.Raw(name, v)
		default:
			panic(fmt.Sprintf("esjson: %s has a value of the type %T", name, v))
		}
	}
	return o.Bytes()
}

// Given returns v as a value for ObjectOf, nil when v is the zero value.
func Given[T comparable](v T) any {
	var empty T
	if v == empty {
		return nil
	}
	return v
}

// List returns the array of JSON texts, which it does not check.
func List[T ~[]byte](parts []T) []byte {
	size := len(parts) + 1
	for _, part := range parts {
		size += len(part)
	}
	out := append(make([]byte, 0, size), '[')
	for i, part := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, part...)
	}
	return append(out, ']')
}

// Strings returns the array of texts.
func Strings(list []string) []byte {
	parts := make([][]byte, len(list))
	for i, s := range list {
		parts[i] = Quote(nil, s)
	}
	return List(parts)
}
