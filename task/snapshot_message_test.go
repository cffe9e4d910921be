package task

import (
	"bytes"
	"reflect"
	"strconv"
	"testing"

	"github.com/roost-dev/roost/task/codec"
)

// filled counts the plain values below a value, and sets each to another one: all of them, or only the one of a number.
func filled(t *testing.T, v reflect.Value, only, n int) int {
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				n = filled(t, v.Field(i), only, n)
			}
		}
		return n
	}
	wanted := only < 0 || only == n
	switch v.Kind() {
	case reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		before := n
		if n = filled(t, to.Elem(), only, n); only < 0 || before <= only && only < n {
			v.Set(to)
		}
		return n
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), 2, 2)
		before := n
		for i := range list.Len() {
			n = filled(t, list.Index(i), only, n)
		}
		if only < 0 || before <= only && only < n {
			v.Set(list)
		}
		return n
	}
	if !wanted {
		return n + 1
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("word " + strconv.Itoa(n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(-300 - n))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(1 + n))
	case reflect.Float64:
		v.SetFloat(0.25 + float64(n))
	default:
		t.Fatalf("a %s in a message: set it here", v.Type())
	}
	return n + 1
}

// Each value of a message, also below its embedded and unexported struct, is read back.
func TestAMessageIsReadAsItIsWritten(t *testing.T) {
	values := filled(t, reflect.ValueOf(new(Message)).Elem(), -1, 0)
	for only := -1; only <= values; only++ { // all values, each alone, and none
		var m, got Message
		filled(t, reflect.ValueOf(&m).Elem(), only, 0)
		w, again := codec.NewWriter(nil), codec.NewWriter(nil)
		w.Value(m)
		u := unpacker{codec.Reader{In: w.Out}}
		u.Value(&got)
		again.Value(got)
		if u.Bad || len(u.Rest()) > 0 || !bytes.Equal(again.Out, w.Out) {
			t.Errorf("value %d: got %+v, bad %t, %d bytes left, want %+v", only, got, u.Bad, len(u.Rest()), m)
		}
	}
}

// A field that the message does not have is damage.
func TestAMessageWithAFieldTooManyIsBad(t *testing.T) {
	var m Message
	for name, read := range map[string]func(*unpacker){
		"message": func(u *unpacker) { u.Value(&m) },
		"kept":    func(u *unpacker) { u.Value(&m.kept) },
		"facts":   func(u *unpacker) { u.Value(&m.Facts) },
		"place":   func(u *unpacker) { u.Value(&m.Body) },
	} {
		w := codec.NewWriter(nil)
		w.Uint(1 << 20)
		w.Uint(1)
		u := unpacker{codec.Reader{In: w.Out}}
		if read(&u); !u.Bad {
			t.Errorf("%s: got a field that it does not have, want bad input", name)
		}
	}
}
