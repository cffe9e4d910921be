package esjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

func split(t testing.TB, r io.Reader, src []byte) ([]string, esjson.Tail) {
	t.Helper()
	var list []string
	tail, err := esjson.Split(r, func(e esjson.Element) error {
		list = append(list, string(src[e.Off:e.Off+e.Len]))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, tail
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     string // elements, joined by |
		end      esjson.End
		lead     int64
		off      int64
	}{
		{"plain", `[{"a":1},2,"x"]`, `{"a":1}|2|"x"`, esjson.EndComplete, 0, 15},
		{"blanks", " [ 1 ,\n[2] ]\n", `1|[2]`, esjson.EndComplete, 0, 12},
		{"none", `[]`, ``, esjson.EndComplete, 0, 2},
		{"mark", "\ufeff[1]", `1`, esjson.EndComplete, 3, 6},
		{"NULs before", "\x00\x00[1]", `1`, esjson.EndComplete, 2, 5},
		{"garbage before", `ab[c [{"a":1}]`, `{"a":1}`, esjson.EndComplete, 0, 14},
		{"garbage after", `[1]x`, `1`, esjson.EndAfter, 0, 3},
		{"NULs after", "[1]\x00\x00", `1`, esjson.EndAfter, 0, 3},
		{"two lists", `[1][2]`, `1`, esjson.EndAfter, 0, 3},
		{"nothing", ``, ``, esjson.EndEmpty, 0, 0},
		{"only NULs", "\x00\x00\x00", ``, esjson.EndEmpty, 3, 3},
		{"object", `{"a":[1]}`, ``, esjson.EndNotArray, 0, 0},
		{"text", `hello`, ``, esjson.EndNotArray, 5, 5},
		{"torn after comma", `[1,`, `1`, esjson.EndTorn, 0, 3},
		{"torn in a number", `[1,2`, `1`, esjson.EndTorn, 0, 4},
		{"hole", "[1,\x00\x00\x003]", `1`, esjson.EndBroken, 0, 3},
		{"comma at the end", `[1,]`, `1`, esjson.EndBroken, 0, 3},
		{"comma missing", `[1 2]`, `1`, esjson.EndBroken, 0, 3},
		{"wrong bracket", `[{"a":1]]`, ``, esjson.EndBroken, 0, 7},
	} {
		got, tail := split(t, strings.NewReader(c.in), []byte(c.in))
		if strings.Join(got, "|") != c.want || tail.End != c.end || tail.Off != c.off || tail.Size != int64(len(c.in)) || tail.Elements != len(got) {
			t.Errorf("%s: got %q, %+v, want strings.Join(got, \"|\") = %v and tail.End = c.end and tail.Off = c.off and tail.Size = int64(len(c.in)) and tail.Elements = len(got)",
				c.name, got, tail, c.want)
		}
		if c.lead != 0 && tail.Lead != c.lead {
			t.Errorf("%s: lead %d, want %d", c.name, tail.Lead, c.lead)
		}
		if tail.Clean() != (esjson.Valid([]byte(c.in)) && esjson.TypeOf([]byte(c.in)) == esjson.TypeArray) {
			t.Errorf("%s: Clean = %v", c.name, tail.Clean())
		}
		// The size of the reads must not matter.
		slow, tail2 := split(t, iotest.OneByteReader(strings.NewReader(c.in)), []byte(c.in))
		if !cmp.Equal(got, slow) || tail != tail2 {
			t.Errorf("%s: byte by byte %q, %+v", c.name, slow, tail2)
		}
	}
}

func TestSplitCutAtEveryByte(t *testing.T) {
	elements := []string{`{"ts":1,"text":"a \"quoted\" [x] \\"}`, `-1.5e+3`, `"\ud83d\ude80é"`, `[[{"a":{}}],[]]`, `null`, `{}`, `true`}
	src := []byte("[" + strings.Join(elements, " ,\n") + "]")
	var ends []int // offset after each element
	at := 1
	for _, e := range elements {
		at += len(e)
		ends = append(ends, at)
		at += len(" ,\n")
	}
	for cut := range src {
		got, tail := split(t, bytes.NewReader(src[:cut]), src)
		want := 0
		for want < len(ends) && ends[want] <= cut {
			want++
		}
		// A number is whole only when something follows it.
		if want == 2 && cut == ends[1] {
			want = 1
		}
		if len(got) != want || tail.End == esjson.EndComplete {
			t.Fatalf("cut at %d: %d elements of %d, %+v", cut, len(got), want, tail)
		}
	}
}

func TestSplitEndsOnCallersError(t *testing.T) {
	boom := errors.New("boom")
	n := 0
	_, err := esjson.Split(strings.NewReader(`[1,2,3]`), func(esjson.Element) error { n++; return boom })
	if !errors.Is(err, boom) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
	tail, err := esjson.Split(strings.NewReader(`[1,2,3]`), func(esjson.Element) error { return esjson.ErrStop })
	if err != nil || tail.Elements != 1 {
		t.Errorf("got %v, %+v, want no error and tail.Elements = 1", err, tail)
	}
	_, err = esjson.Split(iotest.ErrReader(boom), func(esjson.Element) error { return nil })
	if !errors.Is(err, boom) {
		t.Errorf("got %v, want errors.Is(err, boom)", err)
	}
}

// bigArray yields an array of n messages of about size bytes without holding it.
func bigArray(n, size int) io.Reader {
	msg := `{"ts":1776200000000,"type":"say","say":"text","text":"` + strings.Repeat(`some words, a \"quote\" and a line\n`, size/36) + `"},`
	readers := make([]io.Reader, 0, n+2)
	readers = append(readers, strings.NewReader("["))
	for range n {
		readers = append(readers, strings.NewReader(msg))
	}
	return io.MultiReader(append(readers, strings.NewReader("1]"))...)
}

func TestSplitMemory(t *testing.T) {
	var before, after runtime.MemStats
	r := bigArray(20_000, 10_000) // 200 MB
	runtime.ReadMemStats(&before)
	tail, err := esjson.Split(r, func(esjson.Element) error { return nil })
	runtime.ReadMemStats(&after)
	if err != nil || tail.Elements != 20_001 {
		t.Fatalf("got %v %+v, want no error and tail.Elements = 20_001", err, tail)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d bytes allocated for a file of %d", used, tail.Size)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{`[1,2]`, `[{"a":"]"},[`, "\xef\xbb\xbf[]", `x[{`, `[1]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, tail := split(t, bytes.NewReader(src), src)
		for _, e := range got {
			if !esjson.Valid([]byte(e)) {
				t.Fatalf("element %q of %q", e, src)
			}
		}
		if array := esjson.Valid(src) && esjson.TypeOf(src) == esjson.TypeArray; array != tail.Clean() {
			t.Fatalf("%q: valid array %v, %+v", src, array, tail)
		}
		slow, tail2 := split(t, iotest.OneByteReader(bytes.NewReader(src)), src)
		if !cmp.Equal(got, slow) || tail != tail2 {
			t.Fatalf("%q: %+v and %+v", src, tail, tail2)
		}
		checkIndexes(t, src, 3, 20)
	})
}

func BenchmarkSplit(b *testing.B) {
	data, err := io.ReadAll(bigArray(2000, 10_000))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if tail, err := esjson.Split(bytes.NewReader(data), func(esjson.Element) error { return nil }); err != nil || !tail.Clean() {
			b.Fatal(err, tail)
		}
	}
}

func BenchmarkStringify(b *testing.B) {
	data, err := io.ReadAll(bigArray(2000, 10_000))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	var out []byte
	for b.Loop() {
		if out, err = esjson.Stringify(out[:0], data); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleSplit() {
	torn := `[{"ts":1},{"ts":2},{"ts":`
	tail, _ := esjson.Split(strings.NewReader(torn), func(e esjson.Element) error {
		fmt.Println(torn[e.Off : e.Off+e.Len])
		return nil
	})
	fmt.Println(tail.End, "after", tail.Elements)
	// Output:
	// {"ts":1}
	// {"ts":2}
	// torn after 2
}
