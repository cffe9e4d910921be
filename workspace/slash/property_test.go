package slash

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A description comes out as it was put in, however it is quoted.
func TestQuotedDescriptionsSurvive(t *testing.T) {
	letters := rapid.StringOf(rapid.SampledFrom([]rune(`ab :#'"\-[]{}&*!|>%@é日~0.`)))
	rapid.Check(t, func(r *rapid.T) {
		text := letters.Draw(r, "text")
		for _, quoted := range []string{"'" + strings.ReplaceAll(text, "'", "''") + "'", strconv.Quote(text), strconv.QuoteToASCII(text) + " # a remark"} {
			c := Parse("---\nmode: ask\ndescription: " + quoted + "\n---\nbody")
			if c.Description != strings.TrimSpace(text) || c.Mode != "ask" || c.Content != "body" {
				r.Fatalf("%s becomes %+v", quoted, c)
			}
		}
	})
}

// Nothing of a text without front matter is lost.
func TestTextWithoutFrontMatterIsContent(t *testing.T) {
	lines := rapid.SliceOf(rapid.SampledFrom([]string{"", "words", "- item", "description: x", "----", " ---", "# title", "key:"}))
	rapid.Check(t, func(r *rapid.T) {
		text := "first\n" + strings.Join(lines.Draw(r, "lines"), "\n") + "\n---\nlast"
		if c := Parse(text); c.Content != text || c.Description != "" {
			r.Fatalf("%q becomes %+v", text, c)
		}
	})
}

// What is listed can be found and what can be found is listed, whatever files lie there;
// the workspace's hides the user's, and an empty one hides nothing.
func TestNamesAndFilesAgree(t *testing.T) {
	s, dir := set(t, nil, nil)
	names := rapid.SampledFrom([]string{"a.md", "b.md", "init.md", "A-1_x.y.md", "odd name.md", ".md", "a.txt", "é.md", "c.md.md"})
	texts := rapid.SampledFrom([]string{"", "text", "---\nmode: ask\n---\n", "---\nmode: [ask]\ndescription: d\n---\nbody", "\xff"})
	tree := rapid.MapOfN(names, texts, 0, 6)
	rapid.Check(t, func(r *rapid.T) {
		files := map[string]map[string]string{"w": tree.Draw(r, "workspace"), "h": tree.Draw(r, "home")}
		for base, list := range files {
			folder := filepath.Join(dir, base, ".roo", "commands")
			if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700)); err != nil {
				r.Fatal(err)
			}
			for name, text := range list {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					r.Fatal(err)
				}
			}
		}
		listed := s.Names()
		for i, name := range listed {
			if i > 0 && listed[i-1] >= name {
				r.Fatalf("got %q, want i <= 0 or listed[i-1] < name", listed)
			}
		}
		for _, file := range []string{"a.md", "b.md", "init.md", "A-1_x.y.md", "odd name.md", ".md", "é.md", "c.md.md"} {
			name := strings.TrimSuffix(file, ".md")
			c, err := s.Find(t.Context(), name)
			source := ""
			switch {
			case !Valid(name):
			case files["w"][file] != "":
				source = "project"
			case files["h"][file] != "":
				source = "global"
			case name == "init":
				source = "built-in"
			}
			if (err == nil) != (source != "") || c.Source != source || err != nil && !errors.Is(err, ErrNone) {
				r.Fatalf("%q: %+v, %v, want %q of %v", name, c, err, source, files)
			}
			if err == nil && !slices.Contains(listed, name) {
				r.Fatalf("%q is found and not listed: %q", name, listed)
			}
		}
	})
}

// A built-in command needs no file, and its name is one that a person can give.
func TestBuiltInCommands(t *testing.T) {
	for name, c := range builtIn {
		if !Valid(name) || c.Name != name || c.Content == "" || c.Description == "" || c.Source != "built-in" || c.Mode != "" {
			t.Errorf(`%s: got %+v, want Valid(name) and c.Name = name and c.Content != "" and c.Description != "" and c.Source = "built-in" and c.Mode = ""`,
				name, c)
		}
		if found, err := (Set{}).Find(t.Context(), name); err != nil || found != c {
			t.Errorf("%s: got %v, want no error and found = c", name, err)
		}
	}
}
