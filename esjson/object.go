package esjson

import "slices"

// Object builds a JSON object member by member, as JSON.stringify would write it: in the order of the calls, without
// blanks. The zero value is an empty object. It does not look for duplicates. To be used by one goroutine.
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
	o.buf = appendInt(o.buf, n)
}

// Float adds a number in ECMAScript's spelling.
func (o *Object) Float(k string, f float64) {
	o.name(k)
	o.buf = Number(o.buf, f)
}

// Bool adds true or false.
func (o *Object) Bool(k string, b bool) {
	o.name(k)
	if b {
		o.buf = append(o.buf, "true"...)
	} else {
		o.buf = append(o.buf, "false"...)
	}
}

// Raw adds a member whose value is already JSON. It is not checked. A nil or empty value adds nothing, as
// JSON.stringify leaves out what is undefined.
func (o *Object) Raw(k string, raw []byte) {
	if len(raw) == 0 {
		return
	}
	o.name(k)
	o.buf = append(o.buf, raw...)
}

// Grow makes room for so many more bytes.
func (o *Object) Grow(n int) { o.buf = slices.Grow(o.buf, n) }

// Take is Bytes without the copy, for objects that are large: the builder is empty afterwards.
func (o *Object) Take() []byte {
	out := o.buf
	o.buf = nil
	if len(out) == 0 {
		out = append(out, '{')
	}
	return append(out, '}')
}

// Bytes returns a copy of the object's text. The builder stays usable.
func (o *Object) Bytes() []byte {
	if len(o.buf) == 0 {
		return []byte("{}")
	}
	out := make([]byte, 0, len(o.buf)+1)
	return append(append(out, o.buf...), '}')
}

// List is the array of some JSON texts, which are not checked.
func List[T ~[]byte](parts []T) []byte {
	out := []byte{'['}
	for i, part := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, part...)
	}
	return append(out, ']')
}

// Strings is the array of some texts.
func Strings(list []string) []byte {
	parts := make([][]byte, len(list))
	for i, s := range list {
		parts[i] = Quote(nil, s)
	}
	return List(parts)
}
