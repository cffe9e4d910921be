// Package codec writes and reads the binary form of a snapshot: numbers as varints, each string once. It allocates
// memory for values that the input holds, and never for a count that exceeds the length of the input.
package codec

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"sync"
)

// Writer appends to Out. Its zero value is not usable: see NewWriter.
type Writer struct {
	Out   []byte
	index map[string]uint64 // the number of each string written before
}

// NewWriter returns a writer that appends to out.
func NewWriter(out []byte) Writer { return Writer{Out: out, index: map[string]uint64{}} }

// Uint writes an unsigned number as a varint.
func (p *Writer) Uint(v uint64) { p.Out = binary.AppendUvarint(p.Out, v) }

// Int writes a signed number as a varint.
func (p *Writer) Int(v int64) { p.Out = binary.AppendVarint(p.Out, v) }

// Flags writes up to 64 bits as one number, the first one lowest.
func (p *Writer) Flags(bits ...bool) {
	var v uint64
	for i, b := range bits {
		if b {
			v |= 1 << i
		}
	}
	p.Uint(v)
}

// Bytes writes a length and the bytes.
func (p *Writer) Bytes(b []byte) {
	p.Uint(uint64(len(b)))
	p.Out = append(p.Out, b...)
}

// Word writes a string that occurs often: the first time as a whole, later as its number.
func (p *Writer) Word(s string) {
	if n, ok := p.index[s]; ok {
		p.Uint(n)
		return
	}
	p.Uint(0)
	p.Bytes([]byte(s))
	p.index[s] = uint64(len(p.index) + 1)
}

// Reader reads what a Writer wrote. After the first malformed value, Bad is set and every further value is zero.
type Reader struct {
	In    []byte
	Bad   bool
	at    int // In is read up to here: moving a number costs less than moving a slice
	words []string
}

// Fail marks the input as bad and drops the rest of it.
func (u *Reader) Fail() {
	u.Bad, u.at = true, len(u.In)
}

// Rest returns the input that is not read yet.
func (u *Reader) Rest() []byte { return u.In[u.at:] }

// Uint reads an unsigned number.
func (u *Reader) Uint() uint64 {
	v, n := binary.Uvarint(u.Rest())
	if n <= 0 {
		u.Fail()
		return 0
	}
	u.at += n
	return v
}

// Int reads a signed number.
func (u *Reader) Int() int64 {
	v, n := binary.Varint(u.Rest())
	if n <= 0 {
		u.Fail()
		return 0
	}
	u.at += n
	return v
}

// Small reads a number that is used as an index.
func (u *Reader) Small() int {
	v := u.Uint()
	if v > math.MaxInt32 {
		u.Fail()
		return 0
	}
	return int(v)
}

// Count reads how many values follow, each at least one byte long. It allocates nothing for a count that exceeds the
// input.
func (u *Reader) Count() int {
	v := u.Uint()
	if v > uint64(len(u.Rest())) {
		u.Fail()
		return 0
	}
	return int(v)
}

// Flags reads what Writer.Flags wrote.
func (u *Reader) Flags(bits ...*bool) {
	v := u.Uint()
	for i, b := range bits {
		*b = v&(1<<i) != 0
	}
}

// Bytes reads what Writer.Bytes wrote. The result shares memory with In.
func (u *Reader) Bytes() []byte { return u.Take(u.Count()) }

// Take reads n bytes. The result shares memory with In.
func (u *Reader) Take(n int) []byte {
	if n > len(u.Rest()) {
		u.Fail()
		return nil
	}
	u.at += n
	return u.In[u.at-n : u.at : u.at]
}

// Word reads what Writer.Word wrote.
func (u *Reader) Word() string {
	n := u.Uint()
	if n == 0 {
		s := string(u.Bytes())
		u.words = append(u.words, s)
		return s
	}
	if n > uint64(len(u.words)) {
		u.Fail()
		return ""
	}
	return u.words[n-1]
}

// Value writes a value of plain data: numbers, strings, bytes, structs, pointers, slices, arrays, and maps with
// string keys. Of a struct it writes the embedded and the exported fields that are not empty, in their order and
// without their names: adding or removing a field changes the format. A field with the tag codec:"-" is left out. An
// empty slice or map is read back as nil, but not behind a pointer. A struct has at most 64 fields.
func (p *Writer) Value(v any) { p.value(reflect.ValueOf(v)) }

func (p *Writer) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		p.Flags(v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		p.Int(v.Int())
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		p.Uint(v.Uint())
	case reflect.String:
		p.Word(v.String())
	case reflect.Float64: // small whole numbers end in zero bits: turned round, they are short
		p.Uint(bits.Reverse64(math.Float64bits(v.Float())))
	case reflect.Struct:
		set := fieldsOf(v.Type()) // a bit for each field that is not empty
		for i := range v.NumField() {
			if set&(1<<i) != 0 && empty(v.Field(i)) {
				set &^= 1 << i
			}
		}
		p.Uint(set)
		for i := range v.NumField() {
			if set&(1<<i) != 0 {
				p.value(v.Field(i))
			}
		}
	case reflect.Pointer:
		if p.Flags(!v.IsNil()); !v.IsNil() {
			p.value(v.Elem())
		}
	case reflect.Slice:
		if isBytes(v) {
			p.Bytes(v.Bytes())
			return
		}
		p.Uint(uint64(v.Len()))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			p.value(v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		p.Uint(uint64(len(keys)))
		for _, key := range keys {
			p.Word(key.String())
			p.value(v.MapIndex(key))
		}
	default:
		panic(fmt.Sprintf("codec: the type %s cannot be encoded", v.Type()))
	}
}

// Value reads what Writer.Value wrote into the target of a pointer.
func (u *Reader) Value(to any) { u.value(reflect.ValueOf(to).Elem()) }

func (u *Reader) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		var set bool
		u.Flags(&set)
		v.SetBool(set)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n := u.Int()
		if v.OverflowInt(n) {
			u.Fail()
		}
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		n := u.Uint()
		if v.OverflowUint(n) {
			u.Fail()
		}
		v.SetUint(n)
	case reflect.String:
		v.SetString(u.Word())
	case reflect.Float64:
		v.SetFloat(math.Float64frombits(bits.Reverse64(u.Uint())))
	case reflect.Struct:
		set := u.Uint()
		if set&^fieldsOf(v.Type()) != 0 {
			u.Fail()
		}
		for ; set != 0 && !u.Bad; set &= set - 1 {
			u.value(v.Field(bits.TrailingZeros64(set)))
		}
	case reflect.Pointer:
		var set bool
		if u.Flags(&set); set {
			v.Set(reflect.New(v.Type().Elem()))
			if v.Elem().Kind() == reflect.Slice { // what is absent is nil, and what is empty is not
				v.Elem().Set(reflect.MakeSlice(v.Type().Elem(), 0, 0))
			}
			u.value(v.Elem())
		}
	case reflect.Slice:
		if isBytes(v) {
			v.SetBytes(append([]byte(nil), u.Bytes()...))
			return
		}
		u.elements(v)
	case reflect.Array:
		for i := range v.Len() {
			u.value(v.Index(i))
		}
	case reflect.Map:
		for n := u.Count(); n > 0 && !u.Bad; n-- {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			key, val := u.Word(), reflect.New(v.Type().Elem()).Elem()
			u.value(val)
			v.SetMapIndex(reflect.ValueOf(key), val)
		}
	default:
		panic(fmt.Sprintf("codec: the type %s cannot be encoded", v.Type()))
	}
}

// elements reads a slice. It grows the slice as elements come, because the count may be false.
func (u *Reader) elements(v reflect.Value) {
	for n := u.Count(); n > 0 && !u.Bad; n-- {
		v.Grow(1)
		v.SetLen(v.Len() + 1)
		u.value(v.Index(v.Len() - 1))
	}
}

// empty reports whether a value equals the one that a reader gets without reading anything.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		set := fieldsOf(v.Type())
		for i := range v.NumField() {
			if set&(1<<i) != 0 && !empty(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

// fieldsOf has a bit for each field of a struct that is written.
func fieldsOf(t reflect.Type) (set uint64) {
	if known, ok := fieldSets.Load(t); ok {
		return known.(uint64) //nolint:errcheck,forcetypeassert // it holds no others
	}
	for i := range t.NumField() {
		if f := t.Field(i); (f.IsExported() || f.Anonymous) && f.Tag.Get("codec") != "-" {
			set |= 1 << i
		}
	}
	fieldSets.Store(t, set)
	return set
}

var fieldSets sync.Map // of reflect.Type

func isBytes(v reflect.Value) bool { return v.Type().Elem().Kind() == reflect.Uint8 }
