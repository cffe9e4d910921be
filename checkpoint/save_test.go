package checkpoint

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/task"
)

// task1 is the task that saves, where nothing else is said.
const task1 = "0198-task"

func (l *bench) save(s Snapshot) string {
	l.Helper()
	if s.Task == "" {
		s.Task = task1
	}
	commit, err := l.k.Save(l.Context(), s)
	l.must(err)
	return commit
}

// manifest reads what Save returned.
func (l *bench) manifest(commit string) content.Manifest {
	l.Helper()
	m, err := l.k.store.Manifest(l.Context(), content.Hash(commit))
	l.must(err)
	return m
}

// hashes are the contents of a manifest by path; "-" is one that was not kept. A path that ends in "~" is of before.
func hashes(m content.Manifest) map[string]string {
	out := map[string]string{}
	for _, f := range m.Files {
		name := f.Path
		if f.Before {
			name += "~"
		}
		if out[name] = string(f.Hash); f.Hash == "" {
			out[name] = "-"
		}
	}
	return out
}

func TestAManifestTellsWhatACheckpointSaved(t *testing.T) {
	l := newBench(t, Options{})
	l.write("dir/a.txt", "one\n")
	l.write("private", "p")
	l.must(os.Chmod(l.at("private"), 0o600))
	l.write("bytes\xff", "b")
	l.must(os.Symlink("dir/a.txt", l.at("link")))
	files := l.hold("dir/a.txt", "private", "bytes\xff", "link", "nothing here")
	files["unkept"] = api.FileVersion{Kind: api.KindFile, Mode: 0o644, Size: 9, Hash: "x"}
	files["lost"] = api.FileVersion{Kind: api.KindFile, Mode: 0o644, Size: 9, Hash: strings.Repeat("1", 64), Blob: strings.Repeat("1", 64)}
	was := l.hold("dir/a.txt")["dir/a.txt"]
	first := l.save(Snapshot{Number: 1, Title: "a.txt and\n5 more", At: 1_700_000_000_000, Files: files})
	l.write("dir/a.txt", "two\n")
	now := l.hold("dir/a.txt")["dir/a.txt"]
	files["dir/a.txt"] = now
	second := l.save(Snapshot{Number: 2, Title: "a.txt", At: 1_700_000_001_000, Parent: first, Files: files,
		Changed: []task.CheckpointFile{{Path: "dir/a.txt", Was: &was, Now: now}}})

	m := l.manifest(first)
	if m.Title != "task 0198-task, checkpoint c1: a.txt and 5 more" || m.At != 1_700_000_000_000 || len(m.Parents) != 0 {
		t.Errorf("the first: %+v", m)
	}
	want := map[string]string{
		"dir/a.txt": was.Hash, "private": files["private"].Hash, "link": files["link"].Hash, "bytes": "", "nothing here": "-", "unkept": "-", "lost": "-",
	}
	delete(want, "bytes")
	for p, v := range files {
		if strings.HasPrefix(p, "bytes") {
			want[p] = v.Hash
		}
	}
	if d := cmp.Diff(want, hashes(m)); d != "" {
		t.Error(d)
	}
	for _, f := range m.Files {
		if f.Path == "private" && (f.Mode != "600" || f.Kind != api.KindFile) || f.Path == "link" && (f.Mode != "" || f.Kind != api.KindLink) {
			t.Errorf(`got %+v, want (f.Path != "private" or (f.Mode = "600" and f.Kind = api.KindFile)) and (f.Path != "link" or (f.Mode = "" and f.Kind = api.KindLink))`,
				f)
		}
	}
	m = l.manifest(second)
	if d := cmp.Diff(map[string]string{"dir/a.txt": now.Hash, "dir/a.txt~": was.Hash, "lost": "-"}, hashes(m)); d != "" {
		t.Error(d)
	}
	if !slices.Equal(m.Parents, []content.Hash{content.Hash(first)}) {
		t.Errorf("the parents of the second: %q", m.Parents)
	}
}

// What a checkpoint names survives the collection, by whichever name; the rest goes.
func TestCollectKeepsWhatCheckpointsName(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
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
	l.save(Snapshot{Task: "other", Number: 1, Files: map[string]api.FileVersion{"b": other}})
	l.remove("b")
	l.must(l.k.Forget(t.Context(), OwnerOf("other")))
	l.must(l.k.Forget(t.Context(), OwnerOf("other")))
	l.survey().Close()
	if n, size, err := l.k.Usage(t.Context(), "0198-task"); err != nil || n < 6 || size == 0 {
		t.Errorf("usage: %d contents, %d bytes, %v", n, size, err)
	}
	l.must(l.k.Close())
	l.k = l.open(Options{Git: "none"}) // what was held by that process is not any more
	if c, err := l.k.Collect(t.Context(), true, true); err != nil || c.Removed == 0 {
		t.Errorf("would be collected: %+v, %v", c, err)
	}
	if _, err := l.k.Content(t.Context(), other, 0); err != nil {
		t.Errorf("only counting removed something: %v", err)
	}
	if c, err := l.k.Collect(t.Context(), false, true); err != nil || c.Removed == 0 {
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
	l := newBench(t, Options{Git: "none"})
	l.write("a", "captured before a command")
	s := l.survey()
	other := l.open(Options{Git: "none"})
	if _, err := other.Collect(t.Context(), false, true); err != nil {
		t.Fatal(err)
	}
	l.remove("a")
	l.wantChange(l.changes(s), "a", "captured before a command", "")
}

// A process that was killed between the name and the journal leaves a task that owns more than the journal names: it
// stays.
func TestANameThatIsAheadOfTheJournal(t *testing.T) {
	l := newBench(t, Options{})
	l.write("a", "1")
	c1 := l.save(Snapshot{Number: 1, Files: l.hold("a")})
	l.write("a", "2")
	lost := l.save(Snapshot{Number: 2, Parent: c1, Files: l.hold("a")})
	l.write("a", "3")
	again := l.save(Snapshot{Number: 2, Parent: c1, Files: l.hold("a")})
	if got := l.manifest(again).Parents; !slices.Equal(got, []content.Hash{content.Hash(c1), content.Hash(lost)}) {
		t.Errorf("parents: got %q", got)
	}
	if _, err := l.k.Save(t.Context(), Snapshot{Number: 1}); err == nil {
		t.Error("a checkpoint of no task")
	}
}

// Edits of small files must not cost more than twice what they changed. 200 of them take
// three quarters of that.
func TestTheStoreStaysSmall(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	for i := range 20 {
		l.write(fmt.Sprintf("src/f%02d.go", i), sourceText(i, 0))
	}
	files := map[string]api.FileVersion{}
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
	size, err := l.k.Size(t.Context())
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
