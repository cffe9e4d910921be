package mention

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// repository is a workspace in a repository with one commit of its files.
func repository(t *testing.T, files map[string]string) (Disk, string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	g, dir := ground(t, files)
	fixture.Git(t, dir, "init", "-q")
	fixture.Git(t, dir, "add", "-A", "-f")
	fixture.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "first\n\nA body\nof two lines")
	return g, dir
}

func TestChanges(t *testing.T) {
	g, dir := repository(t, map[string]string{"a.txt": "one\n", "gone.txt": "x\n", "sub/b.txt": "b\n"})
	if text, ok := g.Changes(t.Context()); text != "No changes in working directory" || !ok {
		t.Errorf("got %q, want text = \"No changes in working directory\" and ok", text)
	}
	fixture.WriteFile(t, filepath.Join(dir, "a.txt"), "two\n")
	fixture.WriteFile(t, filepath.Join(dir, "new dir", "n.txt"), "new\n")
	fixture.WriteFile(t, filepath.Join(dir, "staged.txt"), "staged\n")
	fixture.Git(t, dir, "add", "staged.txt")
	if err := os.Remove(filepath.Join(dir, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	text, ok := g.Changes(t.Context())
	for _, want := range []string{"Working directory changes:\n\n M a.txt\n D gone.txt\nA  staged.txt\n?? new dir/\n", "-one\n+two", "+staged", "deleted file mode"} {
		if !ok || !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

func TestTheWorkspaceMayBeAPartOfARepository(t *testing.T) {
	_, dir := repository(t, map[string]string{"in/a.txt": "one\n", "out/b.txt": "outer\n"})
	inner := Disk{Workspace: open(t, filepath.Join(dir, "in"))}
	fixture.WriteFile(t, filepath.Join(dir, "in", "a.txt"), "two\n")
	fixture.WriteFile(t, filepath.Join(dir, "out", "b.txt"), "other\n")
	text, ok := inner.Changes(t.Context())
	if !ok || !strings.Contains(text, "\n M a.txt\n") || strings.Contains(text, "b.txt") || !strings.Contains(text, "+two") {
		t.Errorf(`got %s, want ok and strings.Contains(text, "\n M a.txt\n") and not strings.Contains(text, "b.txt") and strings.Contains(text, "+two")`,
			text)
	}
	text, ok = inner.Commit(t.Context(), fixture.Git(t, dir, "rev-parse", "HEAD"))
	if !ok || strings.Contains(text, "outer") || !strings.Contains(text, "+one") {
		t.Errorf(`got %s, want ok and not strings.Contains(text, "outer") and strings.Contains(text, "+one")`, text)
	}
}

func TestCommit(t *testing.T) {
	g, dir := repository(t, map[string]string{"a.txt": "one\n", "b.bin": "\x00\x01"})
	full := fixture.Git(t, dir, "rev-parse", "HEAD")
	text, ok := g.Commit(t.Context(), full[:8])
	for _, want := range []string{"Commit: " + full[:7], " (" + full + ")\nAuthor: A U Thor\nDate: ", "\n\nMessage: first\n\nDescription:\nA body\nof two lines\n\nFiles Changed:\n a.txt", "\nFull Changes:\n\ndiff --git a/a.txt", "+one"} {
		if !ok || !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if text, ok := g.Commit(t.Context(), "0123456"); ok || !strings.Contains(text, "no commit 0123456") {
		t.Errorf("got %q, want not ok and strings.Contains(text, \"no commit 0123456\")", text)
	}
	blob := fixture.Git(t, dir, "rev-parse", "HEAD:a.txt")
	if text, ok := g.Commit(t.Context(), blob); ok || strings.Contains(text, "one") {
		t.Errorf("what is no commit is shown: %q", text)
	}
	fixture.WriteFile(t, filepath.Join(dir, "a.txt"), strings.Repeat("many lines\n", 5000))
	fixture.Git(t, dir, "commit", "-qam", "second")
	if text, _ := g.Commit(t.Context(), fixture.Git(t, dir, "rev-parse", "HEAD")); strings.Count(text, "\n") > outputLines+10 || !strings.Contains(text, "lines omitted") {
		t.Errorf("%d lines", strings.Count(text, "\n"))
	}
}

func TestHiddenFilesAreNotInDiffs(t *testing.T) {
	g, dir := repository(t, map[string]string{"a.txt": "one\n", "key.env": "SECRET-1\n", "dir/[odd]*.env": "SECRET-2\n", ".rooignore": "*.env\n"})
	text, _ := g.Commit(t.Context(), fixture.Git(t, dir, "rev-parse", "HEAD"))
	if strings.Contains(text, "SECRET") || strings.Contains(text, "key.env") || !strings.Contains(text, "+one") || !strings.Contains(text, "files are hidden by .rooignore") {
		t.Errorf("%s", text)
	}
	fixture.WriteFile(t, filepath.Join(dir, "key.env"), "SECRET-3\n")
	fixture.WriteFile(t, filepath.Join(dir, "fresh.env"), "SECRET-4\n")
	fixture.Git(t, dir, "mv", "-f", "dir/[odd]*.env", "moved.txt")
	fixture.Git(t, dir, "reset", "-q")
	if err := os.Remove(filepath.Join(dir, "moved.txt")); err != nil {
		t.Fatal(err)
	}
	text, ok := g.Changes(t.Context())
	if !ok || strings.Contains(text, "SECRET") || strings.Contains(text, ".env") || !strings.Contains(text, "hidden by .rooignore") {
		t.Errorf(`got %s, want ok and not strings.Contains(text, "SECRET") and not strings.Contains(text, ".env") and strings.Contains(text, "hidden by .rooignore")`,
			text)
	}
}

func TestWithoutARepository(t *testing.T) {
	g, dir := ground(t, map[string]string{"a": "b"})
	if text, ok := g.Changes(t.Context()); ok || text != "Not a git repository" {
		t.Errorf("got %q, want not ok and text = \"Not a git repository\"", text)
	}
	if text, ok := g.Commit(t.Context(), "abcdef1"); ok || text != "Not a git repository" {
		t.Errorf("got %q, want not ok and text = \"Not a git repository\"", text)
	}
	fixture.Git(t, dir, "init", "-q")
	if text, ok := g.Changes(t.Context()); !ok || !strings.Contains(text, "?? a\n") || !strings.Contains(text, "no commit yet") {
		t.Errorf(`got %q, want ok and strings.Contains(text, "?? a\n") and strings.Contains(text, "no commit yet")`,
			text)
	}
	t.Setenv("PATH", t.TempDir())
	if text, ok := g.Changes(t.Context()); ok || text != "Git is not installed" {
		t.Errorf("got %q, want not ok and text = \"Git is not installed\"", text)
	}
}

// trap is a program that leaves a mark where it is run.
func trap(t *testing.T) (program string, sprung func() bool) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the traps are shell scripts")
	}
	dir := t.TempDir()
	program, mark := filepath.Join(dir, "trap"), filepath.Join(dir, "sprung")
	fixture.WriteFile(t, program, "#!/bin/sh\n: > "+mark+"\ncat 2>/dev/null\n")
	if err := os.Chmod(program, 0o700); err != nil { //nolint:gosec // it must run
		t.Fatal(err)
	}
	return program, func() bool {
		_, err := os.Stat(mark)
		return err == nil
	}
}

// A repository's settings can name programs for many occasions. None of them runs;
// where plain git is known to run one, that is shown first.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	for name, set := range map[string]struct {
		config func(program string) []string // pairs
		attr   string
		plain  []string // runs it, to prove the trap
		env    string
	}{
		"fsmonitor":       {config: func(p string) []string { return []string{"core.fsmonitor", p} }, plain: []string{"status"}},
		"clean filter":    {config: func(p string) []string { return []string{"filter.x.clean", p, "filter.x.required", "true"} }, attr: "* filter=x\n", plain: []string{"diff", "HEAD"}},
		"process filter":  {config: func(p string) []string { return []string{"filter.a b.process", p} }, attr: "* filter=\"a b\"\n"},
		"textconv":        {config: func(p string) []string { return []string{"diff.x.textconv", p} }, attr: "* diff=x\n", plain: []string{"diff", "HEAD"}},
		"diff command":    {config: func(p string) []string { return []string{"diff.x.command", p} }, attr: "* diff=x\n", plain: []string{"diff", "HEAD"}},
		"external diff":   {config: func(p string) []string { return []string{"diff.external", p} }, plain: []string{"diff", "HEAD"}},
		"pager":           {config: func(p string) []string { return []string{"core.pager", p, "pager.diff", "true"} }},
		"signatures":      {config: func(p string) []string { return []string{"log.showSignature", "true", "gpg.program", p} }},
		"hooks":           {config: func(p string) []string { return []string{"core.hooksPath", filepath.Dir(p)} }},
		"odd filter name": {config: func(p string) []string { return []string{"filter.a=b.clean", p} }, attr: "* filter=a=b\n"},
		"environment":     {env: "GIT_EXTERNAL_DIFF"},
	} {
		t.Run(name, func(t *testing.T) {
			program, sprung := trap(t)
			g, dir := repository(t, map[string]string{"a.txt": "one\n"})
			if set.attr != "" {
				fixture.WriteFile(t, filepath.Join(dir, ".gitattributes"), set.attr)
				fixture.Git(t, dir, "add", "-A")
				fixture.Git(t, dir, "commit", "-qm", "attributes")
			}
			if name == "hooks" {
				for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "pre-commit"} {
					fixture.WriteFile(t, filepath.Join(filepath.Dir(program), hook), "#!/bin/sh\n"+program+"\n")
				}
			}
			if set.config != nil {
				for pairs := set.config(program); len(pairs) > 0; pairs = pairs[2:] {
					fixture.Git(t, dir, "config", pairs[0], pairs[1])
				}
			}
			if set.env != "" {
				t.Setenv(set.env, program)
			}
			fixture.WriteFile(t, filepath.Join(dir, "a.txt"), "two\n")
			changes, _ := g.Changes(t.Context())
			commit, _ := g.Commit(t.Context(), fixture.Git(t, dir, "rev-parse", "HEAD"))
			if sprung() {
				t.Fatalf("it ran\n%s\n%s", changes, commit)
			}
			if name != "odd filter name" && (!strings.Contains(changes, "+two") || !strings.Contains(commit, "Full Changes:")) {
				t.Errorf("nothing is shown\n%s\n%s", changes, commit)
			}
			if set.plain != nil {
				fixture.Git(t, dir, set.plain...)
				if !sprung() {
					t.Error("the trap is none: plain git does not run it either")
				}
			}
		})
	}
}

func TestTheWorkTreeMayNotBeElsewhere(t *testing.T) {
	g, dir := repository(t, map[string]string{"a.txt": "one\n"})
	other := t.TempDir()
	fixture.WriteFile(t, filepath.Join(other, "a.txt"), "SECRET\n")
	fixture.Git(t, dir, "config", "core.worktree", other)
	if text, ok := g.Changes(t.Context()); ok || strings.Contains(text, "SECRET") {
		t.Errorf("got %s, want not ok and not strings.Contains(text, \"SECRET\")", text)
	}
}

// A folder that looks like a repository's own files is not taken for one.
func TestABareRepositoryIsNotEntered(t *testing.T) {
	program, sprung := trap(t)
	g, dir := repository(t, map[string]string{"a.txt": "one\n"})
	fixture.Git(t, dir, "init", "-q", "--bare", "bare")
	fixture.Git(t, filepath.Join(dir, "bare"), "config", "core.fsmonitor", program)
	g.Workspace = open(t, filepath.Join(dir, "bare"))
	text, _ := g.Changes(t.Context())
	if sprung() {
		t.Errorf("it ran: %s", text)
	}
}

func TestReadingWritesNothing(t *testing.T) {
	g, dir := repository(t, map[string]string{"a.txt": "one\n"})
	fixture.WriteFile(t, filepath.Join(dir, "a.txt"), "one\n") // the same bytes: git would note that in its index
	before, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := g.Changes(t.Context()); !ok {
		t.Error(text)
	}
	after, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil || string(before) != string(after) {
		t.Errorf("the index was written, or %v", err)
	}
}
