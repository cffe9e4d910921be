package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// differences compares two states, and what each line says of them.
func (l *bench) differences(list []task.CheckpointSaved, from, to int, o DiffOptions) []api.FileDiff {
	l.Helper()
	got, err := l.k.Diff(l.Context(), StateAt(list, from), StateAt(list, to), o)
	l.must(err)
	return got
}

func TestDiffOfTwoCheckpoints(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and modes are not kept there")
	}
	l := newBench(t, Options{Git: "none"})
	l.write("edited", "1\n2\n3\n4\n5\n6\n7\n8\n")
	l.write("deleted", "x\ny\n")
	l.write("mode", "x\n")
	l.write("finer", "x\n")
	l.write("binary", "a\x00b")
	l.write("same", "x\n")
	l.write("typed", "t\n")
	l.write("odd \"name\"", "x")
	paths := []string{"edited", "deleted", "made", "mode", "finer", "binary", "same", "typed", "odd \"name\""}
	list := l.past(paths, func() {
		l.write("edited", "1\n2\n3\nfour\n5\n6\n7\n8\nnine")
		l.remove("deleted")
		l.write("made", "new\n")
		l.must(os.Chmod(l.at("mode"), 0o755))
		l.must(os.Chmod(l.at("finer"), 0o600))
		l.write("binary", "a\x00c")
		l.remove("typed")
		l.must(os.Symlink("same", l.at("typed")))
		l.write("odd \"name\"", "y")
	})
	got := map[string]string{}
	patches := map[string]string{}
	for _, d := range l.differences(list, 1, 2, DiffOptions{}) {
		got[d.Path] = fmt.Sprintf("%s +%d -%d %s", d.Change, d.Added, d.Removed, d.Why)
		patches[d.Path] = d.Patch
	}
	if d := cmp.Diff(map[string]string{
		"edited": "changed +2 -1 ", "deleted": "deleted +0 -2 ", "made": "added +1 -0 ", "mode": "mode +0 -0 ", "finer": "mode +0 -0 ",
		"binary": "changed +0 -0 binary", "typed": "changed +1 -1 ", "odd \"name\"": "changed +1 -1 ",
	}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(`diff --git a/edited b/edited
--- a/edited
+++ b/edited
@@ -1,8 +1,9 @@
 1
 2
 3
-4
+four
 5
 6
 7
 8
+nine
\ No newline at end of file
`, patches["edited"]); d != "" {
		t.Error(d)
	}
	for path, want := range map[string]string{
		"binary":       "Binary files a/binary and b/binary differ\n",
		"mode":         "old mode 100644\nnew mode 100755\n",
		"finer":        "permissions of finer: 644 before, 600 after\n",
		"deleted":      "+++ /dev/null\n@@ -1,2 +0,0 @@\n",
		"made":         "--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+new\n",
		"typed":        "new file mode 120000\n",
		"odd \"name\"": "--- \"a/odd \\\"name\\\"\"\t\n",
	} {
		if !strings.Contains(patches[path], want) {
			t.Errorf("%s: got %s, want strings.Contains(patches[path], want)", path, patches[path])
		}
	}
}

func TestDiffIsBounded(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("d/large", strings.Repeat("line\n", 100))
	l.write("d/one", "1\n")
	l.write("two", "2\n")
	list := l.past([]string{"d/large", "d/one", "two"}, func() { l.write("d/large", "x"); l.write("d/one", "one\n"); l.write("two", "two\n") })
	say := func(o DiffOptions) (out []string) {
		for _, d := range l.differences(list, 1, 2, o) {
			out = append(out, fmt.Sprintf("%s %t %s", d.Path, d.Patch != "", d.Why))
		}
		return out
	}
	for name, c := range map[string]struct {
		o    DiffOptions
		want []string
	}{
		"one file is too large":   {DiffOptions{MaxFile: 100}, []string{"d/large true too large (500 bytes)", "d/one true ", "two true "}},
		"all are, from one on":    {DiffOptions{MaxPatch: 100}, []string{"d/large false the patches are too large together", "d/one false the patches are too large together", "two false the patches are too large together"}},
		"only counts":             {DiffOptions{Stat: true}, []string{"d/large false ", "d/one false ", "two false "}},
		"what lies in one folder": {DiffOptions{Paths: []string{"d"}, Stat: true}, []string{"d/large false ", "d/one false "}},
	} {
		if d := cmp.Diff(c.want, say(c.o)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
	unkept := StateAt(list, 2)
	v := unkept["two"]
	v.Blob = ""
	unkept["two"] = v
	got, err := l.k.Diff(t.Context(), StateAt(list, 1), unkept, DiffOptions{Paths: []string{"two"}})
	if err != nil || len(got) != 1 || got[0].Why != "its content was not kept" {
		t.Errorf("got %+v %v, want no error and len(got) = 1 and got[0].Why = \"its content was not kept\"",
			got, err)
	}
}

// What stands in the workspace now is read there, and only if it is what was looked at.
func TestDiffWithWhatIsThereNow(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "1\n")
	l.write("b", "1\n")
	list := l.past([]string{"a", "b"}, func() {})
	l.write("a", "2\n")
	l.write("b", "2\n")
	now, err := l.k.Look(t.Context(), []string{"a", "b"})
	l.must(err)
	l.write("b", "3\n")
	got, err := l.k.Diff(t.Context(), StateAt(list, 2), now, DiffOptions{Now: true})
	l.must(err)
	if len(got) != 2 || !strings.Contains(got[0].Patch, "-1\n+2\n") || got[0].Why != "" || got[1].Why == "" {
		t.Errorf(`got %+v, want len(got) = 2 and strings.Contains(got[0].Patch, "-1\n+2\n") and got[0].Why = "" and got[1].Why != ""`,
			got)
	}
}

// Patches are what git reads: applied to the older state they give the newer one.
func TestGitAppliesThePatches(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no git")
	}
	texts := rapid.SampledFrom([]string{"", "a", "a\n", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", "a\nB\nc\nd\ne\nf\ng\nh\ni\nj", "x\na\nb\nc\nd\ne\nf\ng\nh\nI\nj\n", "\n\n\n", "é\r\nb\r\n"})
	paths := []string{"plain", "a dir/with blank", "quo\"te\\d", "ümlaut", "tab\there"}
	for i := range 15 {
		l := newBench(t, Options{Git: "none"})
		change := func(seed int) {
			for j, p := range paths {
				switch text := texts.Example(seed*100 + j); {
				case (seed+j)%5 == 0:
					l.remove(p)
				case (seed+j)%7 == 0:
					l.remove(p)
					l.must(os.MkdirAll(filepath.Dir(l.at(p)), 0o777))
					l.must(os.Symlink("to "+p, l.at(p)))
				default:
					l.remove(p)
					l.write(p, text)
					if (seed+j)%3 == 0 {
						l.must(os.Chmod(l.at(p), 0o755))
					}
				}
			}
		}
		change(i)
		list := l.past(paths, func() { change(i + 1) })
		after := onlyFiles(l.tree())
		var patch strings.Builder
		for _, d := range l.differences(list, 1, 2, DiffOptions{}) {
			patch.WriteString(d.Patch)
		}
		l.apply(l.intent(l.plan(list, 1, Keep)))
		cmd := exec.Command(git, "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = l.root, strings.NewReader(patch.String())
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(l.root), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%d: got %v: %s\n%s, want no error", i, err, out, patch.String())
		}
		if d := cmp.Diff(after, onlyFiles(l.tree())); d != "" {
			t.Fatalf("%d: got %s\n%s, want d = \"\"", i, d, patch.String())
		}
	}
}
