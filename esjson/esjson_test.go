package esjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

func TestQuote(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "abc", `"abc"`},
		{"short escapes", "\b\t\n\f\r\"\\", `"\b\t\n\f\r\"\\"`},
		{"control", "\x00\x0b\x1f\x7f", "\"\\u0000\\u000b\\u001f\x7f\""},
		{"nothing for HTML", "<&>\u2028\u2029/", "\"<&>\u2028\u2029/\""},
		{"astral", "🚀", `"🚀"`},
		{"lone high surrogate", "a\xed\xa0\xbdb", `"a\ud83db"`},
		{"a character of three bytes that is cut", "\xe0\xa0b", "\"\ufffdb\""},
		{"two bytes that begin nothing", "\xe0\x80b", "\"\ufffd\ufffdb\""},
		{"a character of four bytes that is cut", "\xf0\x90\x80b\xf4\x8f\x80", "\"\ufffdb\ufffd\""},
		{"lone low surrogate", "\xed\xb0\x80", `"\udc00"`},
		{"halves that meet", "\xed\xa0\xbd" + "\xed\xba\x80", `"🚀"`},
		{"the lowest halves that meet", "\xed\xa0\x80" + "\xed\xb0\x80", `"𐀀"`},
		{"halves the wrong way round", "\xed\xba\x80\xed\xa0\xbd", `"\ude80\ud83d"`},
		{"bad byte", "a\xffb", "\"a\uFFFDb\""},
		{"truncated sequence is one", "\xe2\x82", "\"\uFFFD\""},
		{"truncated lowest of four bytes is one", "\xf0\x90x", "\"\uFFFDx\""},
		{"truncated highest of four bytes is one", "\xf4\x8fx", "\"\uFFFDx\""},
		{"too high is two", "\xf4\x90", "\"\uFFFD\uFFFD\""},
		{"overlong is two", "\xc0\xaf", "\"\uFFFD\uFFFD\""},
		{"cut surrogate is two", "\xed\xa0", "\"\uFFFD\uFFFD\""},
	} {
		if got := string(esjson.Quote(nil, c.in)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`"a\u0041\/\b"`, "aA/\b"},
		{` "x" `, "x"},
		{`"\ud83d\ude80"`, "🚀"},
		{`"\ude80\ud83d"`, "\xed\xba\x80\xed\xa0\xbd"},
		{`"\ud83d\ud83d\ude80"`, "\xed\xa0\xbd🚀"},
		{"\"\xed\xa0\x80\"", "\uFFFD\uFFFD\uFFFD"}, // raw bytes of a surrogate are no UTF-8: Node reads three marks
		{"\"\xf0\x9f\x9a\"", "\uFFFD"},
	} {
		got, err := esjson.Unquote([]byte(c.in))
		if err != nil || got != c.want {
			t.Errorf("Unquote(%s) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{``, `x`, `"`, `"a`, `"a" b`, `"\x"`, "\"\n\"", `1`} {
		if got, err := esjson.Unquote([]byte(bad)); err == nil {
			t.Errorf("Unquote(%s) = %q, want an error", bad, got)
		}
	}
}

func TestNumber(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 1: "1", -1.5: "-1.5", 0.30000000000000004: "0.30000000000000004", 1e20: "100000000000000000000", 1e21: "1e+21",
		1.5e22: "1.5e+22", 1e-6: "0.000001", 1e-7: "1e-7", 1.25e-10: "1.25e-10", 5e-324: "5e-324", math.Inf(1): "null", 1e300: "1e+300", 123456789012345680000: "123456789012345680000",
	} {
		if got := string(esjson.Number(nil, f)); got != want {
			t.Errorf("Number(%v) = %s, want %s", f, got, want)
		}
	}
	if got := string(esjson.Number(nil, math.NaN())); got != "null" {
		t.Errorf("Number(NaN) = %s", got)
	}
}

// What Node would lose stays: the rule is about values, not about spellings.
func TestStringifyKeeps(t *testing.T) {
	for _, c := range []struct{ name, in, want, node string }{
		{"spelling of a value a double holds", ` { "a" : [ 1.0 , 1E2, -0, 1e20 ] } `, `{"a":[1,100,0,100000000000000000000]}`, `{"a":[1,100,0,100000000000000000000]}`},
		{"a number beyond 2^53", `9007199254740993`, `9007199254740993`, `9007199254740992`},
		{"too many digits", `0.1000000000000000000001`, `0.1000000000000000000001`, `0.1`},
		{"too big", `[1e400,-1e400]`, `[1e400,-1e400]`, `[null,null]`},
		{"too small", `1e-400`, `1e-400`, `0`},
		{"zero with a silly exponent", `0e99999999999999999999`, `0`, `0`},
		{"silly exponent", `1e99999999999999999999`, `1e99999999999999999999`, `null`},
		{"order of names", `{"b":1,"10":2,"2":3}`, `{"b":1,"10":2,"2":3}`, `{"2":3,"10":2,"b":1}`},
		{"duplicates", `{"a":1,"b":2,"\u0061":3}`, `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{"bad bytes", "\"a\xff\\u0041\"", "\"a\xffA\"", "\"a\uFFFDA\""},
		{"raw surrogate bytes are not escaped", "\"\xed\xa0\x80\\n\"", "\"\xed\xa0\x80\\n\"", "\"\uFFFD\uFFFD\uFFFD\\n\""},
	} {
		got, err := esjson.Stringify(nil, []byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: Stringify = %q, %v; want %q", c.name, got, err, c.want)
		}
		if node, err := esjson.Node(nil, []byte(c.in)); err != nil || string(node) != c.node {
			t.Errorf("%s: Node = %q, %v; want %q", c.name, node, err, c.node)
		}
	}
}

func TestStringifyErrorKeepsDst(t *testing.T) {
	for _, bad := range []string{``, `{`, `[1,]`, `{"a" 1}`, "\"\x01\"", `nul`, `01`, `1 2`, "\ufeff1"} {
		got, err := esjson.Stringify([]byte("x"), []byte(bad))
		if err == nil || string(got) != "x" {
			t.Errorf("Stringify(%q) = %q, %v", bad, got, err)
		}
	}
}

func TestDeepNesting(t *testing.T) {
	const n = 1_000_000
	deep := []byte(strings.Repeat(`[`, n) + strings.Repeat(`]`, n))
	if !esjson.Valid(deep) || esjson.Valid(deep[:len(deep)-1]) {
		t.Error("a million levels are misjudged")
	}
	got, err := esjson.Stringify(nil, deep)
	if err != nil || !bytes.Equal(got, deep) || !esjson.Equal(deep, got) {
		t.Errorf("a million levels: %v", err)
	}
	if _, err := esjson.Node(nil, deep); err == nil {
		t.Error("Node wrote a million levels")
	}
}

func TestGet(t *testing.T) {
	obj := []byte(`{"a":1,"s":"x\ny","n":1.5,"b":true,"nul":null,"\u006f":{"in":[1,"]"]},"a":2,"e":1e3,"big":9007199254740993}`)
	if v, ok := esjson.Get(obj, "a"); !ok || string(v) != "2" {
		t.Errorf("the last duplicate counts, got %s", v)
	}
	if v, ok := esjson.Get(obj, "o"); !ok || string(v) != `{"in":[1,"]"]}` {
		t.Errorf("an escaped name, got %s", v)
	}
	if s, ok := esjson.GetString(obj, "s"); !ok || s != "x\ny" {
		t.Errorf("string %q", s)
	}
	if f, ok := esjson.GetFloat(obj, "n"); !ok || f != 1.5 {
		t.Errorf("float %v", f)
	}
	if n, ok := esjson.GetInt(obj, "e"); !ok || n != 1000 {
		t.Errorf("int %v", n)
	}
	if n, ok := esjson.GetInt(obj, "big"); !ok || n != 9007199254740993 {
		t.Errorf("int %v", n)
	}
	if _, ok := esjson.GetInt(obj, "n"); ok {
		t.Error("1.5 is no whole number")
	}
	for text, want := range map[string]int64{"-9223372036854775808.0": math.MinInt64, "92233720368547748e2": 9223372036854774784} {
		if n, ok := esjson.Int([]byte(text)); !ok || n != want {
			t.Errorf("%s: got %d, %v, want %d", text, n, ok, want)
		}
	}
	for _, text := range []string{"9223372036854775808.0", "-9223372036854777856.0", "1e30", "-1e30"} {
		if n, ok := esjson.Int([]byte(text)); ok {
			t.Errorf("%s: got %d, want none: it is outside of int64", text, n)
		}
	}
	if b, ok := esjson.GetBool(obj, "b"); !ok || !b {
		t.Error("bool")
	}
	for _, key := range []string{"nul", "a", "b"} {
		if _, ok := esjson.GetString(obj, key); ok {
			t.Errorf("%s is no string", key)
		}
	}
	if _, ok := esjson.Get([]byte(`["a"]`), "a"); ok {
		t.Error("an array has no members")
	}
}

func TestSetRemoveKeepOtherBytes(t *testing.T) {
	for _, c := range []struct{ in, key, set, removed string }{
		{`{}`, "a", `{"a":9}`, `{}`},
		{` { } `, "a", ` {"a":9 } `, ` { } `},
		{`{ "a" : 1.0 , "b":2 }`, "a", `{ "a" : 9 , "b":2 }`, `{ "b":2 }`},
		{`{ "a" : 1.0 , "b":2 }`, "b", `{ "a" : 1.0 , "b":9 }`, `{ "a" : 1.0 }`},
		{`{"a":1,"b":2,"a":3}`, "a", `{"a":1,"b":2,"a":9}`, `{"b":2}`},
		{`{"a":1,"a":3}`, "a", `{"a":1,"a":9}`, `{}`},
		{`{"a":1,"a":2,"b":3,"a":4,"a":5,"c":6}`, "a", `{"a":1,"a":2,"b":3,"a":4,"a":9,"c":6}`, `{"b":3,"c":6}`},
		{`{"b":1}`, "a", `{"b":1,"a":9}`, `{"b":1}`},
		{`[1]`, "a", `[1]`, `[1]`},
	} {
		in := []byte(c.in)
		if got := string(esjson.Set(in, c.key, []byte("9"))); got != c.set {
			t.Errorf("Set(%s, %s) = %s, want %s", c.in, c.key, got, c.set)
		}
		if got := string(esjson.Remove(in, c.key)); got != c.removed {
			t.Errorf("Remove(%s, %s) = %s, want %s", c.in, c.key, got, c.removed)
		}
		if string(in) != c.in {
			t.Errorf("the input became %s", in)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[true,null]}`, ` {"b":[true , null],"a":1.0}`, true},
		{`{"a":1,"a":2}`, `{"a":2}`, true},
		{`"\u0041"`, `"A"`, true},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,1]`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":1}`, `{"a":1,"b":1}`, false},
		{`true`, `false`, false},
		{`1`, `"1"`, false},
		{`{`, `{`, false},
	} {
		if got := esjson.Equal([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("Equal(%s, %s) = %v", c.a, c.b, got)
		}
	}
}

func TestObject(t *testing.T) {
	var o esjson.Object
	if got := string(o.Bytes()); got != "{}" {
		t.Errorf("empty: %s", got)
	}
	o.String("s", "a\"b")
	o.Int("i", math.MaxInt64)
	o.Float("f", 1e21)
	o.Bool("t", true)
	o.Raw("none", nil)
	o.Raw("r", []byte(`[1]`))
	if got, want := string(o.Bytes()), `{"s":"a\"b","i":9223372036854775807,"f":1e+21,"t":true,"r":[1]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// pair is a member in the model of an object.
type pair struct{ K, V string }

func TestSetGetRemoveAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]string{"a", "b", "", "10", "ключ", "q\"\\", "\xed\xa0\x80", "__proto__", "\n"})
		values := rapid.SampledFrom([]string{`1`, `"x,}\""`, `{"a":[1,{"b":2}]}`, `[]`, `null`, ` true `, `-1.5e3`})
		obj, model := []byte(`{}`), []pair(nil)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			k, v := keys.Draw(t, "key"), values.Draw(t, "value")
			at := -1
			for i, p := range model {
				if p.K == k {
					at = i
				}
			}
			switch {
			case rapid.Bool().Draw(t, "remove"):
				obj = esjson.Remove(obj, k)
				if at >= 0 {
					model = append(model[:at:at], model[at+1:]...)
				}
			case at >= 0:
				obj = esjson.Set(obj, k, []byte(v))
				model[at].V = strings.TrimSpace(v)
			default:
				obj = esjson.Set(obj, k, []byte(v))
				model = append(model, pair{k, strings.TrimSpace(v)})
			}
			if !esjson.Valid(obj) {
				t.Fatalf("not valid: %s", obj)
			}
			var got []pair
			for k, v := range esjson.Members(obj) {
				got = append(got, pair{k, string(v)})
			}
			if len(got)+len(model) > 0 && !cmp.Equal(got, model) {
				t.Fatalf("%s: %s", obj, cmp.Diff(model, got))
			}
		}
	})
}

func FuzzStringify(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,"x\ud800"]}`, `[[],{}]`, "\"\xff\"", `1e400`, `{"2":1,"1":2,"2":3}`, ` [ ] `, `-`, `"\u12`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if got, want := esjson.Valid(src), json.Valid(src); got != want && bytes.Count(src, []byte("["))+bytes.Count(src, []byte("{")) < 9000 {
			t.Fatalf("Valid = %v, encoding/json says %v", got, want)
		}
		// Nothing may panic on broken text either.
		for k := range esjson.Members(src) {
			esjson.Get(src, k)
			esjson.Set(src, k, []byte("1"))
			esjson.Remove(src, k)
		}
		for range esjson.Array(src) {
		}
		once, err := esjson.Stringify(nil, src)
		if (err == nil) != esjson.Valid(src) {
			t.Fatalf("Stringify error %v", err)
		}
		if err != nil {
			return
		}
		twice, err := esjson.Stringify(nil, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q (%v)", once, twice, err)
		}
		compact, err := esjson.Compact(nil, src)
		if err != nil || !esjson.Equal(compact, src) || !esjson.Equal(once, src) {
			t.Fatalf("%q and %q are not equal to %q (%v)", compact, once, src, err)
		}
		a, err1 := esjson.Node(nil, src)
		b, err2 := esjson.Node(nil, once)
		if (err1 == nil) != (err2 == nil) || !bytes.Equal(a, b) {
			t.Fatalf("Node sees %q in the source and %q in our text", a, b)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("a\xed\xa0\x80\xffz\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		q := esjson.Quote(nil, s)
		back, err := esjson.Unquote(q)
		if err != nil {
			t.Fatal(err)
		}
		if again := esjson.Quote(nil, back); !bytes.Equal(q, again) {
			t.Fatalf("%q and %q", q, again)
		}
	})
}

func ExampleStringify() {
	out, _ := esjson.Stringify(nil, []byte(`{ "ts": 1.0, "text": "\u00e9 <b>", "lone": "\uD800" }`))
	fmt.Println(string(out))
	// Output: {"ts":1,"text":"é <b>","lone":"\ud800"}
}

func ExampleSet() {
	row := []byte(`{"ts":1, "unknown" : 2.50}`)
	fmt.Println(string(esjson.Set(row, "ts", []byte("7"))))
	// Output: {"ts":7, "unknown" : 2.50}
}
