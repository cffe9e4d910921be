//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// guardedWorkspace is a workspace beside the program's own data, with links between.
func guardedWorkspace(t *testing.T) (w *Workspace, root, data string) {
	w, root = open(t)
	data = filepath.Join(filepath.Dir(root), "data", "roost")
	for _, f := range []string{".git/config", ".git/hooks/pre-commit", ".roo/rules.md", ".vscode/settings.json", "src/a.go", "src/git/x", ".gitignore"} {
		fixture.WriteFile(t, filepath.Join(root, f), "x")
	}
	fixture.WriteFile(t, filepath.Join(data, "tasks", "t", "journal.jsonl"), "x")
	fixture.Link(t, filepath.Join(root, ".git"), filepath.Join(root, "src", "hidden"))
	fixture.Link(t, data, filepath.Join(root, "src", "store"))
	fixture.Link(t, ".git/config", filepath.Join(root, "plain"))
	w.Guard(data, "relative is ignored")
	return w, root, data
}

// Every way to a protected file is one: links, dots, letter case, names that some file
// systems take for others. What only looks like it is free.
func TestProtectedByEveryName(t *testing.T) {
	w, root, data := guardedWorkspace(t)
	for path, want := range map[string]bool{
		".git/config": true, ".git": true, ".GIT/config": true, ".Git/Hooks/x": true, "./.git/config": true, "src/../.git/config": true, "sub/.git/config": true,
		"src/hidden/config": true, "src/hidden/new/file": true, "plain": true, root + "/.git/HEAD": true,
		".git./config": true, ".git /config": true, ".git::$INDEX_ALLOCATION/config": true, "git~1/config": true, ".g\u200cit/config": true, ".git\ufeff/config": true,
		".vscode/settings.json": true, ".VSCODE/tasks.json": true, ".vscode./tasks.json": true, ".roo/x": true, ".agents/skills/x/SKILL.md": true, ".roomodes": true, ".RooModes": true, ".roorules-code": true, ".rooignore.": true,
		"src/store/tasks/t/journal.jsonl": true, data + "/tasks/new": true, data: true, filepath.Dir(data): false,
		"src/a.go": false, ".gitignore": false, ".github/workflows/x.yml": false, "src/git/x": false, "git/config": false, "a.git/config": false, ".gitx": false, ".roost": false, "roomodes": false, "src/.gitmodules": false,
	} {
		p := resolve(t, w, path)
		if p.Protected != want {
			t.Errorf("%q is protected: %v", path, p.Protected)
		}
	}
}

// A guard holds in any letter case, and its own path may lead through a link.
func TestGuardThroughALink(t *testing.T) {
	w, root := open(t)
	real := filepath.Join(filepath.Dir(root), "Real")
	fixture.WriteFile(t, filepath.Join(real, "f"), "x")
	way := filepath.Join(filepath.Dir(root), "way")
	fixture.Link(t, real, way)
	w.Guard(way)
	for _, p := range []string{filepath.Join(way, "f"), filepath.Join(real, "f"), filepath.Join(filepath.Dir(root), "REAL", "f")} {
		if !resolve(t, w, p).Protected {
			t.Errorf("%s is free", p)
		}
	}
	if resolve(t, w, real+"ly").Protected {
		t.Error("a name that only begins alike is protected")
	}
}

// A write to a name that is a hard link to a protected file makes a file of its own:
// the protected one keeps its content.
func TestHardLinkToAProtectedFile(t *testing.T) {
	w, root, _ := guardedWorkspace(t)
	if err := os.Link(filepath.Join(root, ".git", "config"), filepath.Join(root, "twin")); err != nil {
		t.Skip(err)
	}
	if _, err := w.Write(t.Context(), resolve(t, w, "twin"), []byte("evil"), AnyContent); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(root, ".git", "config")); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v, want no error and string(got) = \"x\"", got, err)
	}
}

// Commands that would change a protected file, and those that only look, or name
// something else.
func TestProtectedWord(t *testing.T) {
	w, root, data := guardedWorkspace(t)
	t.Setenv("HOME", filepath.Dir(filepath.Dir(data)))
	for _, line := range []string{
		"rm -rf .git", "rm -r -- .git/hooks", "rm .git/config", "/bin/rm .git/config", "sudo rm -rf .git", "ls; rm .roomodes", "ls && rm -rf ./.git", "true | rm .git/config", "RM .git/config",
		"echo x > .git/config", "echo x >> .roo/rules.md", "echo x >.vscode/settings.json", "echo x >| .roomodes", "echo x >& .roomodes", "echo x &> .roomodes", "> .rooignore", "2> .git/x ls", "cat a > src/hidden/config", "echo x > plain",
		"cp evil .git/hooks/pre-commit", "mv .git old", "mv x .git", "ln -s x .git/hooks/post-commit", "tee .roomodes", "cat a | tee -a .git/config", "touch .git/x", "chmod +x .git/hooks/x", "truncate -s0 .git/config", "install x .git/hooks/y",
		"dd if=a of=.git/config", "cp x --target-directory=.git", "sed -i s/a/b/ .git/config", "sed -ni.bak p .roomodes", "sed --in-place s/a/b/ .vscode/settings.json", "perl -pi -e x .git/config", "perl -i -pe x .git/config", "sort -o .roomodes a",
		"sh -c 'rm -rf .git'", `bash -c "echo x > .git/config"`, "env A=1 sh -c 'cd src; rm -r ../.git'", "xargs rm .git/config", "cd .git && rm config", "cd src; rm -rf hidden/hooks", "(cd .git; touch x)",
		"rm -rf .gi*", "rm -rf .[g]it", "rm -rf {.git,x}", "rm -rf '.git'", `rm -rf ".git"`, `rm -rf \.git`, "rm -rf .GIT", "rm -rf src/../.git", "rm -rf " + root, "rm -rf ../ws", "rm -rf $PWD", "rm -rf $PWD/.git", "mv " + root + " x",
		"rm -rf " + data, "rm -rf ~/data", "rm -rf $HOME/data/roost/tasks", "echo x > src/store/tasks/t/journal.jsonl", "rm -r " + filepath.Dir(root),
	} {
		if w.ProtectedWord(line, root) == "" {
			t.Errorf("%q is free", line)
		}
	}
	for _, line := range []string{
		"ls .git", "cat .git/config", "grep -r x .git", "git status", "git commit -m x", "cat < .git/config", "cat .git/config > copy", "find . -path ./.git -prune", "rm -rf build", "rm -rf src/a.go", "echo .git > x", "echo x > .gitignore",
		"sed -n 1p .git/config", "sed s/a/b/ .git/config", "cd .git && ls", "tar --exclude=.git -cf x.tar src", "rsync -a --exclude .gitx src/ out/", "go test ./... > out.txt 2>&1", "ls 2>&1 | tee log", "rm -rf $DIR", "mkdir -p a/b", "sort .git/config", "",
	} {
		if got := w.ProtectedWord(line, root); got != "" {
			t.Errorf("%q is asked for because of %q", line, got)
		}
	}
}

// What some file systems do not see in a name, up to the last rune of each kind, and what
// stands next to it, which they do.
func TestPlainNames(t *testing.T) {
	for _, r := range []rune{0x200b, 0x200f, 0x202a, 0x202e, 0x206a, 0x206f, 0xfeff} {
		if got := plainNames("a/.g" + string(r) + "it/b"); got != "a/.git/b" {
			t.Errorf("%U is seen: %q", r, got)
		}
	}
	for _, r := range []rune{0x200a, 0x2010, 0x2029, 0x202f, 0x2069, 0x2070, 0xfefe} {
		if name := "a/.g" + string(r) + "it/b"; plainNames(name) != name {
			t.Errorf("%U is not seen: %q", r, plainNames(name))
		}
	}
	for name, want := range map[string]string{"a. . /b": "a/b", "...": "...", "a:b": "a", ":b": ":b", "GIT~1/x": ".git/x", "git~2": "git~2", "a.b": "a.b", "": ""} {
		if got := plainNames(name); got != want {
			t.Errorf("%q became %q, not %q", name, got, want)
		}
	}
}

// A folder with HEAD, config, objects and refs is a repository for git, and its config
// names programs: whoever writes the first of them, or any beside a HEAD, is asked.
func TestWhatGitTakesForARepositoryIsProtected(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	judge := func(name string) bool {
		t.Helper()
		p, err := w.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		return p.Protected
	}
	for name, want := range map[string]bool{"HEAD": true, "docs/HEAD": true, "docs/head": true, "docs/config": false, "refs/x": false, "docs/objects/x": false, "docs/HEADER": false} {
		if got := judge(name); got != want {
			t.Errorf("%s: got %v, want got = %v", name, got, want)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docs", "HEAD"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"docs/config": true, "docs/Config": true, "docs/refs/x": true, "docs/objects/a/b": true, "docs/hooks/post-update": true, "docs/a.md": false, "config": false} {
		if got := judge(name); got != want {
			t.Errorf("beside a HEAD, %s: %v", name, got)
		}
	}
}
