//go:build linux

package filetool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
)

// hostileNames can all be made on Linux. Each must stay one line in every answer,
// and none may be taken for another file.
var hostileNames = []string{"two\nlines", "fake\n# other.go", "\x1b[2Kgone", "caf\xe9", "\xff\xfe", "rtl\u202egnp.go", "bell\a"}

func hostileEnv(t *testing.T) (root string, list func(path string) string, search func(path string) string) {
	t.Helper()
	env, root := sandbox(t, "plain", "needle\n")
	for _, n := range hostileNames {
		fixture.WriteFile(t, filepath.Join(root, n), "needle\n")
		fixture.WriteFile(t, filepath.Join(root, "d"+n, "f"), "needle\n")
	}
	list = func(path string) string {
		ask, res := run(t, env, ListFiles(), call("path", path, "recursive", true))
		checkText(t, ask.Text, ask.Title, res.Text)
		return res.Text
	}
	search = func(path string) string {
		ask, res := run(t, env, SearchFiles(), call("path", path, "regex", "needle"))
		checkText(t, ask.Text, ask.Title, res.Text)
		return res.Text
	}
	return root, list, search
}

func checkText(t *testing.T, askJSON string, texts ...string) {
	t.Helper()
	if !json.Valid([]byte(askJSON)) || !utf8.ValidString(askJSON) {
		t.Errorf("the question is no JSON: %q", askJSON)
	}
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x1b\a\u202e") {
			t.Errorf("not fit to be shown: %q", s)
		}
	}
}

func TestHostileNamesStayOneLine(t *testing.T) {
	root, list, search := hostileEnv(t)
	listing := strings.Split(list("."), "\n")
	// A plain file, and for each name a file, a folder and what is in it.
	if want := 1 + 3*len(hostileNames); len(listing) != want {
		t.Errorf("%d lines for %d entries:\n%s", len(listing), want, strings.Join(listing, "\n"))
	}
	found := search(".")
	if want := 1 + 2*len(hostileNames); strings.Count(found, "\n# ") != want || strings.Contains(found, "\n# other.go\n") {
		t.Errorf("%d headings, want %d:\n%s", strings.Count(found, "\n# "), want, found)
	}
	if got := list("dtwo\nlines"); got != "f" {
		t.Errorf("a folder of two lines lists %q", got)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1+2*len(hostileNames) {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// A name that JSON can say can be read, written and changed; what a person sees
// of it is one line.
func TestHostileNamesWork(t *testing.T) {
	env, root := sandbox(t)
	for _, name := range hostileNames {
		if !utf8.ValidString(name) {
			continue // JSON cannot say it
		}
		ask, _ := run(t, env, WriteToFile(), call("path", name, "content", "a\n"))
		if shown := ask.Title + strings.ReplaceAll(ask.Diff, "\n", ""); tool.SafeName(shown) != shown {
			t.Errorf("%q is asked for by %q %q", name, ask.Title, ask.Diff)
		}
		if d := cmp.Diff([]string{name}, ask.Paths); d != "" {
			t.Error(d)
		}
		ask, _ = run(t, env, ApplyDiff(), call("path", name, "diff", diffBlock(0, "a", "b")))
		if got := fixture.ReadFile(t, filepath.Join(root, name)); got != "b\n" || actsOnText(ask.Title) {
			t.Errorf("%q holds %q, asked for by %q", name, got, ask.Title)
		}
		ask, res := run(t, env, ReadFile(), call("path", name))
		if want := "File: " + tool.SafeName(name) + "\n1 | b\n2 | "; res.Text != want || actsOnText(ask.Title) {
			t.Errorf("%q reads as %q, want %q", name, res.Text, want)
		}
		if _, res = run(t, env, ReadFile(), call("path", name+"-gone")); strings.Count(res.Text, "\n") != 1 || !res.IsError {
			t.Errorf("a missing one is told as %q", res.Text)
		}
	}
}

// Pipes and devices among the files: listed, never waited for.
func TestSpecialFilesAreNotOpened(t *testing.T) {
	env, root := sandbox(t, "f", "needle\n", "d/f", "needle\n")
	for _, n := range []string{"pipe", "d/pipe", ".gitignore", "d/.gitignore"} {
		if err := syscall.Mkfifo(filepath.Join(root, n), 0o600); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Symlink("/dev/zero", filepath.Join(root, "zero")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(root, "topipe")); err != nil {
		t.Fatal(err)
	}
	_, res := run(t, env, ListFiles(), call("path", ".", "recursive", true))
	if want := ".gitignore\nf\npipe\ntopipe\nzero\nd/\nd/.gitignore\nd/f\nd/pipe"; res.Text != want {
		t.Error(cmp.Diff(want, res.Text))
	}
	if _, res = run(t, env, SearchFiles(), call("path", ".", "regex", "needle")); strings.Count(res.Text, "\n# ") != 2 {
		t.Errorf("found %q", res.Text)
	}
	for _, n := range []string{"pipe", "topipe", "zero"} {
		if _, res = run(t, env, ReadFile(), call("path", n)); !res.IsError || !strings.Contains(res.Text, n+" is not a file") {
			t.Errorf("%s reads as %q", n, res.Text)
		}
		if _, res = run(t, env, SearchFiles(), call("path", n, "regex", "needle")); !res.IsError {
			t.Errorf("%s was searched: %q", n, res.Text)
		}
		if _, res = run(t, env, ListFiles(), call("path", n)); !res.IsError || !strings.Contains(res.Text, "is a file, not a folder") {
			t.Errorf("%s was listed: %q", n, res.Text)
		}
		if _, err := WriteToFile().Plan(context.Background(), env, call("path", n, "content", "x")); err == nil {
			t.Errorf("%s may be written", n)
		}
	}
}

// actsOnText reports whether a text holds a character that tool.SafeName would quote.
func actsOnText(s string) bool { return tool.SafeName(s) != s }
