package codec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// Value writes a value of plain data: numbers, strings, bytes, structs, pointers, slices, arrays, and maps with string
// keys. Of a struct it writes the exported fields that are not empty, in their order and without their names: a field
// that comes or goes makes a new form. An empty slice or map is read back as nil. A struct has at most 64 fields.
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
	case reflect.Struct:
		var set uint64 // a bit for each field that is not empty
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !empty(v.Field(i)) {
				set |= 1 << i
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
		panic(fmt.Sprintf("codec: a %s is no plain data", v.Type()))
	}
}

// Value reads what Writer.Value wrote into what a pointer points to.
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
	case reflect.Struct:
		set := u.Uint()
		for i := range v.NumField() {
			switch {
			case set&(1<<i) == 0:
			case v.Type().Field(i).IsExported():
				u.value(v.Field(i))
			default:
				u.Fail()
			}
		}
	case reflect.Pointer:
		var set bool
		if u.Flags(&set); set {
			v.Set(reflect.New(v.Type().Elem()))
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
		panic(fmt.Sprintf("codec: a %s is no plain data", v.Type()))
	}
}

// elements reads a slice. It grows the slice as elements come: the count is not believed.
func (u *Reader) elements(v reflect.Value) {
	for n := u.Count(); n > 0 && !u.Bad; n-- {
		v.Grow(1)
		v.SetLen(v.Len() + 1)
		u.value(v.Index(v.Len() - 1))
	}
}

// empty reports whether reading nothing gives the value.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !empty(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

func isBytes(v reflect.Value) bool { return v.Type().Elem().Kind() == reflect.Uint8 }
