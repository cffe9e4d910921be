//go:build linux

package commandtool

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/tool"
)

// TestPatternsDoNotRunWhatAFolderNames: the usual patterns for git cover commands in the
// workspace's own repository, and no others.
func TestPatternsDoNotRunWhatAFolderNames(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	env := setup(t)
	root := env.Workspace.Root()
	run := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: got %s, want no error", err, out)
		}
	}
	run("init", "-q")
	for name, text := range map[string]string{
		"docs/HEAD": "ref: refs/heads/main\n", "docs/config": "[core]\nbare = false\nworktree = .\nfsmonitor = touch ran\n", "docs/refs/x": "", "docs/objects/x": "", "src/a": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy := approval.Policy{Allow: []string{"git status", "git log", "git commit", "ls"}}
	decide := func(line, cwd string) approval.State {
		t.Helper()
		p, err := New().Plan(t.Context(), env, input(t, map[string]any{"command": line, "cwd": cwd}))
		if err != nil {
			t.Fatal(err)
		}
		return approval.Decide(policy, tool.Command, p.Ask()).State
	}
	for _, tt := range []struct {
		line, cwd string
		want      approval.State
	}{
		{"git status", ".", approval.Allow},
		{"git status -s && git log -3", "src", approval.Allow},
		{"git commit -m x", ".", approval.Allow},
		{"git status", "docs", approval.Ask},
		{"g''it status", "docs", approval.Ask},
		{"ls && git log", "docs", approval.Ask},
		{"ls -la", "docs", approval.Allow},
	} {
		if got := decide(tt.line, tt.cwd); got != tt.want {
			t.Errorf("%q in %s: %s, want %s", tt.line, tt.cwd, got, tt.want)
		}
	}
	if err := os.WriteFile(filepath.Join(root, ".git", "hooks", "pre-commit"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // it must run
		t.Fatal(err)
	}
	if got := decide("git commit -m x", "."); got != approval.Ask {
		t.Errorf("a commit with a hook: %s", got)
	}
	if got := decide("git status", "."); got != approval.Allow {
		t.Errorf("a status beside a hook of commits: %s", got)
	}
	run("config", "diff.external", "./x")
	if got := decide("git status", "."); got != approval.Ask {
		t.Errorf("settings that name a program: %s", got)
	}
}
