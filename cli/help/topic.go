package help

import (
	"strings"

	display "github.com/roost-dev/roost/cli/term"
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

// Page returns a page of the manual in the form for a person. Without a terminal it is the Markdown itself.
func (l Layout) Page(markdown string) string {
	markdown = strings.TrimRight(markdown, "\n")
	if l.Width <= 0 {
		return markdown
	}
	rich := display.Options{Colour: l.Style.On, Theme: l.Style.Theme, Width: l.Width, Rich: true, Live: true}
	return rich.Prose(markdown, 0)
}
