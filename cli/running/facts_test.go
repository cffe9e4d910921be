package running

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// write makes files below a folder, with their folders.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBranchOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"repo/.git/HEAD":                "ref: refs/heads/topic/one\n",
		"repo/sub/a.go":                 "",
		"detached/.git/HEAD":            "0123456789abcdef0123456789abcdef01234567\n",
		"tree/.git":                     "gitdir: ../repo/.git/worktrees/tree\n",
		"repo/.git/worktrees/tree/HEAD": "ref: refs/heads/two\n",
		"hostile/.git/HEAD":             "ref: refs/heads/a\x1b[2Jb\n! c\n",
		"none/a.go":                     "",
	})
	pipe := filepath.Join(dir, "pipe", ".git") // an archive can bring one
	write(t, filepath.Dir(pipe), map[string]string{"a.go": ""})
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Logf("this system has no pipes: %v", err)
	}
	for folder, want := range map[string]string{
		"repo": "topic/one", "repo/sub": "topic/one", "detached": "01234567", "tree": "two", "hostile": "ab ! c", "pipe": "", "none": "",
	} {
		if got := branchOf(filepath.Join(dir, folder)); got != want {
			t.Errorf("%s: got %q, want %q", folder, got, want)
		}
	}
	if got := branchOf(""); got != "" {
		t.Errorf("without a folder: %q", got)
	}
}
