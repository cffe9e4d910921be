package usergit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// pushedTree is a work tree whose commits are at a remote, which is a bare repository.
func pushedTree(t *testing.T) (dir, remote string) {
	t.Helper()
	dir = workspace(t)
	remote = filepath.Join(fixture.Must[string](t)(filepath.EvalSymlinks(t.TempDir())), "app.git")
	fixture.Git(t, dir, "clone", "-q", "--bare", dir, remote)
	fixture.Git(t, dir, "remote", "add", "origin", remote)
	fixture.Git(t, dir, "push", "-q", "-u", "origin", "main")
	return dir, remote
}

func anyRemote(string) bool { return true }

func described(t *testing.T, root string) (api.WorkTree, []string) {
	t.Helper()
	tree, differ, err := Describe(t.Context(), root, anyRemote)
	if err != nil {
		t.Fatal(err)
	}
	return tree, differ
}

// A work tree is described by the newest commit that the remote has, and by what differs.
func TestDescribe(t *testing.T) {
	dir, remote := pushedTree(t)
	base := fixture.Git(t, dir, "rev-parse", "HEAD")
	put(t, filepath.Join(dir, ".gitignore"), "hidden\n", 0o600)
	put(t, filepath.Join(dir, "in", "b.txt"), "committed\n", 0o600)
	fixture.Git(t, dir, "add", "-A")
	fixture.Git(t, dir, "commit", "-qm", "not pushed")
	put(t, filepath.Join(dir, "in", "staged.txt"), "staged\n", 0o600)
	fixture.Git(t, dir, "add", "-A")
	put(t, filepath.Join(dir, "hidden"), "ignored\n", 0o600)
	put(t, filepath.Join(dir, "in", "new\nline"), "untracked\n", 0o600)
	fixture.NoError(t, os.Remove(filepath.Join(dir, "a.txt")))

	got, differ := described(t, dir)
	changed := []string{".gitignore", "a.txt", "in/b.txt", "in/new\nline", "in/staged.txt"}
	if got.Remote != remote || got.Commit != base || got.Branch != "main" || got.Below != "" || !slices.Equal(differ, changed) {
		t.Errorf("got %+v, want %s at %s on main, and changes of %q", got, remote, base, changed)
	}
	if _, _, err := Describe(t.Context(), filepath.Join(dir, "in"), anyRemote); err == nil || !strings.Contains(err.Error(), "2 files outside of the workspace") {
		t.Errorf("a folder in a tree that differs elsewhere: got %v, want it refused", err)
	}
	fixture.Git(t, dir, "checkout", "-q", "a.txt", ".")
	fixture.Git(t, dir, "push", "-q")
	fixture.Git(t, dir, "checkout", "-q", "--detach")
	got, differ = described(t, filepath.Join(dir, "in"))
	if want := []string{"new\nline", "staged.txt"}; got.Below != "in" || got.Branch != "" || !slices.Equal(differ, want) {
		t.Errorf("a folder in the tree: got %+v, want changes of %q", got, want)
	}
}

func TestDescribeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(t *testing.T, dir string)
		allowed bool
		want    string
	}{
		"a remote that is not allowed": {func(*testing.T, string) {}, false, "none of its remotes"},
		"no remote":                    {func(t *testing.T, dir string) { fixture.Git(t, dir, "remote", "remove", "origin") }, true, "none of its remotes"},
		"nothing pushed": {func(t *testing.T, dir string) {
			fixture.Git(t, dir, "update-ref", "-d", "refs/remotes/origin/main")
		}, true, "no commit of it"},
		"a program in its settings": {func(t *testing.T, dir string) { fixture.Git(t, dir, "config", "filter.x.clean", "evil") }, true, "not known to be harmless"},
		"submodules": {func(t *testing.T, dir string) {
			fixture.Git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+fixture.Git(t, dir, "rev-parse", "HEAD")+",sub")
		}, true, "submodules"},
		"no repository": {func(t *testing.T, dir string) { fixture.NoError(t, os.RemoveAll(filepath.Join(dir, ".git"))) }, true, "no git work tree"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := pushedTree(t)
			c.change(t, dir)
			got, _, err := Describe(t.Context(), dir, func(string) bool { return c.allowed })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
}

// A clone has the commit, its branch and the history, and no hook of the user ran.
func TestClone(t *testing.T) {
	dir, remote := pushedTree(t)
	program, ran := evil(t)
	templates := t.TempDir()
	script := fixture.Must[[]byte](t)(os.ReadFile(program))
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
		put(t, filepath.Join(templates, "hooks", hook), string(script), 0o700)
	}
	home := t.TempDir()
	put(t, filepath.Join(home, ".gitconfig"), "[init]\n\ttemplateDir = "+templates+"\n[core]\n\thooksPath = "+filepath.Join(templates, "hooks")+"\n", 0o600)
	t.Setenv("HOME", home)
	tree, _ := described(t, dir)
	_ = ran()

	to := filepath.Join(t.TempDir(), "tree")
	fixture.NoError(t, Clone(t.Context(), tree, to))
	if ran() {
		t.Error("a hook ran")
	}
	if got := fixture.Must[[]byte](t)(os.ReadFile(filepath.Join(to, "in", "b.txt"))); string(got) != "two\n" {
		t.Errorf("a file: got %q, want that of the commit", got)
	}
	if _, err := os.Stat(filepath.Join(to, ".git", "hooks")); err == nil {
		t.Error("the clone has hooks")
	}

	// A commit that no branch has any more, and a branch that the remote lacks.
	fixture.Git(t, remote, "update-ref", "refs/hidden/old", tree.Commit)
	fixture.Git(t, dir, "commit", "-q", "--amend", "-m", "another first")
	fixture.Git(t, dir, "push", "-q", "-f")
	tree.Branch = "topic"
	to = filepath.Join(t.TempDir(), "tree")
	fixture.NoError(t, Clone(t.Context(), tree, to))
	if got := fixture.Git(t, to, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"); got != tree.Commit+"\ntopic" {
		t.Errorf("got %q, want the commit on topic", got)
	}

	for name, bad := range map[string]api.WorkTree{
		"an option for a commit":   {Remote: remote, Commit: "--upload-pack=" + program},
		"a short commit":           {Remote: remote, Commit: tree.Commit[:12]},
		"a commit that is nowhere": {Remote: remote, Commit: strings.Repeat("0", 39) + "1"},
		"a program for an address": {Remote: "ext::" + program, Commit: tree.Commit},
		"an option for an address": {Remote: "--upload-pack=" + program, Commit: tree.Commit},
		"another protocol":         {Remote: "file://" + remote, Commit: tree.Commit},
		"no repository":            {Remote: filepath.Join(t.TempDir(), "none"), Commit: tree.Commit},
	} {
		if err := Clone(t.Context(), bad, filepath.Join(t.TempDir(), "tree")); err == nil {
			t.Errorf("%s: cloned, want an error", name)
		}
	}
	if ran() {
		t.Error("a program that an address named ran")
	}
}

// A remote behind ssh asks for no password.
func TestCloneAsksNothing(t *testing.T) {
	bin := t.TempDir()
	put(t, filepath.Join(bin, "ssh"), "#!/bin/sh\necho \"$@\" >> "+bin+"/args\nexit 1\n", 0o700)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	tree := api.WorkTree{Remote: "git@git.example.org:team/app.git", Commit: strings.Repeat("0", 40)}
	if err := Clone(t.Context(), tree, filepath.Join(t.TempDir(), "tree")); err == nil {
		t.Error("cloned, want the error of ssh")
	}
	if got := string(fixture.Must[[]byte](t)(os.ReadFile(filepath.Join(bin, "args")))); !strings.HasPrefix(got, "-oBatchMode=yes ") {
		t.Errorf("arguments of ssh: got %q, want the batch mode", got)
	}
}
