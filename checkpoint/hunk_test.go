package checkpoint

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// Taking back all hunks of a difference, the last one first, gives the older text, to the byte.
func TestHunksGiveTheOlderText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) []byte {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "@@ -1 +1 @@", "", "d\re", "é"}), 0, 40).Draw(t, name)
			out := strings.Join(lines, "\n")
			if rapid.Bool().Draw(t, name+" ends") && out != "" {
				out += "\n"
			}
			return []byte(out)
		}
		old, made := text("old"), text("made")
		x, y := splitLines(old), splitLines(made)
		p, err := patch("a/f", "b/f", x, y, diffLines(x, y))
		if err != nil {
			t.Fatal(err)
		}
		d := api.FileDiff{Path: "f", From: api.FileVersion{Kind: api.KindFile}, To: api.FileVersion{Kind: api.KindFile}}
		got := made
		for _, h := range slices.Backward(hunksOf(d, p)) {
			got = without(old, got, h)
		}
		if d := cmp.Diff(string(old), string(got)); d != "" {
			t.Fatalf("%s\n%s", d, p)
		}
	})
}

// Each hunk is the work of the steps that made its lines; a line that a later step made again counts for that one.
func TestAttribute(t *testing.T) {
	t.Parallel()
	l := newBench(t, Options{Git: "none"})
	numbered := func(other map[int]string) string {
		var out strings.Builder
		for i := range 40 {
			if word, is := other[i]; is {
				out.WriteString(word)
			} else {
				out.WriteString(strings.Repeat("x", i+1) + "\n")
			}
		}
		return out.String()
	}
	var list []task.CheckpointSaved
	for i, text := range []string{
		numbered(nil),
		numbered(map[int]string{2: "one\n"}),
		numbered(map[int]string{2: "one\n", 20: "two\n"}),
		numbered(map[int]string{2: "one\nthree\n", 20: "two\n", 35: ""}),
	} {
		l.write("f", text)
		held, err := l.k.Hold(l.Context(), []string{"f"})
		l.must(err)
		reason := task.ReasonTurn
		if i == 0 {
			reason = task.ReasonBefore
		}
		list = append(list, task.CheckpointSaved{Number: i + 1, Reason: reason, Files: []task.CheckpointFile{{Path: "f", Now: held["f"]}}})
	}
	steps := StepsOf(Transitions(list)["f"], 1, 4, list[3].Files[0].Now)
	if len(steps) != 3 {
		t.Fatalf("got %d steps, want 3", len(steps))
	}
	d := l.differences(list, 1, 4, DiffOptions{})[0]
	if got := cmp.Diff([][]int{{0, 2}, {1}, {2}}, l.k.Attribute(l.Context(), d, steps, false)); got != "" {
		t.Errorf("%s\n%s", got, d.Patch)
	}
	lost := steps
	lost[1].To.Blob = ""
	if got := cmp.Diff([][]int{nil, nil, nil}, l.k.Attribute(l.Context(), d, lost, false)); got != "" {
		t.Errorf("a content that was not kept: %s", got)
	}
}

// The hash of a hunk changes with each version of the file, and the one of another file differs.
func TestHashesOfHunks(t *testing.T) {
	t.Parallel()
	one := api.FileDiff{Path: "a", From: api.FileVersion{Kind: api.KindFile, Hash: "1"}, To: api.FileVersion{Kind: api.KindFile, Hash: "2"}}
	seen := map[string]bool{}
	for _, change := range []func(d *api.FileDiff){
		func(*api.FileDiff) {}, func(d *api.FileDiff) { d.Path = "b" }, func(d *api.FileDiff) { d.From.Hash = "3" },
		func(d *api.FileDiff) { d.To.Hash = "3" }, func(d *api.FileDiff) { d.To.Mode = 0o755 },
	} {
		d := one
		change(&d)
		for _, h := range append(hunksOf(d, "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n@@ -9 +9 @@\n-x\n+y\n"), api.Hunk{Hash: hashShown(d, "")}) {
			if seen[h.Hash] {
				t.Errorf("got the hash %s twice", h.Hash)
			}
			seen[h.Hash] = true
		}
	}
	if len(seen) != 15 {
		t.Errorf("got %d hashes, want 15", len(seen))
	}
}
