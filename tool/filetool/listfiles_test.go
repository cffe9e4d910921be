package filetool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// listText lists a folder and gives its lines.
func listText(t *testing.T, env tool.Env, path string, recursive bool) []string {
	t.Helper()
	_, res := run(t, env, ListFiles(), call("path", path, "recursive", recursive))
	return strings.Split(res.Text, "\n")
}

func TestFoldersThatAreNotEntered(t *testing.T) {
	env, _ := sandbox(t,
		"src/a.go", "", "src/out/o", "", "node_modules/m/i.js", "", "sub/node_modules/n/i.js", "", "target/t", "", "vendor/v.go", "", ".cache/c", "", ".git/config", "", ".git2/x", "",
		"dist", "a file of that name", "Pods/p", "", "env/e", "", "environment/e", "",
	)
	want := []string{"dist", ".cache/", ".git2/", "env/", "environment/", "environment/e", "node_modules/", "Pods/", "src/", "src/a.go", "src/out/", "sub/", "sub/node_modules/", "target/", "vendor/"}
	if d := cmp.Diff(want, listText(t, env, ".", true)); d != "" {
		t.Error(d)
	}
	// What is named is meant.
	for path, want := range map[string][]string{
		"node_modules": {"m/", "m/i.js"},
		"target":       {"t"},
		".cache":       {"c"},
		".git":         {"config"},
		"src/out":      {"o"},
	} {
		if d := cmp.Diff(want, listText(t, env, path, true)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", path, d)
		}
	}
}

func TestGitignoreOnTheWay(t *testing.T) {
	env, _ := sandbox(t,
		".gitignore", "*.log\n/top\nbuild/\n!sub/keep.log\n", "a.log", "", "top", "", "sub/top", "", "sub/keep.log", "", "sub/x.log", "",
		"build/o", "", "sub/.gitignore", "own\n!b.log\n", "sub/own", "", "own", "", "sub/b.log", "", "sub/deep/b.log", "", "sub/deep/own", "", "sub/deep/y", "",
		"broken/.gitignore", "[\n\\\n", "broken/f", "",
	)
	want := []string{".gitignore", "own", "broken/", "broken/.gitignore", "broken/f", "sub/", "sub/.gitignore", "sub/b.log", "sub/keep.log", "sub/top", "sub/deep/", "sub/deep/b.log", "sub/deep/y"}
	if d := cmp.Diff(want, listText(t, env, ".", true)); d != "" {
		t.Error(d)
	}
	// From below, the files above count as well.
	if d := cmp.Diff([]string{"b.log", "y"}, listText(t, env, "sub/deep", true)); d != "" {
		t.Error(d)
	}
}

func TestLinksAreListedAndNotFollowed(t *testing.T) {
	env, root := sandbox(t, "d/f", "", "other/g", "")
	fixture.WriteFile(t, filepath.Join(root, "..", "outside", "secret"), "")
	for name, to := range map[string]string{"d/up": "..", "d/loop": "loop", "d/self": ".", "out": "../outside", "gone": "nowhere", "alias": "other"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Skip(err)
		}
	}
	want := []string{"alias", "gone", "out", "d/", "d/f", "d/loop", "d/self", "d/up", "other/", "other/g"}
	if d := cmp.Diff(want, listText(t, env, ".", true)); d != "" {
		t.Error(d)
	}
	ask, res := run(t, env, ListFiles(), call("path", "out", "recursive", true))
	if !ask.Outside || res.Text != "secret" || raw(ask.Text, "isOutsideWorkspace") != "true" {
		t.Errorf(`got %+v %q, want ask.Outside and res.Text = "secret" and raw(ask.Text, "isOutsideWorkspace") = "true"`,
			ask, res.Text)
	}
	if ask, res = run(t, env, ListFiles(), call("path", "alias", "recursive", true)); ask.Outside || res.Text != "g" {
		t.Errorf("got %+v %q, want not ask.Outside and res.Text = \"g\"", ask, res.Text)
	}
}

func TestListErrorsInWords(t *testing.T) {
	env, _ := sandbox(t, "f", "")
	for path, want := range map[string]string{
		"missing":   "Error: the folder missing does not exist.",
		"f":         "Error: f is a file, not a folder. Use read_file to see it.",
		"f/below":   "Error: the folder f/below cannot be listed: ",
		"miss\ning": `Error: the folder "miss\ning" does not exist.`,
	} {
		_, res := run(t, env, ListFiles(), call("path", path, "recursive", false))
		if !res.IsError || !strings.HasPrefix(res.Text, want) {
			t.Errorf("%q: got %+v, want res.IsError and strings.HasPrefix(res.Text, want)", path, res)
		}
	}
	if err := os.Mkdir(filepath.Join(env.Workspace.Root(), "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, res := run(t, env, ListFiles(), call("path", "empty", "recursive", true)); res.Text != "No files found." || res.IsError {
		t.Errorf("got %+v, want res.Text = \"No files found.\" and not res.IsError", res)
	}
}

// A folder near the top is shown before what lies deep, so that a cut listing
// still gives the lay of the land.
func TestACutListingKeepsTheTop(t *testing.T) {
	env, root := sandbox(t)
	for i := range 30 {
		for k := range 20 {
			fixture.WriteFile(t, filepath.Join(root, fmt.Sprintf("d%02d", i), fmt.Sprintf("f%02d", k)), "")
		}
		fixture.WriteFile(t, filepath.Join(root, fmt.Sprintf("top%02d", i)), "")
	}
	lines := listText(t, env, ".", true)
	if n := slices.Index(lines, "") + 1; n != 200+1 || !strings.Contains(lines[len(lines)-1], "truncated") {
		t.Errorf("%d lines, the last is %q", n, lines[len(lines)-1])
	}
	for i := range 30 {
		for _, want := range []string{fmt.Sprintf("d%02d/", i), fmt.Sprintf("top%02d", i)} {
			if !slices.Contains(lines, want) {
				t.Errorf("%s is cut", want)
			}
		}
	}
}

func ExampleListFiles() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	_ = os.MkdirAll(filepath.Join(dir, "cmd"), 0o700)
	for _, name := range []string{"go.mod", "cmd/main.go"} {
		_ = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	p, err := ListFiles().Plan(ctx, tool.Env{Workspace: ws}, []byte(`{"path":".","recursive":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := p.Run(ctx, nil)
	fmt.Println(res.Text, err)
	// Output:
	// go.mod
	// cmd/
	// cmd/main.go <nil>
}

func TestAHomeFolderIsNotListed(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	fixture.WriteFile(t, filepath.Join(home, "private", "f"), "")
	env, _ := sandbox(t)
	if _, res := run(t, env, ListFiles(), call("path", real, "recursive", true)); strings.Contains(res.Text, "private") {
		t.Errorf("the home folder lists %q", res.Text)
	}
	// A workspace that is a home folder is shown, but not walked through.
	ws, err := workspace.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	if _, res := run(t, tool.Env{Workspace: ws}, ListFiles(), call("path", ".", "recursive", true)); res.Text != "private/" {
		t.Errorf("a workspace at home lists %q", res.Text)
	}
}

func TestHugeFolder(t *testing.T) {
	env, root := sandbox(t)
	dir := filepath.Join(root, "huge")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	lines := listText(t, env, "huge", false)
	if lines[0] != "f0000" || lines[200-1] != "f0199" {
		t.Errorf("begins %q, ends %q", lines[0], lines[200-1])
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("took %v", d)
	}
}
