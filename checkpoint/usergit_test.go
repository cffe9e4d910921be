package checkpoint

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// gitIn runs the user's git; a test that needs it is skipped where there is none.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	cmd := exec.Command(git, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// commitAll makes a folder a repository, unless it is one, with all that is in it.
func (l *bench) commitAll(dir string) {
	l.Helper()
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		gitIn(l.TB, dir, "init", "-q", "-b", "main")
	}
	gitIn(l.TB, dir, "add", "-A")
	gitIn(l.TB, dir, "commit", "--allow-empty", "-qm", "all")
}

// farPast is a time that no file of a test has by itself.
var farPast = time.Unix(1_000_000_000, 0)

// fingerprint is everything of a folder: names, modes, times, bytes.
func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		out[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCleanFilesAreNotCopied(t *testing.T) {
	l := newBench(t, Options{MaxSurvey: -1}) // nothing may be kept by a survey itself
	l.write("a", "in git")
	l.write("b", "in git, too")
	l.write("untracked", "no")
	l.commitAll(l.root)
	l.write("untracked", "nowhere")
	gitIn(t, l.root, "rm", "-q", "--cached", "untracked")
	l.write("b", "edited") // not as the index has it
	s := l.survey()
	if u := s.unheld; u.Files != 2 || len(u.Names) != 2 {
		t.Errorf("unheld: %+v", u)
	}
	if size, err := l.k.Size(t.Context()); err != nil || size != 0 {
		t.Errorf("the store has %d bytes, %v", size, err)
	}
	l.remove("a")
	l.k.o.MaxSurvey = 1 << 20
	got := l.changes(s)
	l.wantChange(got, "a", "in git", "")
	if len(got) != 1 {
		t.Errorf("changes: %v", got)
	}
}

// A file that is too large to be copied when it changes is not called recoverable, though
// git has it now.
func TestLargeFilesInGit(t *testing.T) {
	l := newBench(t, Options{MaxFile: 10, MaxHold: 20})
	l.write("small", "123")
	l.write("large", strings.Repeat("x", 15))
	l.write("huge", strings.Repeat("x", 25))
	l.commitAll(l.root)
	l.write("untracked", strings.Repeat("y", 15))
	s := l.survey()
	if u := s.unheld; u.Files != 2 || u.Names[0] != "huge" || u.Names[1] != "untracked" {
		t.Errorf("unheld: %+v", u)
	}
	for _, p := range []string{"large", "huge", "untracked"} {
		l.remove(p)
	}
	got := l.changes(s)
	l.wantChange(got, "large", strings.Repeat("x", 15), "")
	l.wantChange(got, "huge", "(not kept)", "")
	// What an index names is known by its content, also where that is not kept.
	if got["huge"].Was.Hash == "" || got["untracked"].Was.Hash != "" {
		t.Errorf("changes: %+v", got)
	}
}

// What is recoverable does not hang on where the repository lies, or of what form it is.
func TestRepositoriesOfAllForms(t *testing.T) {
	l := newBench(t, Options{MaxSurvey: -1})
	outer := filepath.Dir(l.root)
	l.write("plain/x", "of the repository around the workspace")
	l.write("nested/x", "of a nested repository")
	l.commitAll(l.at("nested"))
	l.write("../.gitignore", "/roost\n/home\n/sub\n/ws/hidden\n")
	l.write("hidden/tracked", "ignored, and in the index")
	l.write("hidden/other", "ignored")
	l.commitAll(outer)
	gitIn(t, outer, "add", "-f", "ws/hidden/tracked")
	l.write("../sub/x", "of a submodule")
	l.commitAll(l.at("../sub"))
	gitIn(t, outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "./../"+filepath.Base(outer)+"/sub", "ws/submodule")
	gitIn(t, outer, "worktree", "add", "-q", l.at("worktree"))
	s := l.survey()
	// .gitmodules and such lie outside; the worktree holds copies of what is committed.
	if u := s.unheld; u.String() != "" {
		t.Errorf("unheld: %v", u)
	}
	before := fingerprint(t, l.at("../.git"))
	for _, p := range []string{"plain/x", "nested/x", "hidden/tracked", "submodule/x", "worktree/ws/plain/x"} {
		l.write(p, "changed "+p)
	}
	l.write("hidden/other", "changed, and nobody looks")
	got := l.changes(s)
	for p, was := range map[string]string{
		"plain/x": "of the repository around the workspace", "nested/x": "of a nested repository",
		"hidden/tracked": "ignored, and in the index", "submodule/x": "of a submodule",
		"worktree/ws/plain/x": "of the repository around the workspace",
	} {
		if f, ok := got[p]; !ok || l.content(*f.Was) != was {
			t.Errorf("%s: got %+v, want ok and l.content(*f.Was) = was", p, f)
		}
	}
	if len(got) != 5 {
		t.Errorf("changes: %v", slices.Sorted(maps.Keys(got)))
	}
	if d := cmp.Diff(before, fingerprint(t, l.at("../.git"))); d != "" {
		t.Errorf("the user's .git: %s", d)
	}
}

// Whatever is done, every byte, name and time in the user's .git stays.
func TestTheUsersGitIsNotTouched(t *testing.T) {
	l := newBench(t, Options{})
	l.write("a", "1")
	l.write("b", "1")
	l.commitAll(l.root)
	l.write("b", "2")
	l.must(os.Chtimes(l.at("a"), farPast, farPast)) // a git that refreshes its index would note it
	for _, hook := range []string{"pre-commit", "post-checkout", "post-index-change", "reference-transaction"} {
		l.must(os.WriteFile(l.at(".git/hooks/"+hook), []byte("#!/bin/sh\ntouch "+l.at("ran")+"\n"), 0o755))
	}
	gitIn(t, l.root, "config", "core.fsmonitor", "touch "+l.at("ran")+";true")
	gitIn(t, l.root, "config", "filter.f.clean", "touch "+l.at("ran"))
	l.must(os.WriteFile(l.at(".git/info/attributes"), []byte("* filter=f\n"), 0o644))
	before := fingerprint(t, l.at(".git"))
	got := l.during(func() { l.write("a", "2"); l.remove("b"); l.write("c", "3") })
	l.wantChange(got, "a", "1", "2")
	v, err := l.k.Hold(t.Context(), []string{"a", "b", "c", ".git/config", ".git", "sub/.GIT/x"})
	l.must(err)
	if len(v) != 3 {
		t.Errorf("held: %v", v)
	}
	_, err = l.k.Save(t.Context(), Snapshot{Task: "t", Number: 1, Files: v})
	l.must(err)
	_, err = l.k.Collect(t.Context(), false, true)
	l.must(err)
	if d := cmp.Diff(before, fingerprint(t, l.at(".git"))); d != "" {
		t.Errorf("the user's .git: %s", d)
	}
	if _, err := os.Lstat(l.at("ran")); err == nil {
		t.Error("something of the repository's was run")
	}
}

// An index may name what is not there: a partial clone, or a damaged repository.
func TestAnIndexThatPromisesTooMuch(t *testing.T) {
	l := newBench(t, Options{})
	l.write("a", "the only copy")
	l.write("b", "as promised")
	l.commitAll(l.root)
	id := strings.TrimSpace(gitIn(t, l.root, "rev-parse", ":a"))
	object := l.at(".git/objects/" + id[:2] + "/" + id[2:])
	l.must(os.Remove(object))
	got := l.during(func() { l.remove("a"); l.remove("b") })
	l.wantChange(got, "a", "the only copy", "")
	l.wantChange(got, "b", "as promised", "")
}

// The repository itself goes: then what it alone had is lost, and that is said.
func TestTheRepositoryGoesWithTheCommand(t *testing.T) {
	l := newBench(t, Options{})
	l.write("a", "only in git")
	l.commitAll(l.root)
	l.write("b", "not in git")
	got := l.during(func() { l.remove("."); l.must(os.MkdirAll(l.root, 0o777)) })
	l.wantChange(got, "a", "(not kept)", "")
	l.wantChange(got, "b", "not in git", "")
}

// With more repositories than are read, the same ones are read before and after a command.
func TestMoreRepositoriesThanAreRead(t *testing.T) {
	l := newBench(t, Options{})
	l.write("r/x", "clean")
	l.commitAll(l.at("r"))
	repos := []string{"r"}
	for i := range maxRepos + 2 {
		dir := fmt.Sprintf("r%d", i)
		l.must(os.CopyFS(l.at(dir), os.DirFS(l.at("r"))))
		l.write(dir+"/x", "clean in "+dir)
		gitIn(t, l.at(dir), "commit", "-qam", dir)
		repos = append(repos, dir)
	}
	got := l.during(func() {
		gitIn(t, l.root, "clone", "-q", "r", "before-all-others")
		for _, dir := range repos {
			l.write(dir+"/x", "changed")
		}
	})
	for _, dir := range repos[1:] {
		l.wantChange(got, dir+"/x", "clean in "+dir, "changed")
	}
}

// Line ends and filters change what git stores; a file counts as held only when the bytes
// on disk are in its objects.
func TestBytesAreJudgedNotMeaning(t *testing.T) {
	l := newBench(t, Options{})
	l.write(".gitattributes", "*.txt text eol=crlf\n")
	l.write("a.txt", "one\r\ntwo\r\n")
	l.commitAll(l.root)
	got := l.during(func() { l.remove("a.txt") })
	l.wantChange(got, "a.txt", "one\r\ntwo\r\n", "")
}

func TestNoGitOnThePath(t *testing.T) {
	l := newBench(t, Options{})
	l.write("a", "1")
	l.commitAll(l.root)
	t.Setenv("PATH", t.TempDir())
	got := l.during(func() { l.remove("a") })
	l.wantChange(got, "a", "1", "")
}

// A checkout moves many files at once, of which both contents are git's.
func TestACheckoutIsOneChange(t *testing.T) {
	l := newBench(t, Options{MaxSurvey: -1})
	for i := range 30 {
		l.write(fmt.Sprintf("f%02d", i), fmt.Sprint("old ", i))
	}
	l.commitAll(l.root)
	gitIn(t, l.root, "checkout", "-qb", "other")
	for i := range 30 {
		l.write(fmt.Sprintf("f%02d", i), fmt.Sprint("new ", i))
	}
	l.commitAll(l.root)
	got := l.during(func() { gitIn(t, l.root, "checkout", "-q", "main") })
	if len(got) != 30 {
		t.Errorf("%d changes", len(got))
	}
	for i := range 30 {
		l.wantChange(got, fmt.Sprintf("f%02d", i), fmt.Sprint("new ", i), fmt.Sprint("old ", i))
	}
}
