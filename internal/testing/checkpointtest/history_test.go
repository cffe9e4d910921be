package checkpointtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the model says must be beyond doubt, so it is told here in cases that a person
// can follow.

// story tells a history: the agent makes a.txt "1", then "2"; the user makes it what
// others says; a command makes b.txt.
func story(t *testing.T, others string) (*History, Tree) {
	t.Helper()
	h := NewHistory()
	empty, one, two := Tree{}, Tree{"a.txt": file("1")}, Tree{"a.txt": file("2")}
	if !h.Look(1, []string{"a.txt"}, empty) {
		t.Error("a file that is looked at for the first time is news")
	}
	h.Save(1)
	h.Change(2, []string{"a.txt"}, empty, one)
	h.Save(2)
	if h.Look(3, []string{"a.txt"}, one) {
		t.Error("a file that is as it was left is no news")
	}
	h.Change(3, []string{"a.txt"}, one, two)
	h.Save(3)
	now := Tree{"a.txt": file(others)}
	after := Tree{"a.txt": file(others), "b.txt": file("b")}
	h.Change(4, []string{"b.txt"}, now, after)
	h.Save(4)
	return h, after
}

func TestHistoryRestores(t *testing.T) {
	for _, tt := range []struct {
		name, others string
		to           int
		rule         Rule
		after        Tree
		kept         []string
	}{
		{"to the beginning", "2", 0, Keep, Tree{}, nil},
		{"in between", "2", 2, Keep, Tree{"a.txt": file("1")}, nil},
		{"to now", "2", 4, Keep, Tree{"a.txt": file("2"), "b.txt": file("b")}, nil},
		{"a file that others changed is kept", "x", 2, Keep, Tree{"a.txt": file("x")}, []string{"a.txt"}},
		{"or goes", "x", 2, Overwrite, Tree{"a.txt": file("1")}, nil},
		{"or is merged, which fails where both changed a line", "x", 2, Merge, Tree{"a.txt": file("x")}, []string{"a.txt"}},
		{"others made it what is wanted", "1", 2, Keep, Tree{"a.txt": file("1")}, nil},
	} {
		h, now := story(t, tt.others)
		p := h.Restore(tt.to, now, tt.rule)
		if diff := cmp.Diff(tt.after, p.After); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", tt.name, diff)
		}
		if diff := cmp.Diff(tt.kept, p.Kept); diff != "" {
			t.Errorf("%s: kept: %s", tt.name, diff)
		}
	}
}

// A change of others that the task found later, and worked on, is still theirs.
func TestHistoryRemembersOthers(t *testing.T) {
	h := NewHistory()
	one, theirs, three := Tree{"a": file("1")}, Tree{"a": file("theirs")}, Tree{"a": file("3")}
	h.Look(1, []string{"a"}, one)
	h.Save(1)
	h.Change(2, []string{"a"}, theirs, three)
	h.Save(2)
	if p := h.Restore(1, three, Keep); len(p.Kept) != 1 || len(p.Changed) != 0 {
		t.Errorf("going back before a change of others is a conflict: %+v", p)
	}
	h.Change(3, []string{"a"}, three, one)
	h.Save(3)
	if p := h.Restore(2, one, Keep); len(p.Kept) != 0 || p.After["a"] != three["a"] {
		t.Errorf("and is none once it is behind: %+v", p)
	}
}

func TestMerged(t *testing.T) {
	lines := func(words string) Node { return file(strings.ReplaceAll(words, " ", "\n")) }
	for _, tt := range []struct {
		name           string
		base, to, ours Node
		want           Node
		ok             bool
	}{
		{"nobody else changed it", lines("a b"), lines("a c"), lines("a b"), lines("a c"), true},
		{"it is done already", lines("a b"), lines("a c"), lines("a c"), lines("a c"), true},
		{"other lines", lines("a b c"), lines("A b c"), lines("a b C"), lines("A b C"), true},
		{"the same line", lines("a b c"), lines("A b c"), lines("x b c"), lines("x b c"), false},
		{"it is gone", lines("a b c"), lines("A b c"), Node{}, Node{}, false},
		{"permission only", lines("a"), Node{Mode: 0o755, Data: "a"}, lines("x"), Node{Mode: 0o755, Data: "x"}, true},
	} {
		if got, ok := merged(tt.base, tt.to, tt.ours); got != tt.want || ok != tt.ok {
			t.Errorf("%s: got %v, %t, want got = %v and ok = tt.ok", tt.name, got, ok, tt.want)
		}
	}
}

// What no comparison sees proves nothing: each kind of change of a workspace and of a
// repository is seen.
func TestPicturesSeeEverything(t *testing.T) {
	for name, change := range map[string]func(root string) error{
		"content":       func(root string) error { return os.WriteFile(filepath.Join(root, "a"), []byte("x"), 0o600) },
		"permission":    func(root string) error { return os.Chmod(filepath.Join(root, "a"), 0o700) },
		"a new file":    func(root string) error { return os.WriteFile(filepath.Join(root, "d", "new"), nil, 0o600) },
		"a file goes":   func(root string) error { return os.Remove(filepath.Join(root, "a")) },
		"a link":        func(root string) error { return swap(filepath.Join(root, "link"), "d/b") },
		"git's content": func(root string) error { return os.WriteFile(filepath.Join(root, "d/.git/HEAD"), []byte("x"), 0o600) },
		"git's mode":    func(root string) error { return os.Chmod(filepath.Join(root, "d/.git/HEAD"), 0o700) },
		"a ref":         func(root string) error { return os.WriteFile(filepath.Join(root, "d/.git/refs/x"), nil, 0o600) },
		"a git file":    func(root string) error { return os.WriteFile(filepath.Join(root, ".git"), []byte("gitdir: y"), 0o600) },
	} {
		root := t.TempDir()
		for _, err := range []error{
			os.MkdirAll(filepath.Join(root, "d/.git/refs"), 0o700), os.WriteFile(filepath.Join(root, "a"), []byte("a"), 0o600),
			os.WriteFile(filepath.Join(root, "d/.git/HEAD"), []byte("ref"), 0o600), os.WriteFile(filepath.Join(root, ".git"), []byte("gitdir: x"), 0o600),
			os.Symlink("a", filepath.Join(root, "link")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		look := func() (Tree, map[string]string) {
			files, err := ReadTree(root)
			if err != nil {
				t.Fatal(err)
			}
			git, err := Repositories(root)
			if err != nil {
				t.Fatal(err)
			}
			return files, git
		}
		files, git := look()
		if again, same := look(); again.Compare(files) != "" || !cmp.Equal(same, git) {
			t.Errorf("%s: nothing changed, and it is seen", name)
		}
		if err := change(root); err != nil {
			t.Fatal(err)
		}
		after, own := look()
		repository := strings.Contains(name, "git") || name == "a ref"
		if seen := after.Compare(files) != ""; seen == repository {
			t.Errorf("%s: seen in the files: %t", name, seen)
		}
		if seen := !cmp.Equal(own, git); seen != repository {
			t.Errorf("%s: seen in the repositories: %t", name, seen)
		}
	}
}

func swap(link, to string) error {
	if err := os.Remove(link); err != nil {
		return err
	}
	return os.Symlink(to, link)
}
