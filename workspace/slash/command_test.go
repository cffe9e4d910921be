package slash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/workspace"
)

// set is the commands of a workspace and of a home folder with these files.
func set(t *testing.T, project, home map[string]string) (Set, string) {
	t.Helper()
	dir := t.TempDir()
	for base, files := range map[string]map[string]string{"w": project, "h": home} {
		if err := os.MkdirAll(filepath.Join(dir, base, ".roo", "commands"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, base, ".roo", "commands", name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	ws, err := workspace.Open(filepath.Join(dir, "w"))
	if err != nil {
		t.Fatal(err)
	}
	return Set{Workspace: ws, Home: filepath.Join(dir, "h")}, dir
}

func TestTheNearerCommandCounts(t *testing.T) {
	s, _ := set(t,
		map[string]string{"both.md": "of the project", "init.md": "our own", "empty.md": ""},
		map[string]string{"both.md": "of the home", "mine.md": "mine", "empty.md": "not empty"})
	for name, want := range map[string]string{
		"both": "project: of the project", "mine": "global: mine", "init": "project: our own", "empty": "global: not empty",
	} {
		c, err := s.Find(t.Context(), name)
		if err != nil || c.Source+": "+c.Content != want || c.Name != name {
			t.Errorf("%s: got %+v, %v, want no error and c.Source+\": \"+c.Content = %v and c.Name = name",
				name, c, err, want)
		}
	}
	if c, err := (Set{}).Find(t.Context(), "init"); err != nil || c.Source != "built-in" || c.Content == "" || c.Description == "" {
		t.Errorf(`got %+v, %v, want no error and c.Source = "built-in" and c.Content != "" and c.Description != ""`,
			c, err)
	}
	if d := cmp.Diff([]string{"both", "empty", "init", "mine"}, s.Names()); d != "" {
		t.Error(d)
	}
}

func TestAnEditCountsAtOnce(t *testing.T) {
	s, dir := set(t, map[string]string{"a.md": "first"}, nil)
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(dir, "w", ".roo", "commands", "a.md"), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Find(t.Context(), "a"); err != nil || c.Content != want {
			t.Errorf("got %+v, %v, want no error and c.Content = %v", c, err, want)
		}
	}
}

func TestWhatIsNoCommand(t *testing.T) {
	s, dir := set(t, map[string]string{"a.md": "x", "text.txt": "x", "odd name.md": "x"}, nil)
	if err := os.WriteFile(filepath.Join(dir, "w", "secret.md"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "w", ".roo", "commands", "folder.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "none", "text", "odd name", "../../secret", "a.md/../a", "..", "a\x00", "é", strings.Repeat("a", 300)} {
		if c, err := s.Find(t.Context(), name); !errors.Is(err, ErrNone) {
			t.Errorf("%q: got %+v, %v, want errors.Is(err, ErrNone)", name, c, err)
		}
	}
	if _, err := s.Find(t.Context(), "folder"); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("a folder: %v", err)
	}
	if d := cmp.Diff([]string{"a", "init"}, s.Names()); d != "" {
		t.Error(d)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	s, dir := set(t, map[string]string{"large.md": strings.Repeat("x", maxFile+1)}, map[string]string{"huge.md": strings.Repeat("x", maxFile+1), "out.md": "of the home"})
	if err := os.WriteFile(filepath.Join(dir, "outside.md"), []byte("hidden-content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../outside.md", filepath.Join(dir, "w", ".roo", "commands", "out.md")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	for _, name := range []string{"large", "huge", "out"} {
		c, err := s.Find(t.Context(), name)
		if err == nil || errors.Is(err, ErrNone) || c.Content != "" {
			t.Errorf("%s: got %+v, %v, want an error and not errors.Is(err, ErrNone) and c.Content = \"\"",
				name, c, err)
		}
	}
	// A link inside the workspace, and one of the user's own, are followed.
	if err := os.Symlink("../../inner.md", filepath.Join(dir, "w", ".roo", "commands", "in.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "w", "inner.md"), []byte("inner"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "outside.md"), filepath.Join(dir, "h", ".roo", "commands", "own.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "w", "inner.md"), filepath.Join(dir, "w", ".roo", "commands", "absolute.md")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"in": "inner", "absolute": "inner", "own": "hidden-content"} {
		if c, err := s.Find(t.Context(), name); err != nil || c.Content != want {
			t.Errorf("%s: got %+v, %v, want no error and c.Content = %v", name, c, err, want)
		}
	}
}

// A folder of commands that leads out of the workspace hides neither the user's own commands nor the built-in ones.
func TestAFolderThatLeadsOut(t *testing.T) {
	s, dir := set(t, nil, map[string]string{"mine.md": "of the home"})
	roo := filepath.Join(dir, "w", ".roo")
	if err := os.RemoveAll(roo); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), roo); err != nil {
		t.Skipf("no links here: %v", err)
	}
	for name, want := range map[string]string{"mine": "global", "init": "built-in"} {
		if c, err := s.Find(t.Context(), name); err != nil || c.Source != want {
			t.Errorf("%s: got %+v, %v, want one of the source %s", name, c, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Command{
		"":                                   {},
		"just words\n":                       {Content: "just words"},
		"---\ndescription: D\n---\nbody\n\n": {Content: "body", Description: "D"},
		"\uFEFF---\r\ndescription: 'D: d'\r\nargument-hint: <file>\r\nmode: code\r\n---\r\nbody": {Content: "body", Description: "D: d", Hint: "<file>", Mode: "code"},
		"---\ndescription: |\n  two\n  lines\n---":                                               {Description: "two\nlines"},
		"---\ndescription: 3\nmode: [a]\n---\nbody":                                              {Content: "body"},
		"---\ndescription: never ends\nbody":                                                     {Content: "---\ndescription: never ends\nbody"},
		"---\n: : {\n---\nbody":                                                                  {Content: "---\n: : {\n---\nbody"},
		"----\nno front matter\n----\n":                                                          {Content: "----\nno front matter\n----"},
		"---\n---\nbody":                                                                         {Content: "body"},
		"---\ndescription: fix *all* & more\n---\nbody":                                          {Content: "body", Description: "fix *all* & more"},
		"---\ntags: [a, b]\ndescription: D\n---\nb\n---\nc":                                      {Content: "b\n---\nc", Description: "D"},
		"caf\xe9": {Content: "caf\uFFFD"},
	} {
		if d := cmp.Diff(want, Parse(text)); d != "" {
			t.Errorf("%q: got %s, want d = \"\"", text, d)
		}
	}
}

// The forms in which YAML writes a text.
func TestFrontMatterValues(t *testing.T) {
	for value, want := range map[string]string{
		"plain words":                 "plain words",
		"plain # a remark":            "plain",
		"no#remark: here":             "no#remark: here",
		`"quoted \"x\" \u00e9"`:       `quoted "x" é`,
		"'it''s # here' # remark":     "it's # here",
		`"not closed`:                 "",
		`"bad \q"`:                    "",
		"first\n  second":             "first second",
		">-\n  one\n  two\n\n  three": "one two\n three",
		"|\n    deep\n      deeper":   "deep\n  deeper",
		"|\n":                         "",
		"-1 is text":                  "-1 is text",
		"- item":                      "",
		"\n- item\n- item":            "",
		"true":                        "",
		"~":                           "",
		"1e3":                         "",
		"{a: b}":                      "",
		"*alias":                      "",
		"&anchor x":                   "",
		"!!str x":                     "",
	} {
		c := Parse("---\ndescription: " + value + "\nmode: code\n---\nbody")
		if c.Description != want || c.Mode != "code" || c.Content != "body" {
			t.Errorf("%q: %+v, want %q", value, c, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\ndescription: x\n---\nbody")
	f.Add("---\na: &a\n  - *a\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := Parse(text)
		if len(c.Content) > 3*len(text) || c.Content != strings.TrimSpace(c.Content) {
			t.Fatalf("%q: got %q, want len(c.Content) <= 3*len(text) and c.Content = strings.TrimSpace(c.Content)",
				text, c.Content)
		}
	})
}

func ExampleParse() {
	c := Parse("---\ndescription: Ship a release\nargument-hint: VERSION\n---\nRun the checks, then tag.\n")
	fmt.Println(c.Description, c.Hint, c.Content)
	// Output: Ship a release VERSION Run the checks, then tag.
}
