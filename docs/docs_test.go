package docs

import (
	"strings"
	"testing"
)

func TestTitleAndSummaryOfAPage(t *testing.T) {
	for text, want := range map[string]Page{
		"# MCP servers\n\nA server gives a model\nmore tools. More about it.\n": {Title: "MCP servers", Summary: "A server gives a model more tools."},
		"# Two\n\nuse `v1.2` of it: then\n\nmore":                               {Title: "Two", Summary: "use v1.2 of it: then"},
		"# Only a title":                {Title: "Only a title"},
		"no title\n\n# later":           {Title: "x", Summary: "no title"},
		"\n\n# Blank first\n\nYes! No.": {Title: "Blank first", Summary: "Yes!"},
	} {
		got := pageOf("x", text)
		if got.Title != want.Title || got.Summary != want.Summary || got.Text != text {
			t.Errorf("%q: got title %q, summary %q, want %q, %q", text, got.Title, got.Summary, want.Title, want.Summary)
		}
	}
}

// Each page can be listed: it has a title, and a first sentence that fits in a line or two.
func TestPagesCanBeListed(t *testing.T) {
	pages := Pages()
	if len(pages) == 0 {
		t.Fatal("got no pages, want those of the folder")
	}
	for _, p := range pages {
		if !strings.HasPrefix(p.Text, "# ") || p.Summary == "" || len(p.Summary) > 300 {
			t.Errorf("docs/%s.md: got title %q, summary %q, want a heading on the first line and a first sentence of at most 300 bytes",
				p.Name, p.Title, p.Summary)
		}
	}
}
