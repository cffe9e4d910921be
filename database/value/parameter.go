package value

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Parameters are the parameters of a statement in pgconn's form.
type Parameters struct {
	Values  [][]byte // nil is NULL
	Formats []int16
}

// Encode encodes the parameters of a statement. It may keep the arguments' bytes: they must not change until the
// statement has been sent. The error names the first argument of an unknown type.
func Encode(args []any) (p Parameters, err error) {
	p.Values, p.Formats = make([][]byte, len(args)), make([]int16, len(args))
	for i, arg := range args {
		if p.Values[i], p.Formats[i], err = encode(arg); err != nil {
			return p, fmt.Errorf("parameter $%d: %w", i+1, err)
		}
	}
	return p, nil
}

func encode(arg any) ([]byte, int16, error) {
	switch v := arg.(type) {
	case nil:
		return nil, formatText, nil
	case []byte:
		return v, formatBinary, nil
	case string:
		return []byte(v), formatText, nil
	case time.Time:
		return []byte(v.UTC().Truncate(time.Microsecond).Format("2006-01-02 15:04:05.999999Z07:00")), formatText, nil
	case time.Duration:
		return []byte(strconv.FormatInt(v.Microseconds(), 10) + " microseconds"), formatText, nil
	case [][]byte:
		list, err := bytesList(v)
		return list, formatBinary, err
	}
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil, formatText, nil
		}
		return encode(v.Elem().Interface())
	case reflect.Slice:
		if v.IsNil() {
			return nil, formatText, nil
		}
		list, err := textList(v)
		return list, formatText, err
	case reflect.String:
		return []byte(v.String()), formatText, nil
	case reflect.Bool:
		return strconv.AppendBool(nil, v.Bool()), formatText, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(nil, v.Int(), 10), formatText, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(nil, v.Uint(), 10), formatText, nil
	case reflect.Float32, reflect.Float64:
		return strconv.AppendFloat(nil, v.Float(), 'g', -1, 64), formatText, nil
	}
	return nil, 0, fmt.Errorf("the type %T has no counterpart in the database", arg)
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// textList returns a list in PostgreSQL's notation, {"1",NULL}.
func textList(of reflect.Value) ([]byte, error) {
	out := []byte{'{'}
	for i := range of.Len() {
		text, format, err := encode(of.Index(i).Interface())
		switch {
		case err != nil || format != formatText:
			return nil, fmt.Errorf("the type %s has no counterpart in the database", of.Type())
		case text == nil:
			out = append(out, "NULL,"...)
		default:
			out = append(append(append(out, '"'), quoted.Replace(string(text))...), `",`...)
		}
	}
	return append(bytes.TrimSuffix(out, []byte{','}), '}'), nil
}

// bytesList returns a list in the binary format. As text it would be twice as long.
func bytesList(of [][]byte) ([]byte, error) {
	if of == nil {
		return nil, nil
	}
	size := 20
	for _, e := range of {
		size += 4 + len(e)
	}
	if size > math.MaxInt32 {
		return nil, fmt.Errorf("a list of %d bytes is too long for a statement", size)
	}
	out := make([]byte, 0, size)
	for _, n := range []uint32{1, 1, typeBytes, uint32(len(of)), 1} { // dimensions, NULLs may come, type, length, first index
		out = wire.AppendUint32(out, n)
	}
	for _, e := range of {
		size := uint32(len(e))
		if e == nil {
			size = math.MaxUint32 // -1 is NULL
		}
		out = append(wire.AppendUint32(out, size), e...)
	}
	return out, nil
}
