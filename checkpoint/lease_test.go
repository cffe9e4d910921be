package checkpoint

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/task"
)

// unholdable makes a store in which nothing more can be held, as on a full disk or one
// that may only be read; mend ends that.
func (l *bench) unholdable() (mend func()) {
	l.Helper()
	lock := filepath.Join(l.k.dir, "lock")
	l.must(os.Remove(lock))
	l.must(os.Mkdir(lock, 0o700))
	return func() { l.Helper(); l.must(os.Remove(lock)) }
}

// stored are all files of the store, and when they were written.
func (l *bench) stored() map[string]string {
	l.Helper()
	out := map[string]string{}
	l.must(filepath.WalkDir(l.k.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		out[path] = info.ModTime().String()
		return err
	}))
	return out
}

// What a restore would do is told also where the store may only be read, and telling it
// writes nothing at all.
func TestAPreviewNeedsNoWriting(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("f", "1\n")
	l.write("m", "1\n2\n3\n")
	list := l.past([]string{"f", "m"}, func() { l.write("f", "2\n"); l.write("m", "ONE\n2\n3\n") })
	l.write("m", "ONE\n2\nTHREE\n")
	l.unholdable()
	before := l.stored()
	other := l.open(Options{Git: "none"})
	now, err := other.Look(t.Context(), []string{"f", "m"})
	l.must(err)
	for _, rule := range []Rule{Keep, Merge, Overwrite} {
		p, err := other.Resolve(t.Context(), PlanMoment(list, Moment{Number: 1}, now, nil, rule), false)
		if err != nil {
			t.Fatalf("%s: got %v, want no error", rule, err)
		}
		want := 2
		if rule == Keep {
			want = 1
		}
		if c := countsOf(p); c.Changed != want || c.Lost != 0 {
			t.Errorf("%s: got %+v, want c.Changed = %v and c.Lost = 0", rule, c, want)
		}
	}
	if d := cmp.Diff(before, l.stored()); d != "" {
		t.Errorf("it wrote: %s", d)
	}
}

// A content that is there and cannot be held is not told to be lost.
func TestWhatCannotBeHeldIsNotLost(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("f", "1\n")
	list := l.past([]string{"f"}, func() { l.write("f", "2\n") })
	other := l.open(Options{Git: "none"})
	l.write("new", "of no other pack")
	_, err := other.Hold(t.Context(), []string{"new"}) // from here on it holds what it finds
	l.must(err)
	now, err := other.Look(t.Context(), []string{"f"})
	l.must(err)
	mend := l.unholdable()
	p, err := other.Resolve(t.Context(), PlanMoment(list, Moment{Number: 1}, now, nil, Keep), true)
	l.must(err)
	if c := countsOf(p); c.Changed != 1 || c.Lost != 0 {
		t.Errorf("got %+v, want c.Changed = 1 and c.Lost = 0", c)
	}
	// That it is to be written then fails, and says why.
	if _, err := other.Hold(t.Context(), []string{"f"}); err == nil {
		if _, err = other.Save(t.Context(), Snapshot{Task: "t", Number: 9, Files: map[string]api.FileVersion{"f": list[0].Files[0].Now}}); err == nil {
			t.Error("it was saved, with contents that nobody holds")
		}
	}
	mend()
	left, err := other.Apply(t.Context(), []task.RestoreFile{{Path: "f", From: list[1].Files[0].Now, To: list[0].Files[0].Now}})
	if got := l.tree()["f"]; err != nil || len(left) != 0 || !strings.HasSuffix(got, " 1\n") {
		t.Errorf("left %v, %v, and f is %q", left, err, got)
	}
}

// A checkpoint whose parents cannot be held is refused: saved without them, all that they
// alone hold would be nobody's, and go with the next collection.
func TestNoCheckpointLosesItsParents(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("f", "1\n")
	c1 := l.save(Snapshot{Number: 1, Files: l.hold("f")})
	other := l.open(Options{Git: "none"})
	l.write("f", "2\n")
	held, err := other.Hold(t.Context(), []string{"f"})
	l.must(err)
	mend := l.unholdable()
	for _, parent := range []string{c1, ""} { // of which the journal knows, and the ref alone
		if _, err := other.Save(t.Context(), Snapshot{Task: task1, Number: 2, Parent: parent, Files: held}); err == nil {
			t.Errorf("with parent %q it was saved", parent)
		}
	}
	mend()
	c2, err := other.Save(t.Context(), Snapshot{Task: task1, Number: 2, Files: held})
	l.must(err)
	m, err := other.store.Manifest(t.Context(), content.Hash(c2))
	if err != nil || !slices.Contains(m.Parents, content.Hash(c1)) {
		t.Errorf("its parents are %q: %v", m.Parents, err)
	}
}
