package tasks

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// drawTree prints a family.
func (a *commands) drawTree(f app.Family, names map[string]string) error {
	width, style := 0, a.OutStyle()
	if a.OutTTY {
		width = a.Width
	}
	all := api.CostsBelow(f.Tasks, f.Depths)
	out := bufio.NewWriter(a.Out)
	for i, t := range f.Tasks {
		facts := []string{display.OneLine(names[app.KeyOf(t)]), app.Status(t)}
		if t.Mode != "" {
			facts = append(facts, display.OneLine(t.Mode))
		}
		if t.Usage.Cost != nil {
			facts = append(facts, "$"+t.Usage.Cost.String())
		}
		if all[i] != nil {
			facts = append(facts, "$"+all[i].String()+" with its subtasks")
		}
		title := display.Cut(display.OneLine(t.Title), 60)
		if title == "" {
			title = "(no words yet)"
		}
		line := f.Lead(i) + strings.Join(facts, " · ") + "  " + title
		s := view.Plain
		if len(t.Damaged) > 0 {
			s = view.Bad
		} else if t.Status == "waiting" {
			s = view.Asked
		}
		fmt.Fprintln(out, style.Paint(s, display.Cut(line, width)))
	}
	return app.Flushed(out)
}
