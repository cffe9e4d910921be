package export

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"net/url"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
)

// Page is the page of one task in a folder of pages.
type Page struct {
	File string // its name in the folder
	Task api.Summary
}

// Index writes the page that links to the others in its folder. It returns how many secrets it masked.
func Index(w io.Writer, pages []Page, o Options) (masked int, err error) {
	p := &page{out: bufio.NewWriter(w), set: newTypesetter(o.Mask)}
	if err := p.begin(fmt.Sprintf("%d tasks", len(pages))); err != nil {
		return 0, fmt.Errorf("write the index: %w", err)
	}
	for _, one := range pages {
		t := one.Task
		title := p.set.title(t.Title)
		if title == "" {
			title = p.set.plain(t.ID)
		}
		p.print("<section><a href=\"%s\">%s</a>\n", html.EscapeString(url.PathEscape(one.File)), title)
		p.facts(&store.View{Summary: t})
		p.print("</section>\n")
	}
	p.print("</body></html>\n")
	if err := p.out.Flush(); err != nil {
		return 0, fmt.Errorf("write the index: %w", err)
	}
	return p.set.mask.count, nil
}
