package mention

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/slash"
)

// ground is a workspace with files; a name that ends in "/" is a folder.
func ground(t *testing.T, files map[string]string) (Disk, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "w")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		fixture.WriteFile(t, filepath.Join(dir, name), text)
	}
	ws := open(t, dir)
	return Disk{Workspace: ws, Commands: slash.Set{Workspace: ws}}, ws.Root()
}

func open(t *testing.T, dir string) *workspace.Workspace {
	t.Helper()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

func TestWhatIsNotShown(t *testing.T) {
	g, dir := ground(t, map[string]string{
		"a.txt": "text", "secret.env": "KEY=hidden-content", ".rooignore": "secret.env\nhidden/\n", "hidden/x": "hidden-content",
		"program": "\x7fELF\x00\x01hidden-content", "large.png": png + strings.Repeat("x", 6<<20),
	})
	fixture.WriteFile(t, filepath.Join(dir, "..", "outside.txt"), "hidden-content")
	fixture.WriteFile(t, filepath.Join(dir, "..", "out", "x"), "hidden-content")
	fixture.Link(t, "../outside.txt", filepath.Join(dir, "link.txt"))
	fixture.Link(t, "../out", filepath.Join(dir, "dirlink"))
	fixture.Link(t, "secret.env", filepath.Join(dir, "alias"))
	fixture.Link(t, "nowhere", filepath.Join(dir, "dangling"))
	for path, want := range map[string]string{
		"nope.txt": "there is no such file", "a.txt/x": "Error: ", "dangling": "there is no such file", "../outside.txt": "outside the workspace", "/etc/passwd": "outside the workspace", "/": "outside the workspace", "x/../../outside.txt": "outside the workspace",
		"link.txt": "outside the workspace", "dirlink/x": "outside the workspace", "dirlink": "outside the workspace", "secret.env": "ignored by .rooignore", "alias": "ignored by .rooignore", "hidden": "ignored by .rooignore",
		"hidden/x": "ignored by .rooignore", ".rooignore": "ignored by .rooignore", "program": "Binary file omitted", "large.png": "Binary file omitted", "zero\x00byte": "Error: ",
		strings.Repeat("x/", 4000): "Error: ",
	} {
		b := g.File(t.Context(), path)
		if !strings.Contains(b.Text, want) || b.Problem == "" || len(b.Files)+len(b.Images) > 0 || strings.Contains(b.Text, "hidden-content") {
			t.Errorf("%.40q: %+v, want %q", path, b, want)
		}
		if !strings.HasPrefix(b.Text, "[read_file for '") {
			t.Errorf("%.40q: %q has no head", path, b.Text)
		}
	}
}

func TestWhatIsShown(t *testing.T) {
	g, dir := ground(t, map[string]string{"a b.txt": "one\r\ntwo", "empty": "", "latin": "caf\xe9", "text.png": "no picture", "real.png": png})
	fixture.Link(t, "a b.txt", filepath.Join(dir, "inner"))
	for path, want := range map[string]string{
		"a b.txt": "[read_file for 'a b.txt']\nFile: a b.txt\n1 | one\r\n2 | two", filepath.ToSlash(filepath.Join(dir, "empty")): "\n1 | ", "latin": "1 | café", "text.png": "1 | no picture", "inner": "1 | one", "./a b.txt": "File: ./a b.txt",
		"real.png": "Note: image (image/png, 16 bytes) follows.",
	} {
		b := g.File(t.Context(), path)
		if !strings.Contains(b.Text, want) || b.Problem != "" || len(b.Files) != 1 || b.Files[0].Source != "file_mentioned" || b.Files[0].Hash == "" {
			t.Errorf("%q: %+v, want %q", path, b, want)
		}
		if (len(b.Images) == 1) != (path == "real.png") {
			t.Errorf("%q: %d images", path, len(b.Images))
		}
	}
}

func TestAFolder(t *testing.T) {
	g, dir := ground(t, map[string]string{"src/b.go": "package b", "src/a.go": "package a", "src/sub/c.go": "package c", "src/bin": "\x00", "src/z.env": "hidden", ".rooignore": "*.env\n"})
	want := "[read_file for folder 'src/']\nFolder listing:\n├── a.go\n├── b.go\n├── bin\n└── sub/\n\n\n--- File Contents ---\n\n" +
		"[read_file for 'src/a.go']\nFile: src/a.go\n1 | package a\n\n[read_file for 'src/b.go']\nFile: src/b.go\n1 | package b"
	if b := g.File(t.Context(), "src/"); b.Text != want || !b.Folder || b.Problem != "" || b.Files != nil {
		t.Errorf("got %+v, want b.Text = %v and b.Folder and b.Problem = \"\" and b.Files = nil", b, want)
	}
	fixture.WriteFile(t, filepath.Join(dir, "..", "outside.txt"), "not to be seen")
	fixture.Link(t, "../../outside.txt", filepath.Join(dir, "src", "link"))
	if b := g.File(t.Context(), "src"); !strings.Contains(b.Text, "├── link\n") || strings.Contains(b.Text, "not to be seen") || strings.Contains(b.Text, "hidden") {
		t.Errorf(`got %+v, want strings.Contains(b.Text, "├── link\n") and not strings.Contains(b.Text, "not to be seen") and not strings.Contains(b.Text, "hidden")`,
			b)
	}
	if runtime.GOOS != "windows" {
		fixture.WriteFile(t, filepath.Join(dir, "odd", "x\n└── fake"), "text")
		if b := g.File(t.Context(), "odd"); strings.Contains(b.Text, "\n└── fake") {
			t.Errorf("a name passes for a line: %q", b.Text)
		}
	}
}

func TestALargeFolderIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range maxEntries + 50 {
		files[fmt.Sprintf("d/f%05d", i)] = strings.Repeat("x\n", 300)
	}
	g, _ := ground(t, files)
	b := g.File(t.Context(), "d")
	if len(b.Text) > 2*maxFolderFiles || strings.Count(b.Text, "── f0") != maxEntries || !strings.Contains(b.Text, "└── (50 more: use list_files)") || !strings.Contains(b.Text, "too much to be shown at once: d/f0") {
		t.Errorf("%d bytes: %.300q", len(b.Text), b.Text)
	}
}

func TestALongFileSaysHowToGoOn(t *testing.T) {
	g, _ := ground(t, map[string]string{"long": strings.Repeat("line\n", 5000)})
	b := g.File(t.Context(), "long")
	if !strings.HasPrefix(b.Text, "[read_file for 'long']\nIMPORTANT: File content truncated.\nStatus: Showing lines 1-2000 of 5001 total lines.") || b.Lines != 5001 || b.Shown != 2000 {
		t.Errorf("%d of %d lines: %.200q", b.Shown, b.Lines, b.Text)
	}
}

func TestACancelledRunReadsNothing(t *testing.T) {
	g, _ := ground(t, map[string]string{"a": "CONTENT", "d/x": "CONTENT"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if b := g.File(ctx, "a"); b.Problem == "" || strings.Contains(b.Text, "CONTENT") {
		t.Errorf(`got %+v, want b.Problem != "" and not strings.Contains(b.Text, "CONTENT")`, b)
	}
	if text, ok := g.Changes(ctx); ok {
		t.Errorf("got %q, want not ok", text)
	}
	g.Linter = "echo ran"
	if text, ok := g.Problems(ctx); ok || strings.Contains(text, "ran") {
		t.Errorf("got %q, want not ok and not strings.Contains(text, \"ran\")", text)
	}
}

func TestProblems(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the lines are for a POSIX shell")
	}
	g, dir := ground(t, map[string]string{"a.go": "x"})
	for line, want := range map[string]string{
		"": "no linter is set up", "ls; exit 1": "a.go", "true": "No errors or warnings detected.", "exit 3": "exit code 3 and printed nothing", "pwd": dir,
		"printf '\\033[31mred\\033[0m'": "red", "yes a-long-line | head -c 3000000": "omitted",
	} {
		g.Linter = line
		text, ok := g.Problems(t.Context())
		if !strings.Contains(text, want) || ok != (line != "") || len(text) > outputChars+1000 || strings.Contains(text, "\x1b") {
			t.Errorf("%q: %.300q, %v", line, text, ok)
		}
	}
}

func TestCommandsOnDisk(t *testing.T) {
	g, _ := ground(t, map[string]string{".roo/commands/fix.md": "---\ndescription: Mend it\nmode: debug\n---\nDo.", ".roo/commands/large.md": strings.Repeat("x", 300<<10)})
	e := Expand(t.Context(), "/fix this, /large that, /none", g)
	if e.Mode != "debug" || e.Commands != "<command name=\"fix\">\nDescription: Mend it\n\nDo.\n</command>" || len(e.Notes) != 1 || !strings.HasPrefix(e.Notes[0], "/large: ") {
		t.Errorf("%+v", e)
	}
}
