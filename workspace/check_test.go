//go:build unix

package workspace

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// A look at a file is judged by the content, whatever its stat says; a stat that is the
// same is believed only if it had settled.
func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(t *testing.T, name string)
		want FileStatus
		was  func(*FileState)
	}{
		"nothing":            {func(*testing.T, string) {}, Unchanged, nil},
		"one byte":           {func(t *testing.T, n string) { fixture.WriteFile(t, n, "Xext") }, Changed, nil},
		"the same again":     {func(t *testing.T, n string) { fixture.WriteFile(t, n, "text") }, Unchanged, nil},
		"touched":            {func(t *testing.T, n string) { os.Chtimes(n, time.Time{}, time.Now()) }, Unchanged, nil},
		"another mode":       {func(t *testing.T, n string) { os.Chmod(n, 0o600) }, Unchanged, nil},
		"removed":            {func(t *testing.T, n string) { os.Remove(n) }, Missing, nil},
		"a folder":           {func(t *testing.T, n string) { os.Remove(n); os.Mkdir(n, 0o755) }, Changed, nil},
		"emptied":            {func(t *testing.T, n string) { fixture.WriteFile(t, n, "") }, Changed, nil},
		"made, was not":      {func(*testing.T, string) {}, Changed, func(s *FileState) { *s = FileState{} }},
		"still not there":    {func(t *testing.T, n string) { os.Remove(n) }, Unchanged, func(s *FileState) { *s = FileState{} }},
		"a folder, was none": {func(t *testing.T, n string) { os.Remove(n); os.Mkdir(n, 0o755) }, Unchanged, func(s *FileState) { *s = FileState{} }},
		"size only":          {func(t *testing.T, n string) { fixture.WriteFile(t, n, "TEXT") }, Unchanged, func(s *FileState) { s.Hash = "" }},
		"size only, other":   {func(t *testing.T, n string) { fixture.WriteFile(t, n, "more text") }, Changed, func(s *FileState) { s.Hash = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			w, root := plant(t, "f", "text")
			p := resolve(t, w, "f")
			was, err := w.StatPath(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if tt.was != nil {
				tt.was(&was)
			}
			tt.do(t, filepath.Join(root, "f"))
			for _, look := range []CheckOptions{{Recorded: was, RecordedAt: time.Now().UnixMilli()}, {Recorded: was, RecordedAt: time.Now().UnixMilli(), MaxData: 1 << 10, NeedData: true}} {
				s, err := w.CheckFile(t.Context(), p, look)
				if err != nil || s.Status != tt.want {
					t.Errorf("%+v: %+v, %v; want %s", look, s, err, tt.want)
				}
				if now, _ := os.ReadFile(filepath.Join(root, "f")); look.NeedData && s.State.Hash != "" && s.State.Hash != HashOf(now) {
					t.Errorf("%+v is not what the file holds", s)
				}
			}
		})
	}
}

// A file recorded in the moment of its last change may change once more without a trace
// in its times: it is read again until its times have settled.
func TestAStatIsBelievedWhenItHasSettled(t *testing.T) {
	w, root := plant(t, "f", "text")
	name := filepath.Join(root, "f")
	p := resolve(t, w, "f")
	was, err := w.StatPath(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	lie := was
	lie.Hash = HashOf([]byte("what it held a moment ago"))
	at := max(was.MTime, was.CTime) / 1e6
	for ms, want := range map[int64]FileStatus{0: Changed, statSettleMS - 1: Changed, statSettleMS + 1: Unchanged, -5000: Changed} {
		if s, err := w.CheckFile(t.Context(), p, CheckOptions{Recorded: lie, RecordedAt: at + ms}); err != nil || s.Status != want {
			t.Errorf("recorded %d ms after the change: %+v, %v; want %s", ms, s, err, want)
		}
	}
	if s, err := w.CheckFile(t.Context(), p, CheckOptions{Recorded: lie, RecordedAt: at + statSettleMS + 1, MaxData: 10, NeedData: true}); err != nil || s.Status != Changed || string(s.Data) != "text" {
		t.Errorf("read whole: %+v, %v", s, err)
	}
	fixture.WriteFile(t, name, "longer than the limit")
	if s, err := w.CheckFile(t.Context(), p, CheckOptions{Recorded: was, RecordedAt: at, MaxRead: 5}); err != nil || s.Status != Changed || s.State.Hash != "" {
		t.Errorf("over the limit: %+v, %v", s, err)
	}
	fixture.WriteFile(t, name, "TEXT")
	if s, err := w.CheckFile(t.Context(), p, CheckOptions{Recorded: was, RecordedAt: at, MaxRead: 2}); err != nil || s.Status != Unchanged {
		t.Errorf("over the limit, as long: %+v, %v", s, err)
	}
}

// Whatever is done to a file, it is fresh exactly when it holds the same bytes.
func TestJudgeAgreesWithTheContent(t *testing.T) {
	w, root := plant(t, "f", "")
	name := filepath.Join(root, "f")
	p := resolve(t, w, "f")
	content := rapid.SampledFrom([]string{"", "a", "b", "ab", "ba", "a longer one"})
	rapid.Check(t, func(r *rapid.T) {
		before := content.Draw(r, "before")
		_ = os.RemoveAll(name)
		fixture.WriteFile(t, name, before)
		was, err := w.StatPath(t.Context(), p)
		if err != nil {
			r.Fatal(err)
		}
		at, want := time.Now().UnixMilli(), Unchanged
		for _, step := range rapid.SliceOfN(rapid.SampledFrom([]string{"write", "swap", "remove", "chmod", "age"}), 0, 5).Draw(r, "steps") {
			text := content.Draw(r, "text")
			switch step {
			case "write":
				fixture.WriteFile(t, name, text)
			case "swap":
				fixture.WriteFile(t, name+".new", text)
				_ = os.Rename(name+".new", name)
			case "remove":
				_ = os.Remove(name)
			case "chmod":
				_ = os.Chmod(name, 0o640)
			case "age":
				old := time.UnixMilli(at - 10_000)
				_ = os.Chtimes(name, old, old)
			}
		}
		switch now, err := os.ReadFile(name); {
		case err != nil:
			want = Missing
		case string(now) != before:
			want = Changed
		}
		s, err := w.CheckFile(t.Context(), p, CheckOptions{Recorded: was, RecordedAt: at, MaxData: rapid.SampledFrom([]int64{0, 3, 100}).Draw(r, "keep"), NeedData: rapid.Bool().Draw(r, "whole")})
		if err != nil || s.Status != want {
			r.Fatalf("%+v, %v; want %s", s, err, want)
		}
	})
}

// Of a file with a date only, the time of its last change decides; dates may be anything.
func TestDated(t *testing.T) {
	w, root := plant(t, "f", "x", "d/f", "x")
	written := time.UnixMilli(1_700_000_000_000)
	if err := os.Chtimes(filepath.Join(root, "f"), written, written); err != nil {
		t.Fatal(err)
	}
	for date, want := range map[int64]FileStatus{
		1_700_000_000_000: Unchanged, 1_700_000_000_000 - statSettleMS: Unchanged, 1_700_000_000_000 - statSettleMS - 1: Changed,
		0: Changed, math.MaxInt64: Unchanged, math.MinInt64: Changed, 9_999_999_999_999: Unchanged,
	} {
		if got, _ := w.CheckDate(resolve(t, w, "f"), date); got != want {
			t.Errorf("known on %d: %s, want %s", date, got, want)
		}
	}
	for path, want := range map[string]FileStatus{"none": Missing, "d": Changed} {
		if got, s := w.CheckDate(resolve(t, w, path), math.MaxInt64); got != want || s.Path != "" {
			t.Errorf("%s: %s %+v, want %s", path, got, s, want)
		}
	}
}

// A file that goes, or becomes something else, between two looks is judged like one that
// was so at the first: missing if there was one, no change if there was none.
func TestJudgeWhileAFileGoes(t *testing.T) {
	for name, tt := range map[string]struct {
		do            func(t *testing.T, name string)
		existed, none FileStatus
	}{
		"it goes":         {func(t *testing.T, n string) { os.Remove(n) }, Missing, Unchanged},
		"its folder goes": {func(t *testing.T, n string) { os.RemoveAll(filepath.Dir(n)) }, Missing, Unchanged},
		"a file above": {func(t *testing.T, n string) {
			os.RemoveAll(filepath.Dir(n))
			fixture.WriteFile(t, filepath.Dir(n), "x")
		}, Missing, Unchanged},
		"a folder":          {func(t *testing.T, n string) { os.Remove(n); os.Mkdir(n, 0o755) }, Changed, Unchanged},
		"it grows":          {func(t *testing.T, n string) { fixture.WriteFile(t, n, "longer than what is kept") }, Changed, Changed},
		"the same is there": {func(t *testing.T, n string) { os.Remove(n); fixture.WriteFile(t, n, "text") }, Unchanged, Changed},
	} {
		for _, keep := range []int64{0, 10} {
			for _, existed := range []bool{true, false} {
				w, root := plant(t, "d/f", "text")
				p := resolve(t, w, "d/f")
				look, want := CheckOptions{MaxData: keep, NeedData: true, RecordedAt: time.Now().UnixMilli()}, tt.none
				if existed {
					var err error
					if look.Recorded, err = w.StatPath(t.Context(), p); err != nil {
						t.Fatal(err)
					}
					want = tt.existed
				}
				afterStat = func(string) { tt.do(t, filepath.Join(root, "d/f")) }
				s, err := w.CheckFile(t.Context(), p, look)
				afterStat = nil
				if err != nil || s.Status != want {
					t.Errorf("%s (kept up to %d, recorded: %v): %+v, %v; want %s", name, keep, existed, s, err, want)
				}
				if s.Status == Missing && s.State != (FileState{Path: "d/f"}) {
					t.Errorf("%s: got %+v, want s.Status != Missing or s.State = (FileState{Path: \"d/f\"})", name, s.State)
				}
			}
		}
	}
}
