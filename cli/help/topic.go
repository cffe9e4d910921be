package help

import (
	"strings"

	"github.com/roost-dev/roost/cli/markdown"
	"github.com/roost-dev/roost/docs"
)

// Topic returns the page with a name, nil when there is none.
func Topic(name string) *docs.Page {
	for _, p := range docs.Pages() {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

// Page returns a page of the manual in the form for a person. Without a terminal it is the Markdown itself. On one,
// commands stay whole, so that they can be copied.
func (l Layout) Page(text string) string {
	text = strings.TrimRight(text, "\n")
	if l.Width <= 0 {
		return text
	}
	return strings.Join(markdown.Render(text, markdown.Options{Width: l.Width, Theme: l.Style.Theme, Whole: true}), "\n")
}
