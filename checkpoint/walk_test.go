package checkpoint

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func (l *bench) paths(s *Survey) (out []string) {
	for _, e := range s.base.list {
		out = append(out, e.path)
	}
	return out
}

func TestWhatASurveyLooksAt(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	for _, p := range []string{
		"a", "a.b", "a-b/x", "a/../b/x", "../.gitignore", "node_modules/big/x", "sub/node_modules/x", "sub/keep/x", "sub/.gitignore",
		"secret.key", "sub/secret.key", ".git/config", "nested/.git/HEAD", "nested/x", "linked/.git", "linked/x", ".f.roost-0123456789ab.tmp", ".f.roost-xyz.tmp", "excluded",
	} {
		l.write(p, "")
	}
	l.write(".gitignore", "node_modules\n*.key\nsub/keep\n")
	l.write("sub/.gitignore", "!secret.key\n") // hidden folders are not shown again, files are
	l.write(".git/info/exclude", "excluded\n")
	l.must(os.Symlink("/", l.at("root")))
	l.must(os.Symlink(".", l.at("self")))
	want := []string{
		".f.roost-xyz.tmp", ".gitignore", "a", "a-b/x", "a.b", "b/x", "linked/x", "nested/x", "root", "self", "sub/.gitignore", "sub/secret.key",
	}
	if d := cmp.Diff(want, l.paths(l.survey())); d != "" {
		t.Error(d)
	}
}

// A workspace in a repository is hidden from by the rules above it, too.
func TestRulesAboveTheWorkspace(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	outer := filepath.Dir(l.root)
	l.must(os.Mkdir(filepath.Join(outer, ".git"), 0o777))
	l.write("../.gitignore", "*.log\n/ws/dist\n/dist2\n")
	for _, p := range []string{"a.log", "dist/x", "dist2/x", "src/dist/x", "b"} {
		l.write(p, "")
	}
	if d := cmp.Diff([]string{"b", "dist2/x", "src/dist/x"}, l.paths(l.survey())); d != "" {
		t.Error(d)
	}
	// A command that changes those rules makes nothing come or go.
	got := l.during(func() { l.write("../.gitignore", "b\n") })
	if len(got) != 0 {
		t.Errorf("changes: %v", got)
	}
}

func TestFoldersThatAreMissing(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("there/x", "1")
	l.must(os.MkdirAll(l.at("empty/folder"), 0o777))
	got := l.during(func() {
		l.write("new/deep/file", "2")
		l.write("empty/folder/file", "2")
		l.write("empty/more/file", "2")
		l.remove("there")
	})
	dirs := map[string]int{}
	for p, f := range got {
		dirs[p] = f.Was.Dirs + 10*f.Now.Dirs
	}
	want := map[string]int{"new/deep/file": 2, "empty/folder/file": 0, "empty/more/file": 1, "there/x": 10}
	if d := cmp.Diff(want, dirs); d != "" {
		t.Error(d)
	}
	// Looking says the same as the survey.
	for p, v := range l.look("there/x", "new/deep/other", "nowhere/at/all") {
		if want := map[string]int{"there/x": 1, "new/deep/other": 0, "nowhere/at/all": 2}[p]; v.Dirs != want {
			t.Errorf("%s: %d folders are missing, want %d", p, v.Dirs, want)
		}
	}
}

// Whatever rules are, and however they change with a command: nothing is told that is not
// so, and nothing that was seen before goes unseen.
func TestRulesNeverMakeFilesComeOrGo(t *testing.T) {
	few(t, 40)
	rapid.Check(t, func(rt *rapid.T) {
		l := newBench(t, Options{Git: "none"})
		files := []string{"a", "b.o", "d/a", "d/b.o", "d/e/a", "d/e/b.o", "out/a", "out/x/b.o"}
		rules := rapid.SliceOfN(rapid.SampledFrom([]string{"*.o", "!b.o", "/a", "d/", "out", "/out/*", "!/out/x", "e", "**/a", "!d"}), 0, 3)
		ignore := func(label string) {
			for _, dir := range []string{"", "d/", "out/"} {
				if rapid.Bool().Draw(rt, label+dir) {
					l.write(dir+".gitignore", strings.Join(rules.Draw(rt, "rules"), "\n"))
				}
			}
		}
		for _, f := range files {
			l.write(f, "before")
		}
		ignore("before ")
		s := l.survey()
		visible := l.paths(s)
		ignore("after ")
		changed := map[string]bool{}
		for _, f := range files {
			if rapid.Bool().Draw(rt, "change "+f) {
				l.write(f, "after")
				changed[f] = true
			}
		}
		got := l.changes(s)
		for p, f := range got {
			if filepath.Base(p) != ".gitignore" && (!changed[p] || l.content(*f.Was) != "before" || l.content(f.Now) != "after") {
				rt.Errorf(`%s: got %+v, want filepath.Base(p) = ".gitignore" or (changed[p] and l.content(*f.Was) = "before" and l.content(f.Now) = "after")`,
					p, f)
			}
		}
		for _, p := range visible {
			if _, told := got[p]; changed[p] && !told {
				rt.Errorf("%s was seen before and changed, and only these are told: %v", p, slices.Sorted(maps.Keys(got)))
			}
		}
	})
}

// Folders within folders, as deep as a path can be.
func TestDeepFolders(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	deep := strings.Repeat("d/", 200)
	l.write(deep+"f", "1")
	got := l.during(func() { l.write(deep+"f", "2"); l.write(deep+"g", "3") })
	l.wantChange(got, deep+"f", "1", "2")
	l.wantChange(got, deep+"g", "", "3")
}

// The rules of all folders together are bounded: a hostile repository has a file of them in each.
func TestRulesAreBounded(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	text := strings.Repeat("# a comment takes no time\n", maxRules/26-1) + "hidden\n"
	for i := range 6 {
		l.write(fmt.Sprintf("d%d/.gitignore", i), text)
		l.write(fmt.Sprintf("d%d/hidden", i), "")
	}
	got := slices.DeleteFunc(l.paths(l.survey()), func(p string) bool { return strings.HasSuffix(p, ".gitignore") })
	if d := cmp.Diff([]string{"d4/hidden", "d5/hidden"}, got); d != "" {
		t.Error(d)
	}
}
