// Package docs embeds the pages of the manual, the Markdown files of this folder: `roost help TOPIC` prints the page
// that is on the web. A page begins with its title, and its first sentence is its summary.
package docs

import (
	"embed"
	"strings"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

//go:embed *.md
var files embed.FS

// Page is one page of the manual.
type Page struct {
	Name    string // its file's name without .md
	Title   string // its first heading
	Summary string // its first sentence
	Text    string // the whole Markdown
}

// sentence matches the beginning of a paragraph up to the end of its first sentence.
var sentence = lazyregexp.New(`^(?s:.*?[.!?])(\s|$)`)

// Pages returns all pages, by name.
func Pages() []Page {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	var out []Page
	for _, e := range entries {
		data, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		out = append(out, pageOf(strings.TrimSuffix(e.Name(), ".md"), string(data)))
	}
	return out
}

func pageOf(name, text string) Page {
	p := Page{Name: name, Title: name, Text: text}
	rest := strings.TrimSpace(text)
	if title, ok := strings.CutPrefix(rest, "# "); ok {
		p.Title, rest, _ = strings.Cut(title, "\n")
	}
	first, _, _ := strings.Cut(strings.TrimSpace(rest), "\n\n")
	if s := strings.TrimSpace(sentence().FindString(first)); s != "" {
		first = s
	}
	p.Summary = strings.ReplaceAll(strings.Join(strings.Fields(first), " "), "`", "")
	return p
}
