package running

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		"hostile/.git/HEAD":             "ref: refs/heads/a\x1b[2Jb\n",
		"none/a.go":                     "",
	})
	for folder, want := range map[string]string{
		"repo": "topic/one", "repo/sub": "topic/one", "detached": "01234567", "tree": "two", "hostile": "ab", "none": "",
	} {
		if got := branchOf(filepath.Join(dir, folder)); got != want {
			t.Errorf("%s: got %q, want %q", folder, got, want)
		}
	}
	if got := branchOf(""); got != "" {
		t.Errorf("without a folder: %q", got)
	}
}

// The files behind an @ are those of the workspace, without what its rules hide.
func TestListing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"main.go": "", "cli/chat/editor.go": "", "cli/chat/keys.txt": "", "out/a.bin": "", "secret/key.pem": "", ".env": "", ".github/ci.yml": "",
		"node/x.js": "", "a\x1b[2Jb": "", ".gitignore": "out/\nnode/\n", ".rooignore": "secret/\n", ".git/config": "",
	})
	if err := os.Symlink("/", filepath.Join(dir, "slash")); err != nil {
		t.Fatal(err)
	}
	for begun, want := range map[string][]string{
		"":          {"cli/", "main.go", "slash"},
		"ed":        {"cli/", "cli/chat/", "cli/chat/editor.go", "cli/chat/keys.txt", "main.go", "slash"},
		"cli/":      {"cli/chat/"},
		"cli/chat/": {"cli/chat/editor.go", "cli/chat/keys.txt"},
		".e":        {".env", ".github/", ".github/ci.yml", ".gitignore", "cli/", "cli/chat/", "cli/chat/editor.go", "cli/chat/keys.txt", "main.go", "slash"},
		"out/":      nil, "secret/": nil, "../": nil,
	} {
		var l listing
		var got []string
		for _, w := range l.below(t.Context(), dir, begun) {
			got = append(got, w.Text)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %s, want %s", begun, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
}
