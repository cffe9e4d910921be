package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/task"
)

func TestGitHead(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no repository", nil, ""},
		{"a branch", map[string]string{"HEAD": "ref: refs/heads/main\n", "refs/heads/main": "abc123\n"}, "abc123"},
		{"detached", map[string]string{"HEAD": "abc123\n"}, "abc123"},
		{"no commit yet", map[string]string{"HEAD": "ref: refs/heads/main\n"}, "refs/heads/main (no commit found)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(root, ".git", filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := gitHead(root); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	was := task.Settings{Workspace: "/w", Provider: "anthropic", Model: "a", Mode: "code"}
	ran := &task.State{Settings: was, Run: &task.Run{Head: "abc"}}
	for _, c := range []struct {
		name  string
		state *task.State
		now   func(*task.Settings)
		head  string
		want  []string
	}{
		{"nothing", ran, func(*task.Settings) {}, "abc", nil},
		{"another model", ran, func(s *task.Settings) { s.Model = "b" }, "abc", []string{"model: a -> b"}},
		{"what was not set is no change", &task.State{}, func(*task.Settings) {}, "abc", nil},
		{"files moved on", ran, func(*task.Settings) {}, "def", []string{"the workspace's HEAD has changed since the last run: abc -> def"}},
		{"git is gone", ran, func(*task.Settings) {}, "", []string{"the workspace's HEAD has changed since the last run: abc -> none"}},
		{"another workspace has another HEAD", ran, func(s *task.Settings) { s.Workspace = "/x" }, "def", []string{"workspace: /w -> /x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := was
			c.now(&now)
			if diff := cmp.Diff(c.want, differences(c.state, now, c.head)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
