package value

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
)

// ResultFormats requests the binary format for all columns.
var ResultFormats = []int16{formatBinary}

// Errors of Scan.
var (
	errType      = errors.New("the types do not match")
	errNull      = errors.New("it is NULL")
	errLength    = errors.New("its length is wrong")
	errRange     = errors.New("it is out of range")
	errDimension = errors.New("it is a list of lists")
)

// Scan decodes a column of type oid into the variable that into points to. data is nil for NULL, and is copied. After
// an error, that variable is undefined.
func Scan(oid uint32, data []byte, into any) error {
	if err := scan(oid, data, into); err != nil {
		return fmt.Errorf("read a column of type %d into %T: %w", oid, into, err)
	}
	return nil
}

func scan(oid uint32, data []byte, into any) (err error) {
	switch p := into.(type) {
	case *[]byte:
		*p, err = bytesOf(oid, data)
		return err
	case *time.Time:
		*p, err = timeOf(oid, data)
		return err
	case *time.Duration:
		*p, err = durationOf(oid, data)
		return err
	}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return errors.New("it is no pointer")
	}
	switch v = v.Elem(); v.Kind() {
	case reflect.Pointer:
		if data == nil {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return scan(oid, data, v.Interface())
	case reflect.Slice:
		return scanList(data, v)
	case reflect.String:
		s, err := stringOf(oid, data)
		v.SetString(s)
		return err
	case reflect.Bool:
		b, err := boolOf(oid, data)
		v.SetBool(b)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := integerOf(oid, data)
		if err == nil && v.OverflowInt(n) {
			return errRange
		}
		v.SetInt(n)
		return err
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := integerOf(oid, data)
		if err == nil && (n < 0 || v.OverflowUint(uint64(n))) {
			return errRange
		}
		v.SetUint(uint64(n)) //nolint:gosec // it was compared
		return err
	}
	return errors.New("the Go type has no counterpart in the database")
}

// sizes is the number of bytes in a column of a type; an absent type has any size.
var sizes = map[uint32]int{
	typeBool:        1,
	typeInt2:        2,
	typeInt4:        4,
	typeInt8:        8,
	typeOID:         4,
	typeTimestamptz: 8,
	typeInterval:    16,
	typeUUID:        16,
}

// check returns an error unless a column has one of the types, is not NULL, and has its type's size.
func check(oid uint32, data []byte, types ...uint32) error {
	size, fixed := sizes[oid]
	switch {
	case !slices.Contains(types, oid):
		return errType
	case data == nil:
		return errNull
	case fixed && len(data) != size:
		return errLength
	}
	return nil
}

func bytesOf(oid uint32, data []byte) ([]byte, error) {
	err := check(oid, data, typeBytes, typeText, typeVarchar, typeName, typeChar)
	if err != nil {
		if errors.Is(err, errNull) {
			err = nil
		}
		return nil, err
	}
	return append([]byte{}, data...), nil
}

func stringOf(oid uint32, data []byte) (string, error) {
	if err := check(oid, data, typeText, typeVarchar, typeName, typeChar, typeUUID); err != nil {
		return "", err
	}
	if oid == typeUUID {
		return uuid.UUID(data).String(), nil
	}
	return string(data), nil
}

func boolOf(oid uint32, data []byte) (bool, error) {
	err := check(oid, data, typeBool)
	return err == nil && data[0] != 0, err
}

func integerOf(oid uint32, data []byte) (int64, error) {
	if err := check(oid, data, typeInt2, typeInt4, typeInt8, typeOID); err != nil {
		return 0, err
	}
	switch oid {
	case typeInt2:
		return int64(int16(wire.Uint16(data))), nil //nolint:gosec // it is one
	case typeInt4:
		return int64(int32(wire.Uint32(data))), nil //nolint:gosec // it is one
	case typeOID:
		return int64(wire.Uint32(data)), nil
	}
	return int64(wire.Uint64(data)), nil //nolint:gosec // it is one
}

func timeOf(oid uint32, data []byte) (time.Time, error) {
	if err := check(oid, data, typeTimestamptz); err != nil {
		return time.Time{}, err
	}
	n := int64(wire.Uint64(data)) //nolint:gosec // it is one
	if n == math.MaxInt64 || n == math.MinInt64 {
		return time.Time{}, fmt.Errorf("it is infinite: %w", errRange)
	}
	return time.UnixMicro(epoch.UnixMicro() + n), nil
}

func durationOf(oid uint32, data []byte) (time.Duration, error) {
	if err := check(oid, data, typeInterval); err != nil {
		return 0, err
	}
	micros := int64(wire.Uint64(data))                                                    //nolint:gosec // it is one
	days := int64(int32(wire.Uint32(data[8:]))) + 30*int64(int32(wire.Uint32(data[12:]))) //nolint:gosec // they are
	const day, most = int64(24 * time.Hour / time.Microsecond), math.MaxInt64 / int64(time.Microsecond)
	if max(micros, -micros) > most/2 || max(days, -days) > most/2/day || micros == math.MinInt64 {
		return 0, errRange
	}
	return time.Duration(micros+days*day) * time.Microsecond, nil
}

// scanList decodes a list of one dimension. Its elements have the type that the list names.
func scanList(data []byte, into reflect.Value) error {
	into.SetZero()
	if data == nil {
		return nil
	}
	if len(data) < 12 {
		return errLength
	}
	dimensions, oid, rest := wire.Uint32(data), wire.Uint32(data[8:]), data[12:]
	n := uint32(0)
	switch {
	case dimensions > 1:
		return errDimension
	case dimensions == 1 && len(rest) < 8:
		return errLength
	case dimensions == 1:
		n, rest = wire.Uint32(rest), rest[8:] // the index of the first element does not matter
	}
	if uint64(n)*4 > uint64(len(rest)) {
		return errLength
	}
	list := reflect.MakeSlice(into.Type(), int(n), int(n))
	for i := range int(n) {
		if len(rest) < 4 {
			return errLength
		}
		size := int32(wire.Uint32(rest)) //nolint:gosec // it is one
		if rest = rest[4:]; size < 0 {
			return fmt.Errorf("element %d: %w", i, errNull)
		}
		if int(size) > len(rest) {
			return errLength
		}
		if err := scan(oid, rest[:size], list.Index(i).Addr().Interface()); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		rest = rest[size:]
	}
	into.Set(list)
	return nil
}
