package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/filelock"
)

func tell(t testing.TB, w *Files, lines ...Line) {
	t.Helper()
	for _, l := range lines {
		if err := w.Append(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

func line(task string, epoch, from, to uint64) Line {
	return Line{Source: "roost", Task: task, Epoch: epoch, From: from, To: to}
}

// rest is all that a reader gives now, as text, and the places of its lines.
func rest(t testing.TB, r Reader) (out []string, at []Place) {
	t.Helper()
	for {
		e, ok, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out, at
		}
		text := fmt.Sprintf("%s %d-%d", e.Task, e.New.From, e.New.To)
		if e.New.To < e.New.From {
			text = e.Task + " nothing"
		}
		out, at = append(out, text), append(at, e.At)
	}
}

// files is the log in a folder; its owners are dead.
func files(dir string) *Files {
	return NewFiles(dir, func() int64 { return 7 }, func(context.Context, Task) bool { return false })
}

func reader(t testing.TB, dir string, from Place) *fileReader {
	t.Helper()
	r, err := files(dir).Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r.(*fileReader)
}

func left(t *testing.T, r Reader) []Task {
	t.Helper()
	list, err := r.Left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// newest is the newest segment in a folder; 0 without one.
func newest(t testing.TB, dir string) uint64 {
	t.Helper()
	list, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1]
}

// Behind every place a reader finds what one finds that has read all, over all segments.
func TestEveryPlaceGivesTheRest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		w := files(dir)
		w.size = int64(rapid.IntRange(200, 900).Draw(rt, "size"))
		at := map[string]uint64{}
		r, _ := files(dir).Open(t.Context(), Place{})
		var want []string
		var places []Place
		for range rapid.IntRange(1, 40).Draw(rt, "lines") {
			task := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "task")
			to := at[task] + uint64(rapid.IntRange(0, 3).Draw(rt, "more"))
			tell(t, w, line(task, 1, min(at[task]+1, to), max(to, 1)))
			at[task] = max(to, 1)
			if rapid.IntRange(0, 5).Draw(rt, "damage") == 0 {
				f, err := os.OpenFile(segmentPath(dir, newest(t, dir)), os.O_WRONLY|os.O_APPEND, 0)
				if err != nil {
					rt.Fatal(err)
				}
				if _, err := f.WriteString(rapid.SampledFrom([]string{"torn {", "\n", "\x00\x00", `{"source":"roost","task":"a","epoch":9,"from":1,"to":99,"crc":"00000000"}` + "\n"}).Draw(rt, "what")); err != nil {
					rt.Fatal(err)
				}
				f.Close()
			}
			texts, found := rest(t, r)
			want, places = append(want, texts...), append(places, found...)
		}
		r.Close()
		list, err := segments(dir)
		if err != nil || len(list) > keepSegments {
			rt.Fatal(list, err)
		}
		for i, p := range places {
			r, err := files(dir).Open(t.Context(), p)
			if p.Segment < list[0] {
				if !errors.Is(err, ErrUnknown) {
					rt.Fatal("a place that is gone:", err)
				}
				continue
			}
			if err != nil {
				rt.Fatal(i, p, err)
			}
			got, _ := rest(t, r)
			r.Close()
			if diff := cmp.Diff(want[i:], got); diff != "" {
				rt.Fatal(i, p, diff)
			}
		}
		end, last, err := files(dir).OpenEnd(t.Context())
		if err != nil || len(places) > 0 && last.Segment < places[len(places)-1].Segment {
			rt.Fatal(last, err)
		}
		tell(t, w, line("z", 1, 1, 1))
		if got, _ := rest(t, end); !cmp.Equal(got, []string{"z 1-1"}) {
			rt.Fatal("behind the end:", got)
		}
		end.Close()
	})
}

// A reader of a log that is deleted is told so; one that waits for a log gets it from its
// beginning.
func TestDeletedAndBorn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "feed")
	r, end, err := files(dir).OpenEnd(t.Context())
	if err != nil || end != (Place{}) {
		t.Fatal(end, err)
	}
	defer r.Close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("reading made the folder")
	}
	w := files(dir)
	tell(t, w, line("a", 1, 1, 4))
	got, _ := rest(t, r)
	if diff := cmp.Diff([]string{"a 1-4"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Task{{"roost", "a"}}, left(t, r)); diff != "" {
		t.Error(diff)
	}
	tell(t, w, Line{Source: "roost", Task: "a", Epoch: 1, From: 5, To: 4, End: true})
	if got, _ := rest(t, r); len(left(t, r)) != 0 || !cmp.Equal(got, []string{"a nothing"}) {
		t.Error(got, left(t, r))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Next(t.Context()); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

// Several processes write at once, with segments that end after a few lines: nothing is
// lost or told twice, and each process's lines keep their order.
func TestManyProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "feed")
	first := line("first", 1, 1, 1)
	first.End = true
	tell(t, files(dir), first) // so that the reader is there before any segment goes
	r := reader(t, dir, Place{})
	var writers []*exec.Cmd
	for i := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ROOST_FEED_TEST_WRITER=t"+strconv.Itoa(i), "ROOST_FEED_TEST_LINES=300",
			"ROOST_FEED_TEST_DIR="+dir, "ROOST_FEED_TEST_BYTES=4096")
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, cmd)
	}
	far := map[string]uint64{}
	for until := time.Now().Add(time.Minute); far["t0"]+far["t1"]+far["t2"] < 900; {
		e, ok, err := r.Next(t.Context())
		if errors.Is(err, ErrGone) {
			break // this machine reads more slowly than it writes eight segments
		}
		if err != nil || time.Now().After(until) {
			t.Fatal(err, far)
		}
		if !ok {
			time.Sleep(time.Millisecond)
			continue
		}
		if e.New.From != far[e.Task]+1 || e.New.To != e.To {
			t.Fatalf("%+v behind %d", e, far[e.Task])
		}
		far[e.Task] = e.To
	}
	for _, w := range writers {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
	end, _, err := files(dir).OpenEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	want := table{{"roost", "first"}: announced{Announced: Announced{1, 1}}}
	for i := range 3 {
		want[Task{"roost", "t" + strconv.Itoa(i)}] = announced{Announced: Announced{1, 300}}
	}
	if diff := cmp.Diff(want, end.(*fileReader).seg.table, cmp.AllowUnexported(announced{})); diff != "" {
		t.Error(diff)
	}
}

// A segment whose begin was cut off by a kill goes on with what came before it; one that
// lost its head begins another log.
func TestTornHeads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "feed")
	w := files(dir)
	tell(t, w, line("a", 1, 1, 3))
	head, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, torn := range []string{"", string(head[:20]), strings.Repeat("\x00", 300)} {
		if err := os.WriteFile(segmentPath(dir, 2), []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		r := reader(t, dir, Place{})
		if got, _ := rest(t, r); !cmp.Equal(got, []string{"a 1-3"}) {
			t.Errorf("%q: %v", torn, got)
		}
		tell(t, files(dir), line("a", 1, 4, 5))
		if got, at := rest(t, r); !cmp.Equal(got, []string{"a 4-5"}) || at[0].Feed == "" || at[0].Segment != 2 {
			t.Errorf("%q: %v %v", torn, got, at)
		}
	}
	if err := os.WriteFile(segmentPath(dir, 1), bytes.Repeat([]byte{0}, 500), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(segmentPath(dir, 2)); err != nil {
		t.Fatal(err)
	}
	tell(t, files(dir), line("a", 1, 6, 6))
	if got, _ := rest(t, reader(t, dir, Place{})); !cmp.Equal(got, []string{"a 0-6"}) {
		t.Error(got)
	}
}

// Two writers of one process and a stopped one: who cannot have the lock says so, and
// loses nothing by it.
func TestBusy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "feed")
	w := files(dir)
	tell(t, w, line("a", 1, 1, 1))
	f, err := os.OpenFile(segmentPath(dir, 1), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := filelock.Try(f, filelock.Exclusive); !got || err != nil {
		t.Fatal(got, err)
	}
	if err := w.Append(t.Context(), line("a", 1, 2, 2)); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	f.Close()
	tell(t, w, line("a", 1, 2, 3))
	if got, _ := rest(t, reader(t, dir, Place{})); !cmp.Equal(got, []string{"a 1-1", "a 2-3"}) {
		t.Error(got)
	}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for n := uint64(1); n <= 20; n++ {
				_ = w.Append(t.Context(), line("t"+strconv.Itoa(i), 1, n, n))
			}
		})
	}
	wait.Wait()
	r := reader(t, dir, Place{})
	rest(t, r)
	if len(r.seg.table) != 9 {
		t.Error(r.seg.table)
	}
}

func FuzzLine(f *testing.F) {
	for _, l := range []Line{line("a", 1, 2, 3), {Source: "roo-1", Task: "x.y", Epoch: 9, From: 1 << 62, To: 1 << 62, End: true}} {
		f.Add(bytes.TrimSuffix(l.append(nil), []byte("\n")))
	}
	f.Add([]byte(`{"source":"a","task":"b","epoch":1,"from":1,"to":1,"crc":"00000000"}`))
	f.Add([]byte(`{"source":"roo-1","task":"x.y","epoch":9,"from":4611686018427387904,"to":4611686018427387904,"end":true,"crc":"7C6ed0f1"}`)) // one bit of the checksum is another
	f.Fuzz(func(t *testing.T, b []byte) {
		l, _, ok := parse(b)
		if ok && !bytes.Equal(l.append(nil), append(bytes.Clone(b), '\n')) {
			t.Errorf("%q is read as %+v", b, l)
		}
		// What has the right checksum and still is no line must do no harm either.
		if sealed := seal(bytes.Clone(b)); len(sealed) > 0 {
			if l, _, ok := parse(bytes.TrimSuffix(sealed, []byte("\n"))); ok && (!plain(l.Task) || !plain(l.Source)) {
				t.Errorf("%q is read as %+v", sealed, l)
			}
		}
	})
}
