package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The bounds of a page: a reader finds what a page is about in a minute.
const (
	maxReadme = 8 << 10 // bytes
	maxLines  = 400
	maxWidth  = 120 // columns, outside of tables
)

// manual reads README.md and the pages of this folder, by their links from README.md.
func manual(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, name := range append(names, "../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	return pages
}

func TestPagesAreShort(t *testing.T) {
	for name, text := range manual(t) {
		lines := strings.Split(text, "\n")
		if len(lines) > maxLines {
			t.Errorf("%s: got %d lines, want at most %d", name, len(lines), maxLines)
		}
		for i, line := range lines {
			if n := len([]rune(line)); n >= maxWidth && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "![") {
				t.Errorf("%s:%d: got %d columns, want less than %d", name, i+1, n, maxWidth)
			}
		}
		if name == "../README.md" && len(text) > maxReadme {
			t.Errorf("README.md: got %d bytes, want at most %d", len(text), maxReadme)
		}
	}
}

// Every page can be reached from the front page.
func TestReadmeLinksToEveryPage(t *testing.T) {
	pages := manual(t)
	for name := range pages {
		if !strings.Contains(pages["../README.md"], "](docs/"+name+")") && name != "../README.md" {
			t.Errorf("README.md does not link to docs/%s", name)
		}
	}
}

// Nothing stands twice: no paragraph, no row of a table.
func TestNoParagraphStandsTwice(t *testing.T) {
	seen := map[string]string{}
	for name, text := range manual(t) {
		for i, part := range strings.Split(text, "\n\n") {
			at, words := fmt.Sprintf("%s, paragraph %d", name, i+1), strings.Join(strings.Fields(part), " ")
			if len(words) < 100 {
				continue
			}
			if before := seen[words]; before != "" {
				t.Errorf("%s: the same stands in %s:\n%s", at, before, part)
			}
			seen[words] = at
		}
	}
}

// Each block of a page says in its first line what it is, so that it is run, or not, on purpose.
func TestBlocksAreMarked(t *testing.T) {
	known := map[string]bool{"sh": true, "text": true, "toml": true, "json": true, "yaml": true, "go": true}
	for name, text := range manual(t) {
		inside := false
		for i, line := range strings.Split(text, "\n") {
			mark, fence := strings.CutPrefix(line, "```")
			if !fence {
				continue
			}
			if inside = !inside; inside && !known[mark] {
				t.Errorf("%s:%d: the block is marked %q, want sh for one that is run, else text, toml, json, yaml or go", name, i+1, mark)
			}
		}
	}
}
