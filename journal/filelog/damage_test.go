package filelog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// shown is what a walk over a log shows, in short: commits by number, lost ones
// with a minus.
func shown(t rapid.TB, walk func(func(journal.Commit, error) bool)) (out []string) {
	for c, err := range walk {
		var d *journal.DamageError
		switch {
		case errors.As(err, &d):
			out = append(out, fmt.Sprintf("-%d", d.Seq))
		case err != nil:
			t.Fatalf("after %v: %v", out, err)
		default:
			out = append(out, fmt.Sprint(c.Seq))
		}
	}
	return out
}

// hurt damages a log: bytes are flipped, lines cut out, doubled, moved, torn.
func hurt(t *rapid.T, log []byte) []byte {
	lines := slices.Collect(bytes.Lines(log))
	for range rapid.IntRange(1, 4).Draw(t, "wounds") {
		if len(lines) == 0 {
			break
		}
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		switch rapid.SampledFrom([]string{"flip", "cut", "double", "swap", "text", "zero", "join"}).Draw(t, "wound") {
		case "flip":
			l := bytes.Clone(lines[i])
			l[rapid.IntRange(0, len(l)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "mask"))
			lines[i] = l
		case "cut":
			lines = slices.Delete(slices.Clone(lines), i, i+1)
		case "double":
			lines = slices.Insert(slices.Clone(lines), i, lines[i])
		case "swap":
			if i > 0 {
				lines = slices.Clone(lines)
				lines[i], lines[i-1] = lines[i-1], lines[i]
			}
		case "text":
			lines = slices.Insert(slices.Clone(lines), i, []byte("{\"not\":\"a commit\"}\n"))
		case "zero":
			lines[i] = make([]byte, len(lines[i]))
		case "join":
			lines[i] = bytes.TrimSuffix(lines[i], []byte("\n"))
		}
	}
	out := bytes.Join(lines, nil)
	if rapid.Bool().Draw(t, "torn") && len(out) > 0 {
		out = out[:len(out)-rapid.IntRange(1, min(len(out), 50)).Draw(t, "tear")]
	}
	return out
}

// history is a log of several epochs.
func history(t testing.TB, commits int) []byte {
	t.Helper()
	var log []byte
	epoch := uint64(1)
	for seq := 1; seq <= commits; seq++ {
		if seq%17 == 0 {
			epoch++
		}
		var err error
		log, err = journal.AppendSigned(log, journal.Commit{
			Seq: uint64(seq), Epoch: epoch, At: int64(seq), By: "t",
			Events: []journal.Event{fmt.Appendf(nil, `{"pad":"%0*d"}`, seq%400, seq)},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// However a log is damaged: reading never fails, from anywhere shows the same as
// from the start, backward shows the reverse of forward, each number comes once;
// and an owner goes on behind it all, changing nothing of what was shown.
func TestDamagedLogsAreReadTheSameWayByAll(t *testing.T) {
	whole := history(t, 200)
	home := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(home, "*")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		bad := hurt(rt, whole)
		put(t, dir, "journal.jsonl", bad)
		r, err := filelog.OpenReader(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer r.Close()
		forward := shown(rt, r.Read(t.Context(), 1))
		backward := shown(rt, r.ReadBackward(t.Context(), 0))
		slices.Reverse(backward)
		if diff := cmp.Diff(forward, backward); diff != "" {
			rt.Fatalf("backward differs (-forward +backward):\n%s", diff)
		}
		for i, s := range forward {
			if strings.TrimPrefix(s, "-") != fmt.Sprint(i+1) {
				rt.Fatalf("number %d is %s", i+1, s)
			}
		}
		from := rapid.Uint64Range(1, 210).Draw(rt, "from")
		if diff := cmp.Diff(forward[min(int(from)-1, len(forward)):], shown(rt, r.Read(t.Context(), from)), equalEmpty); diff != "" {
			rt.Fatalf("from %d (-want +got):\n%s", from, diff)
		}
		before := rapid.Uint64Range(1, 210).Draw(rt, "before")
		part := shown(rt, r.ReadBackward(t.Context(), before))
		slices.Reverse(part)
		if diff := cmp.Diff(forward[:min(int(before)-1, len(forward))], part, equalEmpty); diff != "" {
			rt.Fatalf("before %d (-want +got):\n%s", before, diff)
		}
		h, err := r.Health(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		lost := 0
		for _, s := range forward {
			if s[0] == '-' {
				lost++
			}
		}
		if len(h.Damaged) != lost || h.OK() != (lost == 0) || int(h.Commits) != len(forward)-lost {
			rt.Fatalf("health %+v, shown were %d lost of %d", h, lost, len(forward))
		}
		if now, err := os.ReadFile(filepath.Join(dir, "journal.jsonl")); err != nil || !bytes.Equal(now, bad) {
			rt.Fatal("reading changed the log", err)
		}
		o, err := filelog.Own(t.Context(), dir, filelog.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		add(t, o, 1)
		if err := o.Close(); err != nil {
			rt.Fatal(err)
		}
		after := shown(rt, reader(t, dir).Read(t.Context(), 1))
		n := len(forward)
		want := append(slices.Clone(forward), fmt.Sprint(n+1), fmt.Sprint(n+2))
		if diff := cmp.Diff(want, after); diff != "" {
			rt.Fatalf("after an owner (-want +got):\n%s", diff)
		}
	})
}

var equalEmpty = cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())

// A reader that has the log open learns of damage done meanwhile; it does not
// show half of a line or stop for good.
func TestDamageUnderAnOpenReader(t *testing.T) {
	dir, log := made(t, 200)
	r := reader(t, dir)
	if head, err := r.Head(t.Context()); err != nil || head != 200 {
		t.Fatal(head, err)
	}
	third := bytes.Index(log, []byte(`{"seq":3,`))
	f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("#"), int64(third+5)); err != nil {
		t.Fatal(err)
	}
	got := shown(t, r.Read(t.Context(), 1))
	if len(got) != 200 || got[2] != "-3" || got[3] != "4" {
		t.Fatalf(`got %v, want len(got) = 200 and got[2] = "-3" and got[3] = "4"`, got[:5])
	}
	back := shown(t, r.ReadBackward(t.Context(), 5))
	if diff := cmp.Diff([]string{"4", "-3", "2", "1"}, back); diff != "" {
		t.Fatal(diff)
	}
}

// The place that an index names may be damaged itself: the reader then starts
// further back, and finds the same.
func TestDamageAtAPlaceTheIndexNames(t *testing.T) {
	dir, _ := made(t, 400)
	o := mustOwn(t, dir, filelog.Options{})
	if err := o.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 400, Data: []byte("s")}); err != nil {
		t.Fatal(err)
	}
	o.Close()
	log, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []int{65, 129, 193, 257, 321, 385, 400, 401} {
		at := bytes.Index(log, fmt.Appendf(nil, `{"seq":%d,`, seq))
		bad := bytes.Clone(log)
		bad[at+3] = '#'
		f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(bad, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
		r := reader(t, dir)
		from := uint64(seq) - 1
		got := shown(t, r.Read(t.Context(), from))
		if len(got) < 2 || got[0] != fmt.Sprint(from) || got[1] != fmt.Sprintf("-%d", seq) {
			t.Fatalf("commit %d: from %d on %v", seq, from, got[:min(3, len(got))])
		}
		back := shown(t, r.ReadBackward(t.Context(), 0))
		if len(back) != 401 || !slices.Contains(back, fmt.Sprintf("-%d", seq)) {
			t.Fatalf("commit %d: backward shows %d", seq, len(back))
		}
		switch _, err := r.Snapshot(t.Context()); {
		case seq == 400 && err == nil:
			t.Fatal("a snapshot of a damaged commit was given")
		case seq < 385 && err != nil: // the place next to it stands
			t.Fatalf("commit %d is damaged, and with it the snapshot of 400: %v", seq, err)
		}
	}
}

// An index that belongs to another log (a folder put together from two) says
// nothing, however valid it is.
func TestIndexOfAnotherLog(t *testing.T) {
	dir, _ := made(t, 300)
	other := t.TempDir()
	o := mustOwn(t, other, filelog.Options{})
	add(t, o, 300)
	if err := o.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 300, Data: []byte("theirs")}); err != nil {
		t.Fatal(err)
	}
	o.Close()
	idx, err := os.ReadFile(filepath.Join(other, "journal.idx"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "journal.idx", idx)
	r := reader(t, dir)
	if _, err := r.Snapshot(t.Context()); !errors.Is(err, journal.ErrNoSnapshot) {
		t.Fatalf("a stranger's snapshot: %v", err)
	}
	if got := shown(t, r.Read(t.Context(), 299)); strings.Join(got, " ") != "299 300" {
		t.Fatalf(`got %v, want strings.Join(got, " ") = "299 300"`, got)
	}
}
