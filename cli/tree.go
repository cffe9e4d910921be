package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// family is a task with its subtasks, as they are listed: each behind its parent.
type family struct {
	tasks  []api.Summary
	depths []int
}

// drawTree prints a family.
func (a *App) drawTree(f family, names map[string]string) error {
	width, style := 0, a.outStyle()
	if a.OutTTY {
		width = a.Width
	}
	all := api.CostsBelow(f.tasks, f.depths)
	out := bufio.NewWriter(a.Out)
	for i, t := range f.tasks {
		facts := []string{display.OneLine(names[keyOf(t)]), status(t)}
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
		line := f.lead(i) + strings.Join(facts, " · ") + "  " + title
		s := view.Plain
		if len(t.Damaged) > 0 {
			s = view.Bad
		} else if t.Status == "waiting" {
			s = view.Asked
		}
		fmt.Fprintln(out, style.Paint(s, display.Cut(line, width)))
	}
	return flushed(out)
}

// lead is the part of the tree's drawing before a task.
func (f family) lead(i int) string {
	if i == 0 {
		return ""
	}
	last := func(at, depth int) bool { // no task of that depth follows under the same parent
		for j := at + 1; j < len(f.depths) && f.depths[j] >= depth; j++ {
			if f.depths[j] == depth {
				return false
			}
		}
		return true
	}
	var b strings.Builder
	for d := f.depths[0] + 1; d < f.depths[i]; d++ {
		if last(i, d) {
			b.WriteString("   ")
		} else {
			b.WriteString("│  ")
		}
	}
	if last(i, f.depths[i]) {
		return b.String() + "└─ "
	}
	return b.String() + "├─ "
}
