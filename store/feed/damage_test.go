package feed

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// slow leaves a test with one goroutine out of the short run, which looks for races.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine, and many files")
	}
}

// spoil changes a segment's bytes as a disk or another program would.
func spoil(t testing.TB, dir string, n uint64, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(segmentPath(dir, n))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segmentPath(dir, n), change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// behind adds bytes at the end of a segment, as a writer that is killed leaves them.
func behind(t testing.TB, dir string, n uint64, text string) {
	t.Helper()
	spoil(t, dir, n, func(b []byte) []byte { return append(b, text...) })
}

// two makes a log of two segments: the second begins with a table of the tasks a, b and c.
func two(t testing.TB) (dir string, w *Files) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "feed")
	w = files(dir)
	w.size = 1
	tell(t, w, line("a", 1, 1, 4))
	w.size = segmentBytes
	tell(t, w, line("b", 1, 1, 5), line("c", 1, 1, 6))
	w.size = 1
	tell(t, w, line("a", 1, 5, 7))
	w.size = segmentBytes
	if n := newest(t, dir); n != 2 {
		t.Fatalf("%d segments", n)
	}
	return dir, w
}

// Wherever a bit of a table is another one, no line behind the table is passed over: a task
// whose row is damaged is told anew, and the others go on.
func TestADamagedTableHidesNoLine(t *testing.T) {
	slow(t)
	dir, w := two(t)
	tell(t, w, line("c", 1, 7, 8), line("b", 1, 6, 6), line("a", 1, 8, 8))
	whole, err := os.ReadFile(segmentPath(dir, 2))
	if err != nil {
		t.Fatal(err)
	}
	headEnd := bytes.IndexByte(whole, '\n') + 1
	f, err := os.Open(segmentPath(dir, 2))
	if err != nil {
		t.Fatal(err)
	}
	h, ok, err := readHead(f)
	f.Close()
	if err != nil || !ok || int64(headEnd) != h.size {
		t.Fatal(h, ok, err)
	}
	for at := headEnd; at < int(h.body); at++ {
		spoil(t, dir, 2, func([]byte) []byte {
			b := bytes.Clone(whole)
			b[at] ^= 1
			return b
		})
		r, err := files(dir).openAt(Place{Segment: 2, Offset: h.body})
		if at == int(h.body)-1 { // the newline: the first line is one with the row before it
			if err == nil {
				r.Close()
			}
			continue
		}
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		got, _ := rest(t, r)
		r.Close()
		if len(got) != 4 {
			t.Fatalf("byte %d: %v", at, got)
		}
		for i, want := range []string{"a 5-7", "c 7-8", "b 6-6", "a 8-8"} {
			task, to, _ := strings.Cut(want, "-")
			if got[i] != want && got[i] != task[:2]+"0-"+to {
				t.Errorf("byte %d: line %d makes known %s, want %s", at, i, got[i], want)
			}
		}
	}
}

// What comes behind a line that is cut off, or behind something that is no line and has no
// end, is read, by who was there before it and by who comes later.
func TestTailsThatAreNoLines(t *testing.T) {
	whole := string(line("a", 1, 2, 2).append(nil))
	for name, tail := range map[string]string{
		"a byte":             "{",
		"half a line":        whole[:len(whole)/2],
		"all but its end":    whole[:len(whole)-1],
		"a long line":        strings.Repeat("x", longestLine+1),
		"a very long line":   strings.Repeat("x", 200<<10),
		"many long lines":    strings.Repeat(strings.Repeat("y", longestLine)+"\n", 40),
		"zeroes of a disk":   strings.Repeat("\x00", 70<<10),
		"lines of no length": strings.Repeat("\n", 1000),
		"a line in a line":   `{"source":"roost","task":"` + strings.TrimSuffix(whole, "\n"),
	} {
		dir := filepath.Join(t.TempDir(), "feed")
		w := files(dir)
		tell(t, w, line("a", 1, 1, 1))
		r := reader(t, dir, Place{})
		first, at := rest(t, r)
		behind(t, dir, 1, tail)
		if more, _ := rest(t, r); name != "all but its end" && len(more) > 0 {
			t.Errorf("%s: read as %v", name, more)
		}
		tell(t, files(dir), line("b", 1, 1, 1)) // another process
		tell(t, w, line("a", 1, 3, 3))
		got, places := rest(t, r)
		want := []string{"b 1-1", "a 2-3"}
		if name == "all but its end" { // whoever ended it has said what it says
			want = []string{"a 2-2", "b 1-1", "a 3-3"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: who was there before: %s", name, diff)
		}
		late, _ := rest(t, reader(t, dir, Place{}))
		if diff := cmp.Diff(append(first, want...), late); diff != "" {
			t.Errorf("%s: who comes later: %s", name, diff)
		}
		for i, p := range append(at, places...) {
			if again, _ := rest(t, reader(t, dir, p)); cmp.Diff(late[i:], again) != "" {
				t.Errorf("%s: from place %d: %v", name, i, again)
			}
		}
	}
}

// A place is known until its segment is let go of, and never again; who reads there just
// then is told that it is gone, or reads on.
func TestPlacesThatAreLetGoOf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "feed")
	w := files(dir)
	w.size = 1 // a line a segment
	tell(t, w, line("a", 1, 1, 1))
	slow := reader(t, dir, Place{})
	_, at := rest(t, slow)
	var all []Place
	for n := uint64(2); n <= keepSegments+3; n++ {
		tell(t, w, line("a", 1, n, n))
	}
	e, ok, err := slow.Next(t.Context())
	for ; ok && err == nil; e, ok, err = slow.Next(t.Context()) {
		all = append(all, e.At)
	}
	if len(all) > 0 || err == nil {
		t.Errorf("it read on over segments that are gone: %v, %v", all, err)
	}
	if r, err := files(dir).Open(t.Context(), at[0]); err == nil {
		r.Close()
		t.Error("a place that is gone was found")
	}
	got, places := rest(t, reader(t, dir, Place{}))
	if len(got) != keepSegments || got[0] != fmt.Sprintf("a %d-%d", 4, 4) {
		t.Errorf("of the past there is %v", got)
	}
	for i, p := range places {
		if again, _ := rest(t, reader(t, dir, p)); !slices.Equal(again, got[i:]) {
			t.Errorf("from place %d: %v", i, again)
		}
	}
}

// Two writers of two processes, one of which is killed in the middle of lines: the tables of
// all segments and all readers agree, and each task is told up to its newest whole line.
func TestAppendersOfWhichOneIsKilled(t *testing.T) {
	slow(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		writers := []*Files{files(dir), files(dir)}
		size := int64(rapid.IntRange(100, 600).Draw(rt, "size"))
		writers[0].size, writers[1].size = size, size
		far := map[string]uint64{}
		told := map[string]uint64{}
		r, err := files(dir).Open(t.Context(), Place{})
		if err != nil {
			rt.Fatal(err)
		}
		defer r.Close()
		take := func() {
			for {
				e, ok, err := r.Next(t.Context())
				if err != nil {
					rt.Fatal(err)
				}
				if !ok {
					return
				}
				if e.New.From <= e.New.To && e.New.From != told[e.Task]+1 {
					rt.Fatalf("%s is told from %d behind %d", e.Task, e.New.From, told[e.Task])
				}
				told[e.Task] = max(told[e.Task], e.New.To)
			}
		}
		for range rapid.IntRange(1, 15).Draw(rt, "lines") {
			task := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "task")
			l := line(task, 1, far[task]+1, far[task]+uint64(rapid.IntRange(1, 3).Draw(rt, "commits")))
			w := writers[rapid.IntRange(0, 1).Draw(rt, "writer")]
			if newest(t, dir) > 0 && rapid.IntRange(0, 4).Draw(rt, "killed") == 0 {
				list, err := segments(dir)
				if err != nil {
					rt.Fatal(err)
				}
				text := l.append(nil)
				behind(t, dir, list[len(list)-1], string(text[:rapid.IntRange(0, len(text)-2).Draw(rt, "written")]))
				continue // nobody was told: its task's next line says it
			}
			if err := w.Append(t.Context(), l); err != nil {
				rt.Fatal(err)
			}
			far[task] = l.To
			take()
		}
		take()
		if diff := cmp.Diff(far, told); diff != "" {
			rt.Fatal(diff)
		}
		end, _, err := files(dir).OpenEnd(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		defer end.Close()
		for task, to := range far {
			if got := end.(*fileReader).seg.table[Task{"roost", task}].To; got != to {
				rt.Fatalf("the table has %s at %d, it is at %d", task, got, to)
			}
		}
	})
}
