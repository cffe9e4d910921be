package help

import (
	"strings"

	"github.com/roost-dev/roost/docs"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/view"
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

var (
	markLink = lazyregexp.New(`\[([^\]]+)\]\(([^)]+)\)`)
	markCode = lazyregexp.New("`([^`]+)`")
	markBold = lazyregexp.New(`\*\*([^*]+)\*\*`)
)

// Page returns a page of the manual in the form for a person. Without a terminal it is the Markdown itself; on one,
// headings are bold, code is indented, and paragraphs are wrapped at words.
func (l Layout) Page(markdown string) string {
	if l.Width <= 0 {
		return strings.TrimRight(markdown, "\n")
	}
	var out []string
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			text := markCode().ReplaceAllString(markBold().ReplaceAllString(strings.Join(paragraph, " "), "$1"), "$1")
			indent := ""
			if strings.HasPrefix(text, "- ") {
				indent = "  "
			}
			out = append(out, l.hang(text, len(indent)))
			paragraph = nil
		}
	}
	code := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimRight(line, "\r\n")
		heading := strings.TrimLeft(line, "#")
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			code = !code
		case code:
			out = append(out, "    "+line)
		case heading != line && strings.HasPrefix(heading, " "):
			end()
			out = append(out, l.Style.Paint(view.Head, strings.TrimSpace(heading)))
		case line == "":
			end()
			out = append(out, "")
		case strings.HasPrefix(line, "|"):
			end()
			out = append(out, line)
		default:
			if strings.HasPrefix(line, "- ") {
				end()
			}
			paragraph = append(paragraph, markLink().ReplaceAllString(strings.TrimSpace(line), "$1 ($2)"))
		}
	}
	end()
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}
