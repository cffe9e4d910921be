package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/task"
)

// tree is all that stands in the workspace: folders, files with mode and content, links.
func (l *bench) tree() map[string]string {
	l.Helper()
	out := map[string]string{}
	l.must(filepath.WalkDir(l.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == l.root {
			return err
		}
		rel, err := filepath.Rel(l.root, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch rel = filepath.ToSlash(rel); {
		case d.IsDir():
			out[rel+"/"] = "folder"
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			out[rel] = "-> " + to
			return err
		default:
			data, err := os.ReadFile(path)
			out[rel] = fmt.Sprintf("%o %s", info.Mode().Perm(), data)
			return err
		}
		return nil
	}))
	return out
}

// onlyFiles leaves out folders.
func onlyFiles(tree map[string]string) map[string]string {
	for p := range tree {
		if strings.HasSuffix(p, "/") {
			delete(tree, p)
		}
	}
	return tree
}

// looked records paths as a checkpoint of a reason that only looks.
func (l *bench) looked(paths ...string) []task.CheckpointFile {
	l.Helper()
	held, err := l.k.Hold(l.Context(), paths)
	l.must(err)
	var out []task.CheckpointFile
	for _, p := range paths {
		v, ok := held[p]
		if !ok { // behind a link
			now, err := l.k.Look(l.Context(), []string{p})
			l.must(err)
			v = now[p]
		}
		out = append(out, task.CheckpointFile{Path: p, Now: v})
	}
	return out
}

// past takes checkpoints of paths before and after each of some changes of the task.
func (l *bench) past(paths []string, changes ...func()) []task.CheckpointSaved {
	l.Helper()
	list := []task.CheckpointSaved{{Number: 1, Reason: task.ReasonBefore, Files: l.looked(paths...)}}
	for _, change := range changes {
		change()
		list = append(list, task.CheckpointSaved{Number: len(list) + 1, Reason: task.ReasonTurn, Files: l.looked(paths...)})
	}
	return list
}

// plan looks and plans.
func (l *bench) plan(list []task.CheckpointSaved, to int, rule Rule) Plan {
	l.Helper()
	now, err := l.k.Look(l.Context(), Tracked(list, nil))
	l.must(err)
	p, err := l.k.Resolve(l.Context(), PlanMoment(list, Moment{Number: to}, now, nil, rule), true)
	l.must(err)
	return p
}

// intent is what a restore commits before it begins.
func (l *bench) intent(p Plan) []task.RestoreFile {
	l.Helper()
	held := map[string]api.FileVersion{}
	for _, f := range l.looked(p.Paths()...) {
		held[f.Path] = f.Now
	}
	want := len(p.Paths())
	files := p.Files(held)
	if len(files) != want {
		l.Fatalf("got %d files of %d: %+v", len(files), want, p.Items)
	}
	return files
}

// applied is what became of an intent: how many files hold their targets, and which others stayed as they were.
type applied struct {
	Files int
	Left  []string
}

func (l *bench) apply(files []task.RestoreFile) applied {
	l.Helper()
	left, err := l.k.Apply(l.Context(), files)
	l.must(err)
	return applied{len(files) - len(left), left}
}

// wantTree compares the workspace with a picture of it.
func (l *bench) wantTree(when string, want map[string]string) {
	l.Helper()
	if d := cmp.Diff(want, l.tree()); d != "" {
		l.Errorf("%s: got %s, want d = \"\"", when, d)
	}
}

// Whatever was done to files, a restore makes the tree what it was, its other way round
// makes it what it had become, and doing either twice changes nothing.
func TestRestoresAndTheirUndoOnDisk(t *testing.T) {
	for name, c := range map[string]struct {
		before, change func(l *bench)
		paths          []string
	}{
		"an edit": {func(l *bench) { l.write("a", "old") }, func(l *bench) { l.write("a", "new") }, []string{"a"}},
		"a new file with folders": {func(l *bench) { l.write("mine/x", "m") }, func(l *bench) { l.write("new/deep/er/a", "x") },
			[]string{"new/deep/er/a"}},
		"a new file in an empty folder": {func(l *bench) { l.must(os.Mkdir(l.at("empty"), 0o777)) }, func(l *bench) { l.write("empty/sub/a", "x") },
			[]string{"empty/sub/a"}},
		"deleted with its folder": {func(l *bench) { l.write("d/e/a", "x") }, func(l *bench) { l.remove("d") }, []string{"d/e/a"}},
		"moved":                   {func(l *bench) { l.write("a", "x") }, func(l *bench) { l.must(os.Rename(l.at("a"), l.at("b"))) }, []string{"a", "b"}},
		"mode":                    {func(l *bench) { l.write("a", "x") }, func(l *bench) { l.must(os.Chmod(l.at("a"), 0o755)) }, []string{"a"}},
		"read-only":               {func(l *bench) { l.write("a", "x") }, func(l *bench) { l.write("a", "y"); l.must(os.Chmod(l.at("a"), 0o444)) }, []string{"a"}},
		"mode and content": {func(l *bench) { l.write("a", "x"); l.must(os.Chmod(l.at("a"), 0o600)) },
			func(l *bench) { l.write("a", "y"); l.must(os.Chmod(l.at("a"), 0o751)) }, []string{"a"}},
		"a link elsewhere": {func(l *bench) { l.must(os.Symlink("one", l.at("l"))) },
			func(l *bench) { l.remove("l"); l.must(os.Symlink("../../out", l.at("l"))) }, []string{"l"}},
		"a file becomes a link": {func(l *bench) { l.write("a", "x") }, func(l *bench) { l.remove("a"); l.must(os.Symlink("b", l.at("a"))) }, []string{"a"}},
		"a file becomes a folder": {func(l *bench) { l.write("a", "x") }, func(l *bench) { l.remove("a"); l.write("a/b/c", "y") },
			[]string{"a", "a/b/c"}},
		"a folder becomes a link": {func(l *bench) { l.write("d/a", "x"); l.write("e/a", "theirs") },
			func(l *bench) { l.remove("d"); l.must(os.Symlink("e", l.at("d"))) }, []string{"d", "d/a"}},
		"nothing in it":     {func(l *bench) { l.write("a", "") }, func(l *bench) { l.remove("a"); l.write("b", "") }, []string{"a", "b"}},
		"a name with bytes": {func(l *bench) { l.write("\xff\xfe odd\n", "x") }, func(l *bench) { l.remove("\xff\xfe odd\n") }, []string{Recorded("\xff\xfe odd\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && (strings.Contains(name, "link") || strings.Contains(name, "mode") || strings.Contains(name, "bytes") || strings.Contains(name, "read-only")) {
				t.Skip("not kept there")
			}
			l := newBench(t, Options{Git: "none"})
			l.write("unknown", "nobody's")
			c.before(l)
			before := l.tree()
			list := l.past(c.paths, func() { c.change(l) })
			after := l.tree()
			files := l.intent(l.plan(list, 1, Keep))
			for range 2 {
				if got := l.apply(files); got.Files != len(files) || len(got.Left) != 0 {
					t.Errorf("got %+v, want got.Files = len(files) and len(got.Left) = 0", got)
				}
				l.wantTree("restored", before)
			}
			if p := l.plan(list, 1, Keep); len(p.Items) != 0 {
				t.Errorf("a second plan: %+v", p.Items)
			}
			for range 2 {
				if got := l.apply(task.Swapped(files)); got.Files != len(files) || len(got.Left) != 0 {
					t.Errorf("undone: %+v", got)
				}
				l.wantTree("undone", after)
			}
		})
	}
}

// The same of random changes over a few paths that collide in all ways, to a random
// moment. Each round syncs dozens of times, so there are few.
func TestRestoreIsItsUndosInverse(t *testing.T) {
	paths := []string{"a", "a/b", "a/b/c", "d/e", "d/f", "g"}
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, uint64(time.Now().YearDay())))
		l := newBench(t, Options{Git: "none"})
		step := func() {
			p := paths[r.IntN(len(paths))]
			switch r.IntN(5) {
			case 0, 1:
				_ = os.RemoveAll(l.at(p)) // a file may stand above it
			case 2, 3:
				for dir := filepath.Dir(l.at(p)); len(dir) > len(l.root); dir = filepath.Dir(dir) {
					if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
						l.must(os.Remove(dir))
					}
				}
				_ = os.RemoveAll(l.at(p))
				l.write(p, []string{"", "x", "y\n"}[r.IntN(3)])
			default:
				if info, err := os.Lstat(l.at(p)); err == nil && info.Mode().IsRegular() && runtime.GOOS != "windows" {
					l.must(os.Chmod(l.at(p), []fs.FileMode{0o600, 0o755, 0o444}[r.IntN(3)]))
				}
			}
		}
		step()
		step()
		was := []map[string]string{onlyFiles(l.tree())}
		var changes []func()
		for range 1 + r.IntN(4) {
			changes = append(changes, func() { step(); step(); was = append(was, onlyFiles(l.tree())) })
		}
		list := l.past(paths, changes...)
		to := 1 + r.IntN(len(list))
		intent := l.intent(l.plan(list, to, Keep))
		l.apply(intent)
		if d := cmp.Diff(was[to-1], onlyFiles(l.tree())); d != "" {
			t.Fatalf("seed %d, to c%d: %s", seed, to, d)
		}
		l.apply(task.Swapped(intent))
		if d := cmp.Diff(was[len(was)-1], onlyFiles(l.tree())); d != "" {
			t.Fatalf("seed %d, undone: %s", seed, d)
		}
	}
}

// What others do while a restore is under way is left alone, and said.
func TestWhatOthersChangeMeanwhileIsLeft(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	for _, p := range []string{"same", "edited", "deleted", "made", "mode", "folder"} {
		if p != "made" && p != "folder" {
			l.write(p, "old")
		}
	}
	l.write("folder", "old")
	list := l.past([]string{"same", "edited", "deleted", "made", "mode", "folder"}, func() {
		for _, p := range []string{"same", "edited", "deleted", "mode"} {
			l.write(p, "new")
		}
		l.remove("folder")
		l.write("made", "new")
	})
	files := l.intent(l.plan(list, 1, Keep))
	l.write("edited", "by others")
	l.remove("deleted")
	l.write("made", "by others")
	l.must(os.Chmod(l.at("mode"), 0o600))
	l.write("folder/of others", "x")
	got := l.apply(files)
	want := []string{"deleted", "edited", "folder", "made", "mode"}
	if runtime.GOOS == "windows" {
		want = slices.DeleteFunc(want, func(p string) bool { return p == "mode" })
	}
	if d := cmp.Diff(want, got.Left); d != "" || got.Files != 6-len(want) {
		t.Errorf("got %+v %s, want d = \"\" and got.Files = 6-len(want)", got, d)
	}
	tree := l.tree()
	for p, want := range map[string]string{"same": "644 old", "edited": "644 by others", "made": "644 by others", "folder/of others": "644 x"} {
		if runtime.GOOS != "windows" && tree[p] != want {
			t.Errorf("%s is %q", p, tree[p])
		}
	}
}

// A folder that became a link must not lead a restore out of the workspace, whenever it
// was put there.
func TestARestoreIsNotLedThroughALink(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	out := t.TempDir()
	l.must(os.WriteFile(filepath.Join(out, "a"), []byte("new"), 0o644))
	l.write("d/a", "old")
	l.write("d/b", "old")
	list := l.past([]string{"d/a", "d/b"}, func() { l.write("d/a", "new"); l.remove("d/b") })
	files := l.intent(l.plan(list, 1, Keep))
	l.remove("d")
	if err := os.Symlink(out, l.at("d")); err != nil {
		t.Skip(err)
	}
	got := l.apply(files)
	if d := cmp.Diff([]string{"d/a", "d/b"}, got.Left); d != "" {
		t.Error(d)
	}
	if data, err := os.ReadFile(filepath.Join(out, "a")); err != nil || string(data) != "new" {
		t.Errorf("got %q %v, want no error and string(data) = \"new\"", data, err)
	}
	if _, err := os.Lstat(filepath.Join(out, "b")); err == nil {
		t.Error("a file was made outside of the workspace")
	}
	for _, rule := range []Rule{Keep, Merge, Overwrite} {
		if p := l.plan(list, 1, rule); len(p.Paths()) != 0 {
			t.Errorf("%s would write to %v", rule, p.Paths())
		}
	}
	// A hostile log may name any path.
	for _, p := range []string{".git/hooks/pre-commit", "../escaped", filepath.ToSlash(filepath.Join(out, "abs")), "x/../../y", "a\x00b", ".GIT/config", ""} {
		got := l.apply([]task.RestoreFile{{Path: p, From: ver(""), To: files[0].To}})
		if len(got.Left) != 1 {
			t.Errorf("%q: got %+v, want len(got.Left) = 1", p, got)
		}
	}
}

// lose takes the bundle of a content out of the store until back is called.
func (l *bench) lose(hash string) (back func()) {
	l.Helper()
	bundles, err := filepath.Glob(filepath.Join(l.k.dir, "bundles", "*.bundle"))
	l.must(err)
	for _, name := range bundles {
		l.must(os.Rename(name, name+"-lost"))
		s, err := content.Open(l.k.dir)
		l.must(err)
		if !s.Contains(l.Context(), content.Hash(hash)) {
			return func() { l.must(os.Rename(name+"-lost", name)) }
		}
		l.must(os.Rename(name+"-lost", name))
	}
	l.Fatalf("%s is in no bundle", hash)
	return nil
}

// A content that is not there is found before anything is touched.
func TestNothingIsTouchedWithoutTheContents(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "old")
	l.write("b", "old b")
	list := l.past([]string{"a", "b"}, func() { l.write("a", "new"); l.write("b", "new b") })
	files := l.intent(l.plan(list, 1, Keep))
	after := l.tree()
	for name, spoil := range map[string]func(*task.RestoreFile){
		"not kept":             func(f *task.RestoreFile) { f.To.Blob = "" },
		"not in the store":     func(f *task.RestoreFile) { f.To.Hash = strings.Repeat("ab", 32) },
		"what would be lost":   func(f *task.RestoreFile) { f.From.Blob = "" },
		"what would be lost 2": func(*task.RestoreFile) {},
	} {
		bad := slices.Clone(files)
		back := func() {}
		if spoil(&bad[1]); name == "what would be lost 2" {
			back = l.lose(bad[1].From.Hash)
		}
		if _, err := l.k.Apply(l.Context(), bad); !errors.Is(err, ErrUnkept) || name != "what would be lost 2" && !strings.Contains(err.Error(), "b:") {
			t.Errorf(`%s: got %v, want errors.Is(err, ErrUnkept) and (name = "what would be lost 2" or strings.Contains(err.Error(), "b:"))`,
				name, err)
		}
		back()
		l.wantTree(name, after)
	}
}

// After an error in the middle, the reversed intent gives back what was done before it.
func TestAFailedRestoreIsTakenBack(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "old a")
	l.write("z", "old z")
	list := l.past([]string{"a", "new/b", "z"}, func() { l.write("a", "new a"); l.write("new/b", "b"); l.write("z", "new z") })
	files := l.intent(l.plan(list, 1, Keep))
	after := l.tree()
	i := slices.IndexFunc(files, func(f task.RestoreFile) bool { return f.Path == "z" })
	files[i].To.Hash = strings.Repeat("0", 64) // the store holds something else
	if _, err := l.k.Apply(l.Context(), files); err == nil {
		t.Fatal("got no error, want one")
	}
	l.apply(task.Swapped(files))
	l.wantTree("taken back", after)
	// What a try before it did is not its own: who takes all of it back does so by the
	// other way round, also where contents of what was never done are missing.
	l.apply(files[:i])
	half := l.tree()
	if _, err := l.k.Apply(l.Context(), files); err == nil {
		t.Fatal("got no error, want one")
	}
	l.wantTree("a second try", half)
	files[i].To.Blob = ""
	if _, err := l.k.Apply(l.Context(), files); !errors.Is(err, ErrUnkept) {
		t.Fatalf("got %v, want errors.Is(err, ErrUnkept)", err)
	}
	l.apply(task.Swapped(files))
	l.wantTree("the other way round", after)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.k.Apply(gone, files[:i]); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	l.wantTree("given up", after)
}

func TestMergingRestores(t *testing.T) {
	text := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	base := text("1", "2", "3", "4", "5", "6", "7")
	for name, c := range map[string]struct {
		task   []string // what the task wrote, step by step
		others string   // what stands there now
		want   string   // "" = kept as it is
	}{
		"theirs stays, ours goes":  {[]string{text("1", "TWO", "3", "4", "5", "6", "7")}, text("1", "TWO", "3", "4", "5", "SIX", "7"), text("1", "2", "3", "4", "5", "SIX", "7")},
		"two steps of ours":        {[]string{text("1", "TWO", "3", "4", "5", "6", "7"), text("1", "TWO", "3", "FOUR", "5", "6", "7")}, text("0", "1", "TWO", "3", "FOUR", "5", "6", "7"), text("0", base[:len(base)-1])},
		"the same lines":           {[]string{text("1", "TWO", "3", "4", "5", "6", "7")}, text("1", "ZWEI", "3", "4", "5", "6", "7"), ""},
		"ours is gone already":     {[]string{text("1", "TWO", "3", "4", "5", "6", "7")}, base, base},
		"a file we made, theirs":   {[]string{"", "made\n"}, "made\nmore\n", ""},
		"no text":                  {[]string{"a\x00b"}, "a\x00c", ""},
		"we emptied it, they left": {[]string{"x\n"}, "x\n", base},
	} {
		t.Run(name, func(t *testing.T) {
			l := newBench(t, Options{Git: "none"})
			if c.task[0] != "" {
				l.write("f", base)
			}
			var changes []func()
			for _, s := range c.task {
				if s != "" {
					changes = append(changes, func() { l.write("f", s) })
				}
			}
			list := l.past([]string{"f"}, changes...)
			l.write("f", c.others)
			p := l.plan(list, 1, Merge)
			want := c.want
			if want == "" {
				want = c.others
				if countsOf(p).Kept != 1 || p.Items[0].Why == "" {
					t.Errorf("got %+v, want countsOf(p).Kept = 1 and p.Items[0].Why != \"\"", p.Items)
				}
			}
			l.apply(l.intent(p))
			if data, err := os.ReadFile(l.at("f")); err != nil || string(data) != want {
				t.Errorf("got %q %v, want no error and string(data) = %v", data, err, want)
			}
		})
	}
}

// A preview of merges writes nothing into the store.
func TestAPreviewKeepsNothing(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("f", "1\n2\n3\n")
	list := l.past([]string{"f"}, func() { l.write("f", "ONE\n2\n3\n") })
	l.write("f", "ONE\n2\nTHREE\n")
	now, err := l.k.Look(t.Context(), []string{"f"})
	l.must(err)
	size, err := l.k.Size(t.Context())
	l.must(err)
	p, err := l.k.Resolve(t.Context(), PlanMoment(list, Moment{Number: 1}, now, nil, Merge), false)
	l.must(err)
	if c := countsOf(p); c.Changed != 1 || c.Bytes != int64(len("1\n2\nTHREE\n")) || c.Conflicts != 1 {
		t.Errorf("got %+v, want c.Changed = 1 and c.Bytes = int64(len(\"1\\n2\\nTHREE\\n\")) and c.Conflicts = 1", c)
	}
	if after, err := l.k.Size(t.Context()); err != nil || after != size {
		t.Errorf("the store took %d bytes: %v", after-size, err)
	}
	p, err = l.k.Resolve(t.Context(), PlanMoment(list, Moment{Number: 1}, now, nil, Merge), true)
	l.must(err)
	if got := l.content(p.Items[0].Target); got != "1\n2\nTHREE\n" {
		t.Errorf("got %q, want got = \"1\\n2\\nTHREE\\n\"", got)
	}
}
