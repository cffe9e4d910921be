package esjson_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

// TestGetNumbers: a whole number is one in any spelling, and exact where a double is
// not; what is none is not made one.
func TestGetNumbers(t *testing.T) {
	type got struct {
		Int     int64
		IsInt   bool
		Float   float64
		IsFloat bool
	}
	for src, want := range map[string]got{
		`0`:                    {0, true, 0, true},
		`-0`:                   {0, true, math.Copysign(0, -1), true},
		`1700000000000`:        {1700000000000, true, 1700000000000, true},
		`1.0`:                  {1, true, 1, true},
		`1e3`:                  {1000, true, 1000, true},
		`12.5e1`:               {125, true, 125, true},
		`0.5`:                  {0, false, 0.5, true},
		`9007199254740993`:     {9007199254740993, true, 9007199254740992, true},
		`9223372036854775807`:  {math.MaxInt64, true, 9223372036854775807, true},
		`-9223372036854775808`: {math.MinInt64, true, -9223372036854775808, true},
		`9223372036854775808`:  {0, false, 9223372036854775808, true},
		`1e19`:                 {0, false, 1e19, true},
		`1e400`:                {0, false, math.Inf(1), true},
		`-1e400`:               {0, false, math.Inf(-1), true},
		`1e-400`:               {0, true, 0, true},
		`"1"`:                  {},
		`true`:                 {},
		`null`:                 {},
		`[1]`:                  {},
		`{"n":1}`:              {},
	} {
		obj := []byte(`{ "before" : 7 , "n" : ` + src + ` }`)
		var g got
		g.Int, g.IsInt = esjson.GetInt(obj, "n")
		g.Float, g.IsFloat = esjson.GetFloat(obj, "n")
		if diff := cmp.Diff(want, g); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", src, diff)
		}
	}
	if _, ok := esjson.GetInt([]byte(`{}`), "n"); ok {
		t.Error("a number in nothing")
	}
	if _, ok := esjson.GetFloat([]byte(`[7]`), "0"); ok {
		t.Error("an array has no names")
	}
}

func TestGetBoolAndString(t *testing.T) {
	obj := []byte(`{"t":true,"f":false,"n":null,"s":"a\u00e9","one":1,"quoted":"true","lone":"\udc00","list":["s"]}`)
	for key, want := range map[string][2]bool{"t": {true, true}, "f": {false, true}, "n": {}, "s": {}, "one": {}, "quoted": {}, "list": {}, "none": {}} {
		if v, ok := esjson.GetBool(obj, key); v != want[0] || ok != want[1] {
			t.Errorf("%s: got %v, %v, want v = want[0] and ok = want[1]", key, v, ok)
		}
	}
	for key, want := range map[string]string{"s": "aé", "quoted": "true", "lone": "\xed\xb0\x80"} {
		if v, ok := esjson.GetString(obj, key); v != want || !ok {
			t.Errorf("%s: got %q, %v, want v = %v and ok", key, v, ok, want)
		}
	}
	for _, key := range []string{"t", "n", "one", "list", "none"} {
		if v, ok := esjson.GetString(obj, key); v != "" || ok {
			t.Errorf("%s: got %q, %v, want v = \"\" and not ok", key, v, ok)
		}
	}
}

// Values share the object's memory, but cannot grow into it: appending to one does
// not overwrite the bytes after it.
func TestValuesCannotGrowIntoTheirObject(t *testing.T) {
	const text = `{"a":[1,2],"b":"x"}`
	obj := []byte(text)
	a, _ := esjson.Get(obj, "a")
	_ = append(a, "!!!"...)
	for _, val := range esjson.Members(obj) {
		_ = append(val, "!!!"...)
	}
	for _, val := range esjson.Fields(obj) {
		_ = append(val, "!!!"...)
	}
	for e := range esjson.Array(a) {
		_ = append(e, "!!!"...)
	}
	var x esjson.Index
	x.Read(obj, 2)
	for _, i := range x.Parts(0) {
		_ = append(x.Raw(i), "!!!"...)
	}
	if string(obj) != text {
		t.Errorf("the object became %s", obj)
	}
}

// Loops may be left at any step.
func TestLoopsEndEarly(t *testing.T) {
	obj, arr := []byte(`{"a":1,"b":2,"c":3}`), []byte(`[1,2,3]`)
	n := 0
	for range esjson.Members(obj) {
		n++
		break
	}
	for range esjson.Fields(obj) {
		n++
		break
	}
	for range esjson.Array(arr) {
		n++
		break
	}
	var x esjson.Index
	x.Read(obj, 1)
	for range x.Parts(0) {
		n++
		break
	}
	if n != 4 {
		t.Errorf("%d steps", n)
	}
}

func TestCompact(t *testing.T) {
	for src, want := range map[string]string{
		" { \"a b\" : [ 1.0 , 1E2 ] ,\n\t\"c\" : \"\\u0041 \\/ \" } ": `{"a b":[1.0,1E2],"c":"\u0041 \/ "}`,
		"[ ]": "[]", " 1 ": "1", "\"\xff \"": "\"\xff \"", "[\"]\" , {}]": `["]",{}]`,
	} {
		if got, err := esjson.Compact(nil, []byte(src)); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", src, got, err, want)
		}
	}
	if got, err := esjson.Compact([]byte("kept"), []byte(`[1,]`)); !errors.Is(err, esjson.ErrSyntax) || string(got) != "kept" || !strings.Contains(err.Error(), "offset 3") {
		t.Errorf(`got %s, %v, want errors.Is(err, esjson.ErrSyntax) and string(got) = "kept" and strings.Contains(err.Error(), "offset 3")`,
			got, err)
	}
}

// Node's order of members: names that are array indexes first, by number; the rest as
// they came.
func TestNodeOrder(t *testing.T) {
	for src, want := range map[string]string{
		`{"b":1,"2":2,"10":3,"a":4,"0":5}`:               `{"0":5,"2":2,"10":3,"b":1,"a":4}`,
		`{"01":1,"1":2,"-1":3,"1.0":4,"":5,"+1":6}`:      `{"1":2,"01":1,"-1":3,"1.0":4,"":5,"+1":6}`,
		`{"4294967294":1,"4294967295":2,"4294967293":3}`: `{"4294967293":3,"4294967294":1,"4294967295":2}`,
		`{"a":1,"b":2,"a":3}`:                            `{"a":3,"b":2}`,
		`{"1":1,"1":2}`:                                  `{"1":2}`,
		`[{"b":{"1":1,"0":2}}]`:                          `[{"b":{"0":2,"1":1}}]`,
	} {
		if got, err := esjson.Node(nil, []byte(src)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", src, got, err, want)
		}
	}
	deep := []byte(strings.Repeat(`[`, 6000) + strings.Repeat(`]`, 6000))
	if got, err := esjson.Node([]byte("kept"), deep); !errors.Is(err, esjson.ErrTooDeep) || string(got) != "kept" {
		t.Errorf("%.10s, %v", got, err)
	}
}

func TestEndString(t *testing.T) {
	seen := map[string]bool{}
	for e := esjson.EndComplete; e <= esjson.EndEmpty; e++ {
		seen[e.String()] = true
	}
	if len(seen) != int(esjson.EndEmpty)+1 || esjson.End(99).String() != "unknown" {
		t.Errorf("got %v, want len(seen) = int(esjson.EndEmpty)+1 and esjson.End(99).String() = \"unknown\"", seen)
	}
}

// Each level that is compared alone reads the text below it: a long text with thousands of levels would take minutes.
func TestALongTextOfManyLevelsIsReadOnce(t *testing.T) {
	text := func(end string) []byte {
		return []byte(strings.Repeat(`[`, 4900) + strings.Repeat(`[1,2,3],`, 200_000) + end + strings.Repeat(`]`, 4900))
	}
	if !esjson.Equal(text("1"), text(" 1")) || esjson.Equal(text("1"), text("2")) {
		t.Error("equal texts differ, or different ones are equal")
	}
	if _, err := esjson.Node(nil, text("1")); !errors.Is(err, esjson.ErrTooDeep) {
		t.Errorf("got %v, want %v", err, esjson.ErrTooDeep)
	}
}

func TestBlocks(t *testing.T) {
	for content, want := range map[string][]string{
		`[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"r"},7]`: {"text", "tool_result", ""},
		`"words"`: {"text"},
		`{}`:      nil,
		``:        nil,
	} {
		var types []string
		for b := range esjson.Blocks([]byte(content)) {
			types = append(types, esjson.TextOf(b, "type"))
		}
		if !slices.Equal(types, want) {
			t.Errorf("%s: got the blocks %q, want %q", content, types, want)
		}
	}
}

// Blocks of any valid content are valid.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte(`[{"type":"tool_use","id":1},{"type":"text","text":null},7,null]`))
	f.Add([]byte(`"x"`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if !esjson.Valid(content) {
			return
		}
		for b := range esjson.Blocks(content) {
			if !esjson.Valid(b) {
				t.Errorf("a block of %q is no JSON: %q", content, b)
			}
		}
	})
}
