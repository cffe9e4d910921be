package esjson_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// checkIndexes: splitting with an index gives the elements of splitting without, and of each the index of its text. One of more than
// room bytes may come without, one that fits may not.
func checkIndexes(t interface {
	Helper()
	Fatalf(string, ...any)
}, src []byte, levels, room int) {
	t.Helper()
	var want []esjson.Element
	wantTail, err := esjson.Split(bytes.NewReader(src), func(e esjson.Element) error { want = append(want, e); return nil })
	if err != nil {
		t.Fatalf("%v", err)
	}
	var got []esjson.Element
	var alone esjson.Index
	tail, err := esjson.SplitIndex(iotest.HalfReader(bytes.NewReader(src)), levels, room, func(e esjson.Element, x *esjson.Index) error {
		got = append(got, e)
		raw := src[e.Off : e.Off+e.Len]
		switch {
		case x == nil && len(raw) <= room:
			t.Fatalf("%.200q has no index", raw)
		case x != nil && !alone.Read(raw, levels):
			t.Fatalf("%.200q is no value", raw)
		case x != nil && (outline(x) != outline(&alone) || x.Unicode() != alone.Unicode()):
			t.Fatalf("%.200q:\n%.2000s\nwant\n%.2000s", raw, outline(x), outline(&alone))
		}
		return nil
	})
	if err != nil || tail != wantTail || !cmp.Equal(want, got) {
		t.Fatalf("%.200q: %v\n%+v %v\nwant\n%+v %v", src, err, tail, got, wantTail, want)
	}
}

// Elements that lie across the reads, at their beginnings, in the middle of a name, an escape or a number, are indexed as if
// they had been read alone.
func TestAnElementIsIndexedAcrossReads(t *testing.T) {
	const chunk = 256 << 10
	element := `{"k\u00e9y":[1.25e3,{"type":"text","n":-12,"t":"a\\\n\u00e9"},[[true]]],"partial":false}`
	tail := "," + element + `,-1.5,"x"]`
	for back := range len(element) + 4 {
		before := strings.Repeat(" ", chunk-1-back)
		checkIndexes(t, []byte("["+before+element+tail), 3, 1<<10)
		checkIndexes(t, []byte("[1,"+before[2:]+element+tail), 1, 1<<10)
	}
}

// Also one that is longer than the buffer, as long as there is room for it.
func TestALongElementIsIndexed(t *testing.T) {
	var list []string
	for _, n := range []int{100 << 10, 300 << 10, 1_000 << 10, 200 << 10, 1_100 << 10} {
		list = append(list, fmt.Sprintf(`{"n":%d,"text":"%s","end":[1]}`, n, strings.Repeat(`0123456\n`, n/10)))
	}
	checkIndexes(t, []byte("["+strings.Join(list, ",")+"]"), 3, 1<<20)
}

func TestSplitIndexOfAnything(t *testing.T) {
	leaf := rapid.SampledFrom([]string{`1`, `-0.5e-3`, `"a"`, `"\u0041\\"`, `null`, `true`, `[]`, `{}`, `"` + strings.Repeat(`line\n`, 100) + `"`})
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			kind := rapid.IntRange(0, 2).Draw(t, "kind")
			if depth == 0 || kind == 0 {
				return leaf.Draw(t, "leaf")
			}
			parts := rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "parts")
			if kind == 1 {
				return "[" + strings.Join(parts, " ,") + "]"
			}
			for i := range parts {
				parts[i] = fmt.Sprintf(`"m%d" : %s`, i%3, parts[i])
			}
			return "{" + strings.Join(parts, ",") + "}"
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		src := []byte("[" + strings.Join(rapid.SliceOfN(value(4), 0, 6).Draw(t, "elements"), ",\n") + "]")
		switch at := rapid.IntRange(0, len(src)).Draw(t, "at"); rapid.IntRange(0, 3).Draw(t, "damage") {
		case 1:
			src = src[:at]
		case 2:
			src = append(src[:at:at], append([]byte{0, 0}, src[at:]...)...)
		case 3:
			src = append(src[:at:at], append([]byte(`"`), src[at:]...)...)
		}
		checkIndexes(t, src, rapid.IntRange(0, 4).Draw(t, "levels"), rapid.SampledFrom([]int{0, 10, 100, 1 << 20}).Draw(t, "room"))
	})
}

// What is remembered of an element does not grow with the element: it may be a bomb.
func TestSplitIndexMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	const bomb = `"k":[1,2],"k":{},`
	readers := []io.Reader{strings.NewReader(`[{"ts":1},{`)}
	for range 2_000 {
		readers = append(readers, strings.NewReader(strings.Repeat(bomb, 1_000))) // 34 MB, six million values
	}
	readers = append(readers, strings.NewReader(`"k":1},{"ts":2}]`))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var seen []string
	tail, err := esjson.SplitIndex(io.MultiReader(readers...), 3, 64<<10, func(e esjson.Element, x *esjson.Index) error {
		if x == nil {
			seen = append(seen, "too long")
		} else {
			seen = append(seen, string(x.Raw(0)))
		}
		return nil
	})
	runtime.ReadMemStats(&after)
	if err != nil || !tail.Clean() || !cmp.Equal(seen, []string{`{"ts":1}`, "too long", `{"ts":2}`}) {
		t.Fatalf("%v %+v %q", err, tail, seen)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes allocated for an element of %d", used, tail.Size)
	}
}
