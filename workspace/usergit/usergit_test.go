package usergit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/workspace/shell"
)

func put(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// workspace is a repository with one commit.
func workspace(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fixture.Git(t, dir, "init", "-q", "-b", "main")
	put(t, filepath.Join(dir, "a.txt"), "one\n", 0o600)
	put(t, filepath.Join(dir, "in", "b.txt"), "two\n", 0o600)
	fixture.Git(t, dir, "add", "-A")
	fixture.Git(t, dir, "commit", "-qm", "first")
	return dir
}

// evil is a program that leaves a file behind, and whether it ran.
func evil(t *testing.T) (program string, ran func() bool) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "evil.sh")
	put(t, program, "#!/bin/sh\ntouch "+dir+"/ran\nexit 1\n", 0o700)
	return program, func() bool {
		_, err := os.Stat(filepath.Join(dir, "ran"))
		_ = os.Remove(filepath.Join(dir, "ran"))
		return err == nil
	}
}

func TestAnOrdinaryRepositoryIsFine(t *testing.T) {
	dir := workspace(t)
	fixture.Git(t, dir, "remote", "add", "origin", "https://example.org/a.git")
	fixture.Git(t, dir, "config", "branch.main.remote", "origin")
	fixture.Git(t, dir, "config", "user.name", "Me")
	for _, at := range []string{dir, filepath.Join(dir, "in")} {
		if s := Judge(t.Context(), dir, at); s != (Standing{}) {
			t.Errorf("%s: got %+v, want s = (Standing{})", at, s)
		}
		if s := Judge(t.Context(), filepath.Join(dir, "in"), at); s != (Standing{}) {
			t.Errorf("workspace in a repository, %s: %+v", at, s)
		}
	}
	// A submodule has its settings, core.worktree among them, elsewhere, and so has a further working tree.
	fixture.Git(t, dir, "-c", "protocol.file.allow=always", "submodule", "add", "-q", workspace(t), "sub/mod")
	fixture.Git(t, dir, "commit", "-qm", "a submodule")
	fixture.Git(t, dir, "config", "--unset", "submodule.sub/mod.url") // no server: only hooks would be asked for
	fixture.Git(t, filepath.Join(dir, "sub", "mod"), "remote", "remove", "origin")
	tree := filepath.Join(t.TempDir(), "tree")
	fixture.Git(t, dir, "worktree", "add", "-q", tree)
	tree, err := filepath.EvalSymlinks(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, tree, filepath.Join(dir, "sub", "mod")} {
		if s := Judge(t.Context(), at, at); s != (Standing{}) {
			t.Errorf("%s: got %+v, want %+v", at, s, Standing{})
		}
	}
	if plain := t.TempDir(); Judge(t.Context(), plain, plain) != (Standing{}) {
		t.Errorf("no repository: %+v", Judge(t.Context(), plain, plain))
	}
}

// TestWhatTheRepositoryRuns wants Judge to see each setting, and then makes real git run its
// program, where plain git does so without a terminal or a network.
func TestWhatTheRepositoryRuns(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, dir, evil string)
		line  []string // plain git runs the program here; nil = not tried
		hooks bool     // only commands that run hooks are asked for
	}{
		{"a filter", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "config", "filter.x.clean", evil)
			put(t, filepath.Join(dir, ".gitattributes"), "*.txt filter=x\n", 0o600)
			put(t, filepath.Join(dir, "a.txt"), "other\n", 0o600)
		}, []string{"diff"}, false},
		{"a text conversion", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "config", "diff.x.textconv", evil)
			put(t, filepath.Join(dir, ".gitattributes"), "*.txt diff=x\n", 0o600)
			put(t, filepath.Join(dir, "a.txt"), "other\n", 0o600)
		}, []string{"diff"}, false},
		{"an external diff", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "config", "diff.external", evil)
			put(t, filepath.Join(dir, "a.txt"), "other\n", 0o600)
		}, []string{"diff"}, false},
		{"an included file", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "config", "include.path", filepath.Join(dir, "settings"))
			put(t, filepath.Join(dir, "settings"), "[diff]\nexternal = "+evil+"\n", 0o600)
			put(t, filepath.Join(dir, "a.txt"), "other\n", 0o600)
		}, []string{"diff"}, false},
		{"a signature check", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "gpg.program", evil) }, nil, false},
		{"ssh", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "core.sshCommand", evil) }, nil, false},
		{"a credential helper", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "credential.helper", evil) }, nil, false},
		{"a pager", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "core.pager", evil) }, nil, false},
		{"a status program", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "core.fsmonitor", evil) }, []string{"-c", "x.y=z", "status"}, false},
		{"a merge driver", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "merge.x.driver", evil) }, nil, false},
		{"an ext remote", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "remote.origin.url", "ext::"+evil) }, nil, false},
		{"a branch's remote", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "branch.main.remote", "./x") }, nil, false},
		{"a setting nobody knows", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "novel.thing", evil) }, nil, false},
		{"a hook", func(t *testing.T, dir, evil string) {
			put(t, filepath.Join(dir, ".git", "hooks", "pre-commit"), "#!/bin/sh\nexec "+evil+"\n", 0o700)
		}, nil, true},
		{"a hook elsewhere", func(t *testing.T, dir, evil string) {
			put(t, filepath.Join(dir, "h", "pre-commit"), "#!/bin/sh\nexec "+evil+"\n", 0o700)
			fixture.Git(t, dir, "config", "core.hooksPath", "h")
		}, nil, true},
		{"a hook that another branch has", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "checkout", "-qb", "other")
			put(t, filepath.Join(dir, "h", "post-checkout"), "#!/bin/sh\nexec "+evil+"\n", 0o700)
			fixture.Git(t, dir, "add", "-A")
			fixture.Git(t, dir, "commit", "-qm", "a hook")
			fixture.Git(t, dir, "checkout", "-q", "main")
			fixture.Git(t, dir, "config", "core.hooksPath", "h")
		}, []string{"checkout", "other"}, true},
		{"a hook that another branch has, in git's own folder", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "checkout", "-qb", "other")
			put(t, filepath.Join(dir, "own", "hooks", "post-checkout"), "#!/bin/sh\nexec "+evil+"\n", 0o700)
			fixture.Git(t, dir, "add", "-A")
			fixture.Git(t, dir, "commit", "-qm", "a hook")
			fixture.Git(t, dir, "checkout", "-q", "main")
			_ = os.RemoveAll(filepath.Join(dir, ".git", "hooks"))
			if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "own")); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, ".git"), "gitdir: own\n", 0o600)
		}, []string{"checkout", "other"}, true},
		{"a hook behind a link", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "checkout", "-qb", "other")
			put(t, filepath.Join(dir, "hook"), "#!/bin/sh\nexec "+evil+"\n", 0o700)
			fixture.Git(t, dir, "add", "-A")
			fixture.Git(t, dir, "commit", "-qm", "a hook")
			fixture.Git(t, dir, "checkout", "-q", "main")
			if err := os.Symlink("../../hook", filepath.Join(dir, ".git", "hooks", "post-checkout")); err != nil {
				t.Skip("links cannot be made here")
			}
		}, []string{"checkout", "other"}, true},
		{"an unfinished rebase", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "-c", "sequence.editor=echo break >", "rebase", "-qi", "--root")
			put(t, filepath.Join(dir, ".git", "rebase-merge", "git-rebase-todo"), "exec "+evil+"\n", 0o600)
		}, []string{"rebase", "--continue"}, true},
		{"an unfinished rebase with a strategy", func(t *testing.T, dir, evil string) {
			strategy(t, dir, evil)
			fixture.Git(t, dir, "-c", "sequence.editor=sed -i 1ibreak", "rebase", "-qi", "other")
			put(t, filepath.Join(dir, ".git", "rebase-merge", "strategy"), "x/evil\n", 0o600)
		}, []string{"-c", "user.name=A", "-c", "user.email=a@example.org", "rebase", "--continue"}, true},
		{"an unfinished cherry-pick with a strategy", func(t *testing.T, dir, evil string) {
			strategy(t, dir, evil)
			put(t, filepath.Join(dir, ".git", "sequencer", "head"), fixture.Git(t, dir, "rev-parse", "HEAD")+"\n", 0o600)
			put(t, filepath.Join(dir, ".git", "sequencer", "todo"), strings.Repeat("pick "+fixture.Git(t, dir, "rev-parse", "other")+" b\n", 2), 0o600)
			put(t, filepath.Join(dir, ".git", "sequencer", "opts"), "[options]\n\tstrategy = x/evil\n", 0o600)
		}, []string{"-c", "user.name=A", "-c", "user.email=a@example.org", "cherry-pick", "--continue"}, true},
		{"a setting of another branch", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "config", "includeIf.onbranch:other.path", "../settings")
			put(t, filepath.Join(dir, "settings"), "[diff]\nexternal = "+evil+"\n", 0o600)
		}, nil, false},
		{"a remote beside the settings", func(t *testing.T, dir, evil string) {
			fixture.Git(t, dir, "init", "-q", "--bare", "b")
			put(t, filepath.Join(dir, "b", "hooks", "post-receive"), "#!/bin/sh\nexec "+evil+"\n", 0o700)
			put(t, filepath.Join(dir, ".git", "remotes", "origin"), "URL: "+filepath.Join(dir, "b")+"\n", 0o600)
		}, []string{"push", "-q", "origin", "main"}, true},
		{"a hook of status", func(t *testing.T, dir, evil string) {
			put(t, filepath.Join(dir, ".git", "hooks", "post-index-change"), "#!/bin/sh\nexec "+evil+"\n", 0o700)
		}, nil, false},
		{"a remote on this disk", func(t *testing.T, dir, evil string) { fixture.Git(t, dir, "config", "remote.origin.url", "./evil") }, nil, true},
		{"a folder named like a remote", func(t *testing.T, dir, evil string) { put(t, filepath.Join(dir, "origin", "x"), "", 0o600) }, nil, true},
		{"a submodule's filter", func(t *testing.T, dir, evil string) {
			nested(t, dir, "sub", evil)
			fixture.Git(t, dir, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
		}, []string{"status"}, false},
		{"a filter of a repository that becomes a submodule", func(t *testing.T, dir, evil string) { nested(t, dir, "a\tb/sub", evil) },
			[]string{"-c", "alias.x=!git add . && git status", "x"}, false},
		{"a filter of an ignored repository", func(t *testing.T, dir, evil string) {
			nested(t, dir, "sub", evil)
			put(t, filepath.Join(dir, ".gitignore"), "sub/\n", 0o600)
		}, []string{"-c", "alias.x=!git add -f sub && git status", "x"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := workspace(t)
			program, ran := evil(t)
			tt.make(t, dir, program)
			s := Judge(t.Context(), dir, dir)
			if ran() {
				t.Error("looking at the repository ran its program")
			}
			if tt.line != nil {
				cmd := exec.Command("git", tt.line...) //nolint:gosec // that is what is tested
				cmd.Dir = dir
				cmd.Env = append(environ(os.Environ()), "GIT_CONFIG_COUNT=0")
				_ = cmd.Run()
				if !ran() {
					t.Fatal("plain git does not run the program: the test does nothing")
				}
			}
			if tt.hooks && (s.Any != "" || s.Hooks == "") || !tt.hooks && s.Any == "" {
				t.Errorf(`got %+v, want (not tt.hooks or (s.Any = "" and s.Hooks != "")) and (tt.hooks or s.Any != "")`, s)
			}
		})
	}
}

// nested makes a repository in a folder of another one, with a program in its settings that git runs for its status.
func nested(t *testing.T, dir, name, evil string) {
	t.Helper()
	fixture.Git(t, dir, "init", "-q", name)
	sub := filepath.Join(dir, name)
	put(t, filepath.Join(sub, "s.txt"), "one\n", 0o600)
	fixture.Git(t, sub, "add", "-A")
	fixture.Git(t, sub, "commit", "-qm", "x")
	fixture.Git(t, sub, "config", "filter.x.clean", evil)
	put(t, filepath.Join(sub, ".git", "info", "attributes"), "*.txt filter=x\n", 0o600)
	put(t, filepath.Join(sub, "s.txt"), "two\n", 0o600)
}

// strategy makes two branches, main and other, and a merge strategy in the working tree.
func strategy(t *testing.T, dir, evil string) {
	t.Helper()
	for _, branch := range []string{"other", "main"} {
		fixture.Git(t, dir, "checkout", "-q", "-B", branch, "main")
		put(t, filepath.Join(dir, branch+".txt"), branch, 0o600)
		fixture.Git(t, dir, "add", "-A")
		fixture.Git(t, dir, "commit", "-qm", branch)
	}
	put(t, filepath.Join(dir, "git-merge-x", "evil"), "#!/bin/sh\nexec "+evil+"\n", 0o700)
}

// bare makes a folder look like a repository of its own, as ordinary files can.
func bare(t *testing.T, dir, program string) {
	t.Helper()
	put(t, filepath.Join(dir, "HEAD"), "ref: refs/heads/main\n", 0o600)
	put(t, filepath.Join(dir, "config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "+program+"\n[diff]\n\texternal = "+program+"\n", 0o600)
	put(t, filepath.Join(dir, "refs", "x"), "", 0o600)
	put(t, filepath.Join(dir, "objects", "x"), "", 0o600)
}

// TestAFolderThatLooksLikeARepository is asked for, and runs nothing even when the user
// says yes.
func TestAFolderThatLooksLikeARepository(t *testing.T) {
	for _, tt := range []struct {
		name string
		root func(t *testing.T) string
		at   string
	}{
		{"in a repository", workspace, "docs"},
		{"in a folder that is no repository", func(t *testing.T) string { return t.TempDir() }, "docs"},
		{"the workspace itself", func(t *testing.T) string { return t.TempDir() }, "."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(tt.root(t))
			if err != nil {
				t.Fatal(err)
			}
			program, ran := evil(t)
			dir := filepath.Join(root, tt.at)
			bare(t, dir, program)
			cmd := exec.Command("git", "status")
			cmd.Dir, cmd.Env = dir, append(environ(os.Environ()), "GIT_CONFIG_COUNT=0")
			if _ = cmd.Run(); !ran() {
				t.Fatal("plain git does not run the program: the test does nothing")
			}
			if s := Judge(t.Context(), root, dir); s.Any == "" {
				t.Errorf("got %+v, want s.Any != \"\"", s)
			}
			for _, line := range []string{"git status", "git diff", "git log"} {
				if _, err := shell.Run(t.Context(), shell.Command{Line: line, Dir: dir}); err != nil {
					t.Fatal(err)
				}
			}
			if ran() {
				t.Error("the program of the folder has run")
			}
		})
	}
}

func TestAnotherRepositoryIsAskedFor(t *testing.T) {
	dir := workspace(t)
	fixture.Git(t, dir, "init", "-q", "nested")
	other := workspace(t)
	for _, at := range []string{filepath.Join(dir, "nested"), other, filepath.Join(dir, ".git"), t.TempDir()} {
		if s := Judge(t.Context(), dir, at); s.Any == "" {
			t.Errorf("%s: got %+v, want s.Any != \"\"", at, s)
		}
	}
	// The settings' working tree is elsewhere.
	fixture.Git(t, dir, "config", "core.worktree", other)
	if s := Judge(t.Context(), dir, dir); s.Any == "" {
		t.Errorf("got %+v, want s.Any != \"\"", s)
	}
}

// TestAWorkTreeOfAnotherRepository: a repository in the workspace, or the workspace in a repository, may name the outer
// one's folder as its work tree, and git then runs what the inner settings name.
func TestAWorkTreeOfAnotherRepository(t *testing.T) {
	for name, tree := range map[string]string{"the outer repository": "../..", "a folder that is none": "../../.."} {
		t.Run(name, func(t *testing.T) {
			outer := workspace(t)
			program, ran := evil(t)
			dir := filepath.Join(outer, "in")
			fixture.Git(t, dir, "init", "-q")
			fixture.Git(t, dir, "add", "-A")
			fixture.Git(t, dir, "config", "core.worktree", tree)
			fixture.Git(t, dir, "config", "diff.external", program)
			cmd := exec.Command("git", "diff")
			cmd.Dir, cmd.Env = dir, append(environ(os.Environ()), "GIT_CONFIG_COUNT=0")
			if _ = cmd.Run(); !ran() {
				t.Fatal("plain git does not run the program: the test does nothing")
			}
			for _, root := range []string{outer, dir} {
				if s := Judge(t.Context(), root, dir); s.Any == "" {
					t.Errorf("workspace %s: got %+v, want a reason in Any", root, s)
				}
			}
			// As a submodule it would show files of that folder in "git diff --submodule=diff".
			fixture.Git(t, dir, "config", "--unset", "diff.external")
			fixture.Git(t, dir, "--work-tree=.", "commit", "-qm", "x")
			fixture.Git(t, outer, "rm", "-q", "--cached", "in/b.txt")
			fixture.Git(t, outer, "-c", "advice.addEmbeddedRepo=false", "add", "in")
			if s := Judge(t.Context(), outer, outer); s.Any == "" {
				t.Errorf("a submodule: got %+v, want a reason in Any", s)
			}
		})
	}
}

// TestOutputIsBounded: a small index of version 4 names gigabytes of paths.
func TestOutputIsBounded(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("the git of this test is a script")
	}
	git := filepath.Join(t.TempDir(), "git")
	for size, want := range map[int]string{maxOutput: "<nil>", maxOutput + 1: "it prints too much"} {
		put(t, git, fmt.Sprintf("#!/bin/sh\nexec head -c %d /dev/zero\n", size), 0o700)
		if out, err := Read(t.Context(), git, t.TempDir(), nil, "ls-files"); fmt.Sprint(err) != want || err == nil && len(out) != size {
			t.Errorf("%d bytes: got %d bytes, %v, want %s", size, len(out), err, want)
		}
	}
}

func TestOldGits(t *testing.T) {
	for text, want := range map[string]bool{
		"git version 2.39.5": true, "git version 2.38.0": true, "git version 2.37.9": false, "git version 1.99.0": false, "git version 3.0.1 (Apple Git-1)": true, "git version 2.38.1.windows.1": true, "nonsense": false, "": false,
	} {
		if recent(text) != want {
			t.Errorf("%q: got %v, want recent(text) = %v", text, !want, want)
		}
	}
	if filepath.Separator != '/' {
		return
	}
	bin := t.TempDir()
	put(t, filepath.Join(bin, "git"), "#!/bin/sh\necho git version 2.37.1\n", 0o700)
	t.Setenv("PATH", bin)
	if s := Judge(t.Context(), bin, bin); !strings.Contains(s.Any, "older") {
		t.Errorf("got %+v, want strings.Contains(s.Any, \"older\")", s)
	}
}
