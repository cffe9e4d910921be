package value

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type word string

// column is a number as the protocol carries it.
func column[T any](n T) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.BigEndian, n); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestEncode(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7_999, time.FixedZone("", 3600))
	for name, tc := range map[string]struct {
		arg    any
		want   string
		null   bool
		format int16
	}{
		"nil":               {arg: nil, null: true},
		"nil pointer":       {arg: (*time.Duration)(nil), null: true},
		"nil bytes":         {arg: []byte(nil), null: true, format: formatBinary},
		"nil list":          {arg: []string(nil), null: true},
		"nil list of bytes": {arg: [][]byte(nil), null: true, format: formatBinary},
		"bytes":             {arg: []byte{0, 255}, want: "\x00\xff", format: formatBinary},
		"no bytes":          {arg: []byte{}, want: "", format: formatBinary},
		"text":              {arg: `a"\{},`, want: `a"\{},`},
		"no text":           {arg: "", want: ""},
		"named type":        {arg: word("x"), want: "x"},
		"pointer":           {arg: new(int64(5)), want: "5"},
		"bool":              {arg: true, want: "true"},
		"smallest integer":  {arg: int64(math.MinInt64), want: "-9223372036854775808"},
		"unsigned":          {arg: uint32(math.MaxUint32), want: "4294967295"},
		"float":             {arg: 1764412345.125, want: "1.764412345125e+09"},
		"time":              {arg: at, want: "2026-02-03 03:05:06.000007Z"},
		"interval":          {arg: -90 * time.Second, want: "-90000000 microseconds"},
		"texts":             {arg: []string{"", `a"b\`, "{,}", "NULL"}, want: `{"","a\"b\\","{,}","NULL"}`},
		"no texts":          {arg: []string{}, want: "{}"},
		"integers":          {arg: []int32{1, -2}, want: `{"1","-2"}`},
		"bools":             {arg: []bool{true, false}, want: `{"true","false"}`},
		"pointers":          {arg: []*int64{new(int64(1)), nil}, want: `{"1",NULL}`},
		"list of bytes": {
			arg:    [][]byte{{1}, {}, nil},
			format: formatBinary,
			want:   "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x11\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x01\x01\x00\x00\x00\x00\xff\xff\xff\xff",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Encode([]any{tc.arg})
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Values[0]; string(got) != tc.want || (got == nil) != tc.null || p.Formats[0] != tc.format {
				t.Errorf("got %q (NULL: %v, format %d), want %q (NULL: %v, format %d)", got, got == nil, p.Formats[0], tc.want, tc.null, tc.format)
			}
		})
	}
	for _, tc := range []struct {
		arg  any
		want string
	}{
		{struct{}{}, "parameter $2: the type struct {} has no counterpart in the database"},
		{[]any{1, map[int]int{}}, "parameter $2: the type []interface {} has no counterpart in the database"},
		{[][]int{{1}}, ""}, // a list of lists: the server finds that malformed
	} {
		if _, err := Encode([]any{1, tc.arg}); (tc.want != "") != (err != nil) || err != nil && err.Error() != tc.want {
			t.Errorf("%T: got the error %v, want %q", tc.arg, err, tc.want)
		}
	}
}

func TestScan(t *testing.T) {
	infinite := column(int64(math.MaxInt64))
	list := func(oid uint32, elements ...[]byte) []byte {
		b := column([]uint32{1, 1, oid, uint32(len(elements)), 1})
		for _, e := range elements {
			size := uint32(len(e))
			if e == nil {
				size = math.MaxUint32
			}
			b = append(append(b, column(size)...), e...)
		}
		return b
	}
	for name, tc := range map[string]struct {
		oid  uint32
		data []byte
		into any // where it is read to
		want any // what is there then
		err  error
	}{
		"text":                    {oid: typeText, data: []byte("x"), into: new(string), want: "x"},
		"text of a named type":    {oid: typeVarchar, data: []byte("x"), into: new(word), want: word("x")},
		"uuid":                    {oid: typeUUID, data: bytes.Repeat([]byte{0xab}, 16), into: new(string), want: "abababab-abab-abab-abab-abababababab"},
		"bytes":                   {oid: typeBytes, data: []byte{0, 1}, into: new([]byte), want: []byte{0, 1}},
		"no bytes":                {oid: typeBytes, data: []byte{}, into: new([]byte), want: []byte{}},
		"NULL as bytes":           {oid: typeBytes, into: &[]byte{1}, want: []byte(nil)},
		"bool":                    {oid: typeBool, data: []byte{1}, into: new(bool), want: true},
		"smallint":                {oid: typeInt2, data: column(int16(-2)), into: new(int64), want: int64(-2)},
		"integer":                 {oid: typeInt4, data: column(int32(-3)), into: new(int32), want: int32(-3)},
		"bigint":                  {oid: typeInt8, data: column(int64(math.MinInt64)), into: new(int64), want: int64(math.MinInt64)},
		"bigint as uint64":        {oid: typeInt8, data: column(int64(math.MaxInt64)), into: new(uint64), want: uint64(math.MaxInt64)},
		"oid":                     {oid: typeOID, data: column(uint32(math.MaxUint32)), into: new(uint32), want: uint32(math.MaxUint32)},
		"time":                    {oid: typeTimestamptz, data: column(int64(1)), into: new(time.Time), want: time.Date(2000, 1, 1, 0, 0, 0, 1000, time.UTC)},
		"time before 2000":        {oid: typeTimestamptz, data: column(int64(-1_000_000)), into: new(time.Time), want: time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)},
		"interval":                {oid: typeInterval, data: append(column(int64(5)), column([]int32{2, 1})...), into: new(time.Duration), want: 32*24*time.Hour + 5*time.Microsecond},
		"pointer":                 {oid: typeInt8, data: column(int64(4)), into: new(*int), want: new(4)},
		"NULL as pointer":         {oid: typeInt8, into: new(new(4)), want: (*int)(nil)},
		"texts":                   {oid: 1009, data: list(typeText, []byte("a"), []byte{}), into: new([]string), want: []string{"a", ""}},
		"no texts":                {oid: 1009, data: column([]uint32{0, 0, typeText}), into: new([]string), want: []string{}},
		"NULL as texts":           {oid: 1009, into: new([]string{"a"}), want: []string(nil)},
		"bigints":                 {oid: 1016, data: list(typeInt8, column(int64(7))), into: new([]int64), want: []int64{7}},
		"integers":                {oid: 1007, data: list(typeInt4, column(int32(7))), into: new([]int32), want: []int32{7}},
		"bools":                   {oid: 1000, data: list(typeBool, []byte{1}, []byte{0}), into: new([]bool), want: []bool{true, false}},
		"list of bytes":           {oid: 1001, data: list(typeBytes, []byte{1}, []byte{}), into: new([][]byte), want: [][]byte{{1}, {}}},
		"NULL as text":            {oid: typeText, into: new(string), err: errNull},
		"NULL as number":          {oid: typeInt8, into: new(int), err: errNull},
		"NULL as bool":            {oid: typeBool, into: new(bool), err: errNull},
		"NULL as time":            {oid: typeTimestamptz, into: new(time.Time), err: errNull},
		"NULL as duration":        {oid: typeInterval, into: new(time.Duration), err: errNull},
		"NULL in a list":          {oid: 1009, data: list(typeText, []byte("a"), nil), into: new([]string), err: errNull},
		"too large":               {oid: typeInt8, data: column(int64(math.MaxInt32 + 1)), into: new(int32), err: errRange},
		"negative":                {oid: typeInt8, data: column(int64(-1)), into: new(uint64), err: errRange},
		"infinite":                {oid: typeTimestamptz, data: infinite, into: new(time.Time), err: errRange},
		"interval of 300 years":   {oid: typeInterval, data: append(column(int64(0)), column([]int32{0, 3600})...), into: new(time.Duration), err: errRange},
		"interval of many µs":     {oid: typeInterval, data: append(infinite, column([]int32{0, 0})...), into: new(time.Duration), err: errRange},
		"text as number":          {oid: typeText, data: []byte("1"), into: new(int), err: errType},
		"number as text":          {oid: typeInt8, data: column(int64(1)), into: new(string), err: errType},
		"bytes as text":           {oid: typeBytes, data: []byte("a"), into: new(string), err: errType},
		"number as bool":          {oid: typeInt4, data: column(int32(1)), into: new(bool), err: errType},
		"number as bytes":         {oid: typeInt4, data: column(int32(1)), into: new([]byte), err: errType},
		"text as time":            {oid: typeText, data: make([]byte, 8), into: new(time.Time), err: errType},
		"number as duration":      {oid: typeInt8, data: column(int64(1)), into: new(time.Duration), err: errType},
		"integers as bigints":     {oid: 1007, data: list(typeText, []byte("a")), into: new([]int64), err: errType},
		"short number":            {oid: typeInt8, data: []byte{1}, into: new(int), err: errLength},
		"long bool":               {oid: typeBool, data: []byte{1, 1}, into: new(bool), err: errLength},
		"short list":              {oid: 1009, data: list(typeText, []byte("abc"))[:24], into: new([]string), err: errLength},
		"list that is too long":   {oid: 1009, data: column([]uint32{1, 0, typeText, math.MaxUint32, 1}), into: new([]string), err: errLength},
		"list of lists":           {oid: 1009, data: column([]uint32{2, 0, typeText}), into: new([]string), err: errDimension},
		"list without dimensions": {oid: 1009, data: column([]uint32{1, 0, typeText}), into: new([]string), err: errLength},
	} {
		t.Run(name, func(t *testing.T) {
			err := Scan(tc.oid, tc.data, tc.into)
			if !errors.Is(err, tc.err) {
				t.Fatalf("got the error %v, want %v", err, tc.err)
			}
			if got := reflect.ValueOf(tc.into).Elem().Interface(); err == nil && !cmp.Equal(got, tc.want) {
				t.Errorf("got %#v, want %#v", got, tc.want)
			}
		})
	}
	for _, into := range []any{5, (*int)(nil), new(map[string]int), new(float64)} {
		if err := Scan(typeInt8, column(int64(1)), into); err == nil {
			t.Errorf("into %T: got no error", into)
		}
	}
}

// What is read stays when the buffer is used again.
func TestScanCopies(t *testing.T) {
	data := []byte("first")
	var got []byte
	var text string
	for _, into := range []any{&got, &text} {
		if err := Scan(typeText, data, into); err != nil {
			t.Fatal(err)
		}
	}
	copy(data, "later")
	if string(got) != "first" || text != "first" {
		t.Errorf("got %q and %q, want first", got, text)
	}
}

// A server that sends nonsense gets an error.
func FuzzScan(f *testing.F) {
	f.Add(uint32(typeInt8), column(int64(1)))
	f.Add(uint32(typeText), column([]uint32{1, 0, typeText, 1, 1, 0}))
	f.Add(uint32(typeInterval), make([]byte, 16))
	f.Fuzz(func(_ *testing.T, oid uint32, data []byte) {
		for _, into := range []any{
			new(string), new([]byte), new(bool), new(int), new(int16), new(uint8), new(time.Time), new(time.Duration),
			new([]string), new([]int64), new([]int32), new([]bool), new([][]byte), new(*int),
		} {
			_ = Scan(oid, data, into)
		}
	})
}
