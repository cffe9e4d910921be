package esjson_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// sameValue compares two trees as JSON.parse would see them.
func sameValue(a, b tree) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case esjson.TypeObject:
		ma, mb := lastOf(a), lastOf(b)
		if len(ma) != len(mb) {
			return false
		}
		for name, i := range ma {
			k, ok := mb[name]
			if !ok || !sameValue(a.parts[i], b.parts[k]) {
				return false
			}
		}
		return true
	case esjson.TypeArray:
		return slices.EqualFunc(a.parts, b.parts, sameValue)
	case esjson.TypeString:
		return a.text == b.text
	case esjson.TypeNumber:
		return double(a.raw) == double(b.raw)
	}
	return a.raw == b.raw
}

func lastOf(v tree) map[string]int {
	m := map[string]int{}
	for i, name := range v.names {
		m[name] = i
	}
	return m
}

func double(lit string) float64 {
	f, _ := strconv.ParseFloat(lit, 64) // infinite where JavaScript's is
	return f
}

// respelled writes a value in another way: members turned round, blanks, escapes.
// Nothing of its meaning changes.
func respelled(t *rapid.T, v tree) string {
	blank := func() string { return genBlank.Draw(t, "blank") }
	switch v.kind {
	case esjson.TypeObject, esjson.TypeArray:
		var items []string
		last := lastOf(v)
		for i, part := range v.parts {
			item := blank() + respelled(t, part) + blank()
			if v.kind == esjson.TypeObject {
				if last[v.names[i]] != i {
					continue // a later one counts
				}
				item = blank() + respelledText(t, v.names[i]) + blank() + ":" + item
			}
			items = append(items, item)
		}
		if v.kind == esjson.TypeObject {
			slices.Reverse(items)
			return "{" + strings.Join(items, ",") + "}"
		}
		return "[" + strings.Join(items, ",") + "]"
	case esjson.TypeString:
		return respelledText(t, v.text)
	}
	return v.raw
}

func respelledText(t *rapid.T, s string) string {
	quoted := string(esjson.Quote(nil, s))
	if !rapid.Bool().Draw(t, "escape") {
		return quoted
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 1; i < len(quoted)-1; {
		if quoted[i] == '\\' {
			n := 2
			if quoted[i+1] == 'u' {
				n = 6
			}
			b.WriteString(quoted[i : i+n])
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(quoted[i:])
		if r < 0x10000 {
			b.WriteString(`\u` + strings.ToUpper(strconv.FormatInt(int64(r)|0x10000, 16)[1:]))
		} else {
			b.WriteString(quoted[i : i+n])
		}
		i += n
	}
	return b.String() + `"`
}

func TestEqualIsSameValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := strings.ToValidUTF8(genJSON(t, 3), "?"), strings.ToValidUTF8(genJSON(t, 3), "?")
		va, _, okA := parse([]byte(a))
		vb, _, okB := parse([]byte(b))
		if !okA || !okB {
			t.Fatalf("%q %q are refused", a, b)
		}
		other := respelled(t, va)
		if !esjson.Equal([]byte(a), []byte(other)) || !esjson.Equal([]byte(other), []byte(a)) {
			t.Fatalf("%s and %s are the same", a, other)
		}
		want := sameValue(va, vb)
		if esjson.Equal([]byte(a), []byte(b)) != want || esjson.Equal([]byte(b), []byte(a)) != want {
			t.Fatalf("Equal(%s, %s) is not %v both ways", a, b, want)
		}
	})
}

// What Stringify, Compact and Node write is the value that was read, and writing it
// again changes nothing.
func TestWritersKeepTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := []byte(strings.ToValidUTF8(genJSON(t, 4), "?"))
		want, _, _ := parse(src)
		for name, write := range map[string]func(dst, src []byte) ([]byte, error){"Stringify": esjson.Stringify, "Compact": esjson.Compact, "Node": esjson.Node} {
			prefix := []byte("before")
			out, err := write(prefix, src)
			if err != nil || !bytes.HasPrefix(out, prefix) {
				t.Fatalf("got %s(%q) = %q, %v, want no error and bytes.HasPrefix(out, prefix)", name, src, out, err)
			}
			out = out[len(prefix):]
			got, _, ok := parse(out)
			infinite := name == "Node" && bytes.Contains(src, []byte("1e400")) // null, as there
			if !ok || !infinite && !sameValue(want, got) {
				t.Fatalf("got %s(%q) = %q, want ok and (infinite or sameValue(want, got))", name, src, out)
			}
			if again, err := write(nil, out); err != nil || !bytes.Equal(again, out) {
				t.Fatalf("%s twice: %q, then %q, %v", name, out, again, err)
			}
			if bytes.ContainsAny(out, "\n\r\t") { // outside strings they are gone, inside they were never raw
				t.Fatalf("%s left blanks in %q", name, out)
			}
		}
	})
}

// Numbers are written as ECMAScript does: the shortest digits that mean the same
// double, plain between 1e-6 and 1e21.
func TestNumberProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if rapid.Bool().Draw(t, "common") {
			f = float64(rapid.IntRange(-1e9, 1e9).Draw(t, "n")) / rapid.SampledFrom([]float64{1, 10, 1e3, 1e6, 3}).Draw(t, "by")
		}
		got := string(esjson.Number(nil, f))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			if got != "null" {
				t.Fatalf("%v is %s", f, got)
			}
			return
		}
		if back := double(got); back != f || !json.Valid([]byte(got)) {
			t.Fatalf("%v is %s, which is %v", f, got, back)
		}
		abs := math.Abs(f)
		if plain := !strings.Contains(got, "e"); plain != (abs == 0 || abs >= 1e-6 && abs < 1e21) {
			t.Fatalf("%v is %s", f, got)
		}
		mantissa, exponent, _ := strings.Cut(got, "e")
		if strings.HasPrefix(strings.TrimLeft(exponent, "+-"), "0") || strings.Contains(mantissa, ".") && strings.HasSuffix(mantissa, "0") || exponent != "" && exponent[0] != '+' && exponent[0] != '-' {
			t.Fatalf("%v is %s: not as short as can be", f, got)
		}
	})
}

// A list read from a file in pieces of any size is the list that is there.
func TestSplitIsArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []string
		for range rapid.IntRange(0, 6).Draw(t, "elements") {
			want = append(want, genJSON(t, 3))
		}
		sep := genBlank.Draw(t, "blank") + "," + genBlank.Draw(t, "blank")
		lead := rapid.SampledFrom([]string{"", "", "\ufeff", "\x00\x00", " \n"}).Draw(t, "lead")
		src := lead + "[" + genBlank.Draw(t, "blank") + strings.Join(want, sep) + genBlank.Draw(t, "blank") + "]"
		var got []string
		tail, err := esjson.Split(pieces{strings.NewReader(src), rapid.IntRange(1, 40).Draw(t, "n")}, func(e esjson.Element) error {
			got = append(got, src[e.Off:e.Off+e.Len])
			return nil
		})
		if diff := cmp.Diff(want, got); err != nil || diff != "" || tail.End != esjson.EndComplete || tail.Off != int64(len(src)) {
			t.Fatalf("%q: got %+v %v %s, want no error and diff = \"\" and tail.End = esjson.EndComplete and tail.Off = int64(len(src))",
				src, tail, err, diff)
		}
		if clean := lead == "" || lead == " \n"; tail.Clean() != clean || clean == (tail.Lead > 0) {
			t.Fatalf("%q: got %+v, want tail.Clean() = clean and clean != (tail.Lead > 0)", src, tail)
		}
	})
}

// pieces reads no more than n bytes at a time.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// What follows damage is lost, what came before it is not: elements before a byte
// that was overwritten are all reported, each whole.
func TestSplitKeepsElementsBeforeDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := []byte("[")
		var ends []int
		for i := range 8 {
			if i > 0 {
				src = append(src, ',')
			}
			src = append(src, genJSON(t, 2)...)
			ends = append(ends, len(src))
		}
		src = append(src, ']')
		at := rapid.IntRange(1, len(src)-1).Draw(t, "at")
		src[at] = rapid.SampledFrom([]byte("\x00\x01\xff\"]}x,")).Draw(t, "byte")
		whole := 0
		for _, end := range ends {
			// A number is whole when the byte after it shows that.
			if end < at {
				whole++
			}
		}
		n := 0
		tail, err := esjson.Split(iotest.HalfReader(bytes.NewReader(src)), func(e esjson.Element) error {
			if !esjson.Valid(src[e.Off : e.Off+e.Len]) {
				t.Fatalf("%q: element %q", src, src[e.Off:e.Off+e.Len])
			}
			n++
			return nil
		})
		if err != nil || n < whole || tail.Elements != n || tail.Last > tail.Off || tail.Off > tail.Size {
			t.Fatalf("%q, damaged at %d: %d elements of %d, %+v, %v", src, at, n, whole, tail, err)
		}
	})
}

// Objects are built as encoding/json would read them.
func TestObjectProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o esjson.Object
		want := map[string]any{}
		for range rapid.IntRange(0, 6).Draw(t, "members") {
			name := rapid.StringOf(rapid.SampledFrom([]rune("ab\"\\\n\u2028é🚀"))).Draw(t, "name")
			if _, twice := want[name]; twice {
				continue
			}
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				s := rapid.String().Draw(t, "s")
				o.String(name, s)
				want[name] = s
			case 1:
				n := rapid.Int64Range(-1<<53, 1<<53).Draw(t, "n")
				o.Int(name, n)
				want[name] = float64(n)
			case 2:
				f := rapid.Float64().Draw(t, "f")
				o.Float(name, f)
				want[name] = f
			case 3:
				b := rapid.Bool().Draw(t, "b")
				o.Bool(name, b)
				want[name] = b
			default:
				o.Raw(name, []byte(`[null]`))
				want[name] = []any{nil}
			}
			// Bytes may be called at any time, and the builder stays usable.
			if !esjson.Valid(o.Bytes()) {
				t.Fatalf("got %s, want esjson.Valid(o.Bytes())", o.Bytes())
			}
		}
		var got map[string]any
		if err := json.Unmarshal(o.Bytes(), &got); err != nil || !cmp.Equal(want, got) {
			t.Fatalf("%s: %v %s", o.Bytes(), err, cmp.Diff(want, got))
		}
	})
}

// Set and Remove change one member; every other byte of the text stays, with all its
// blanks and spellings.
func TestSpliceKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := []byte("{" + genBlank.Draw(t, "blank") + "}")
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			src = esjson.Set(src, rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"), []byte(genBlank.Draw(t, "blank")+genJSON(t, 2)))
		}
		before := map[string]string{}
		for name, val := range esjson.Members(src) {
			before[name] = string(val)
		}
		set, removed := esjson.Set(src, "a", []byte(`"new"`)), esjson.Remove(src, "a")
		for name, text := range map[string][]byte{"Set": set, "Remove": removed} {
			if !esjson.Valid(text) {
				t.Fatalf("%s made %q of %q", name, text, src)
			}
			for _, other := range []string{"b", "c", "d"} {
				val, ok := esjson.Get(text, other)
				if was, had := before[other]; ok != had || string(val) != was {
					t.Fatalf("%s of %q: %s is %q", name, src, other, val)
				}
			}
		}
		if val, ok := esjson.Get(set, "a"); !ok || string(val) != `"new"` {
			t.Fatalf("Set made %q of %q", set, src)
		}
		if _, ok := esjson.Get(removed, "a"); ok {
			t.Fatalf("Remove made %q of %q", removed, src)
		}
		if _, had := before["a"]; !had && !bytes.Equal(removed, src) {
			t.Fatalf("Remove of nothing made %q of %q", removed, src)
		}
	})
}

// Broken text may give anything, but no panic and no endless loop: damaged files are
// looked into before they are judged.
func TestBrokenTextIsHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"{", "}", "[", "]", `"`, `\`, ",", ":", " ", "1", "-", "e", "t", "null", "\x00", "\n", `"a"`, `\u`, `\ud8`, "\xff", "a", "."}), 0, 30).Draw(t, "bytes"), ""))
		for name, val := range esjson.Members(src) {
			esjson.Get(src, name)
			esjson.GetInt(src, name)
			esjson.GetFloat(src, name)
			esjson.GetString(src, name)
			esjson.GetBool(src, name)
			esjson.Set(src, name, val)
			esjson.Remove(src, name)
		}
		for e := range esjson.Array(src) {
			if _, err := esjson.Unquote(e); err == nil && !esjson.Valid(e) {
				t.Fatalf("Unquote took %q", e)
			}
		}
		if n, whole := esjson.Prefix(src); whole && !esjson.Valid(src[:n]) {
			t.Fatalf("Prefix took %q of %q", src[:n], src)
		}
	})
}

func TestPrefix(t *testing.T) {
	for _, tt := range []struct {
		src   string
		n     int
		whole bool
	}{
		{`{"a":1} tail`, 7, true}, {`  [1]]]`, 5, true}, {`"x"y`, 3, true}, {`12,`, 2, true}, {`12`, 2, false}, {`-`, 1, false}, {`true`, 4, true}, {`tru`, 3, false},
		{`nulL`, 3, false}, {``, 0, false}, {`   `, 3, false}, {`{"a":`, 5, false}, {`{"a"1}`, 4, false}, {`]`, 0, false}, {`}`, 0, false}, {`[}`, 1, false}, {`[1,]`, 3, false},
	} {
		n, whole := esjson.Prefix([]byte(tt.src))
		if n != tt.n || whole != tt.whole {
			t.Errorf("Prefix(%q) = %d, %v; want %d, %v", tt.src, n, whole, tt.n, tt.whole)
		}
	}
}

func TestTypeOf(t *testing.T) {
	for src, want := range map[string]string{
		`{}`: "object", ` [`: "array", "\n\"": "string", `-`: "number", `0`: "number", `true`: "boolean", `f`: "boolean", `null`: "null", ``: "invalid", `  `: "invalid", `x`: "invalid", `+1`: "invalid", `}`: "invalid",
	} {
		if got := esjson.TypeOf([]byte(src)).String(); got != want {
			t.Errorf("TypeOf(%q) = %s, want %s", src, got, want)
		}
	}
	if got := esjson.Type(99).String(); got != "invalid" {
		t.Error(got)
	}
}
