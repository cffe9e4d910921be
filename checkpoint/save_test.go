package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/checkpoint/object"
	"github.com/roost-dev/roost/task"
)

// task1 is the task that saves, where nothing else is said.
const task1 = "0198-task"

func (l *lab) save(s Snapshot) string {
	l.Helper()
	if s.Task == "" {
		s.Task = task1
	}
	commit, err := l.k.Save(l.Context(), s)
	l.must(err)
	return commit
}

// storeGit asks a real git about the store.
func (l *lab) storeGit(args ...string) string {
	l.Helper()
	dir := filepath.Join(l.data, l.k.Name())
	return gitIn(l.TB, dir, append([]string{"--git-dir=" + dir}, args...)...)
}

func TestSaveIsReadableByGit(t *testing.T) {
	l := newLab(t, Options{})
	l.write("dir/a.txt", "one\n")
	l.write("run.sh", "#!/bin/sh\n")
	l.must(os.Chmod(l.at("run.sh"), 0o755))
	l.write("private", "p")
	l.must(os.Chmod(l.at("private"), 0o600))
	l.write("git~1", "a name that git refuses")
	l.write("bytes\xff", "b")
	l.must(os.Symlink("dir/a.txt", l.at("link")))
	files := l.hold("dir/a.txt", "run.sh", "private", "git~1", "bytes\xff", "link", "nothing here")
	files["unkept"] = task.FileVersion{Kind: task.KindFile, Mode: 0o644, Size: 9, Hash: "x"}
	files["lost"] = task.FileVersion{Kind: task.KindFile, Mode: 0o644, Size: 9, Hash: "x", Blob: strings.Repeat("1", 40)}
	was := l.hold("dir/a.txt")["dir/a.txt"]
	first := l.save(Snapshot{Number: 1, Title: "a.txt and\n5 more", At: 1_700_000_000_000, Files: files})
	l.write("dir/a.txt", "two\n")
	now := l.hold("dir/a.txt")
	files["dir/a.txt"] = now["dir/a.txt"]
	old := task.FileVersion{Kind: task.KindFile, Mode: 0o644, Hash: was.Hash, Blob: was.Blob}
	second := l.save(Snapshot{Number: 2, Title: "a.txt", At: 1_700_000_001_000, Parent: first, Files: files,
		Changed: []task.CheckpointFile{{Path: "dir/a.txt", Was: &old, Now: now["dir/a.txt"]}}})

	if out := l.storeGit("fsck", "--strict", "--full"); strings.Contains(out, "error") || strings.Contains(out, "dangling") || strings.Contains(out, "missing") {
		t.Errorf("git fsck: %s", out)
	}
	ref := object.RefName("0198-task")
	if got := strings.TrimSpace(l.storeGit("log", "--format=%H %s", ref)); got != second+" c2: a.txt\n"+first+" c1: a.txt and 5 more" {
		t.Errorf("git log: %s", got)
	}
	if got := l.storeGit("show", ref+":files/dir/a.txt"); got != "two\n" {
		t.Errorf("the file is %q", got)
	}
	if got := l.storeGit("show", ref+":before/dir/a.txt"); got != "one\n" {
		t.Errorf("before it was %q", got)
	}
	list := l.storeGit("ls-tree", "-r", "-z", "--full-tree", first+":files")
	for _, want := range []string{"100755 blob ", "120000 blob ", "\tbytes\xff\x00", "\tdir/a.txt\x00"} {
		if !strings.Contains(list, want) {
			t.Errorf("the tree has no %q: %q", want, list)
		}
	}
	var m manifest
	l.must(json.Unmarshal([]byte(l.storeGit("show", first+":manifest.json")), &m))
	want := manifest{Task: "0198-task", Checkpoint: 1, Files: []extra{
		{Part: "files", Path: "git~1", Kind: "file", Mode: "644", More: "0"},
		{Part: "files", Path: "lost", Kind: "file", Mode: "644", Lost: true},
		{Part: "files", Path: "nothing here", Kind: "gone"},
		{Part: "files", Path: "private", Kind: "file", Mode: "600"},
		{Part: "files", Path: "unkept", Kind: "file", Mode: "644"},
	}}
	if d := cmp.Diff(want, m); d != "" {
		t.Error(d)
	}
	if got := l.storeGit("show", first+":more/0"); got != "a name that git refuses" {
		t.Errorf("more/0 is %q", got)
	}
}

// What a checkpoint names survives the collection, by whichever name; the rest goes.
func TestCollectKeepsWhatCheckpointsName(t *testing.T) {
	l := newLab(t, Options{Git: "none"})
	l.write("a", "first")
	l.write("gone", "removed by a command")
	c1 := l.save(Snapshot{Number: 1, Files: l.hold("a")})
	s := l.survey()
	l.remove("gone")
	list, err := s.Changes(t.Context())
	l.must(err)
	files := l.hold("a")
	files["gone"] = list[0].Now
	c2 := l.save(Snapshot{Number: 2, Parent: c1, Files: files, Changed: list})
	l.write("a", "second")
	l.save(Snapshot{Number: 3, Parent: c2, Files: l.hold("a")})
	l.write("b", "of another task")
	other := l.hold("b")["b"]
	l.save(Snapshot{Task: "other", Number: 1, Files: map[string]task.FileVersion{"b": other}})
	l.remove("b")
	l.must(l.k.Forget("other"))
	l.must(l.k.Forget("other"))
	l.survey().Close()
	if u, err := l.k.Usage(t.Context(), "0198-task"); err != nil || u.Objects < 9 || u.Bytes == 0 {
		t.Errorf("usage: %+v, %v", u, err)
	}
	l.must(l.k.Close())
	l.k = l.open(Options{Git: "none"}) // what was held by that process is not any more
	if c, err := l.k.Collect(t.Context(), true); err != nil || c.Removed == 0 {
		t.Errorf("would be collected: %+v, %v", c, err)
	}
	if _, err := l.k.Content(t.Context(), other, 0); err != nil {
		t.Errorf("only counting removed something: %v", err)
	}
	if c, err := l.k.Collect(t.Context(), false); err != nil || c.Removed == 0 {
		t.Errorf("collected: %+v, %v", c, err)
	}
	if got := l.content(*list[0].Was); got != "removed by a command" {
		t.Errorf("what a command removed is %q", got)
	}
	if got := l.content(files["a"]); got != "first" {
		t.Errorf("the first state is %q", got)
	}
	if got := l.content(other); got != "(not kept)" {
		t.Errorf("a forgotten task's file is %q", got)
	}
}

// What the newest survey relies on stays too: a command may run right now.
func TestCollectKeepsWhatASurveyReliesOn(t *testing.T) {
	l := newLab(t, Options{Git: "none"})
	l.write("a", "captured before a command")
	s := l.survey()
	other := l.open(Options{Git: "none"})
	if _, err := other.Collect(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	l.remove("a")
	l.wantChange(l.changes(s), "a", "captured before a command", "")
}

// A process that was killed between the ref and the journal leaves a ref that is ahead:
// what it names stays.
func TestARefThatIsAheadOfTheJournal(t *testing.T) {
	l := newLab(t, Options{})
	l.write("a", "1")
	c1 := l.save(Snapshot{Number: 1, Files: l.hold("a")})
	l.write("a", "2")
	lost := l.save(Snapshot{Number: 2, Parent: c1, Files: l.hold("a")})
	l.write("a", "3")
	again := l.save(Snapshot{Number: 2, Parent: c1, Files: l.hold("a")})
	parents := strings.Fields(l.storeGit("log", "-1", "--format=%P", again))
	if d := cmp.Diff([]string{c1, lost}, parents); d != "" {
		t.Error(d)
	}
	if _, err := l.k.Save(t.Context(), Snapshot{Number: 1}); err == nil {
		t.Error("a checkpoint of no task")
	}
}

// A path may be a file at one time and a folder at another.
func TestAFileThatWasAFolder(t *testing.T) {
	l := newLab(t, Options{})
	l.write("x/y", "in a folder")
	was := l.hold("x/y")["x/y"]
	l.remove("x")
	l.write("x", "a file")
	now := l.hold("x")["x"]
	commit := l.save(Snapshot{Number: 1, Files: map[string]task.FileVersion{"x": now, "x/y": was}})
	if _, err := exec.LookPath("git"); err == nil {
		if got := l.storeGit("show", commit+":more/0"); got != "a file" {
			t.Errorf("more/0 is %q", got)
		}
		if out := l.storeGit("fsck", "--strict"); strings.Contains(out, "error") {
			t.Error(out)
		}
	}
}

// Edits of small files must not cost more than twice what they changed. 200 of them take
// three quarters of that.
func TestTheStoreStaysSmall(t *testing.T) {
	l := newLab(t, Options{Git: "none"})
	for i := range 20 {
		l.write(fmt.Sprintf("src/f%02d.go", i), sourceText(i, 0))
	}
	files := map[string]task.FileVersion{}
	changed := 0
	parent := ""
	for i := range 40 {
		p := fmt.Sprintf("src/f%02d.go", i%20)
		text := sourceText(i%20, i+1)
		changed += len(text)
		before := l.hold(p)[p]
		l.write(p, text)
		now := l.hold(p)[p]
		files[p] = now
		parent = l.save(Snapshot{Number: i + 1, Parent: parent, Files: files, Changed: []task.CheckpointFile{{Path: p, Was: &before, Now: now}}})
	}
	size, err := l.k.Size()
	l.must(err)
	t.Logf("%d bytes were changed, the store has %d", changed, size)
	if size > 2*int64(changed) {
		t.Errorf("%d bytes were changed, the store has %d", changed, size)
	}
}

// sourceText is a small source file, a few lines of which tell the edit.
func sourceText(file, edit int) string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "func f%d_%d(x int) int { return x*%d + %d }\n", file, i, i*file+7, i*i)
	}
	fmt.Fprintf(&b, "var edit = %d\n", edit)
	return b.String()
}
