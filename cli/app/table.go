package app

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// leastTitle is the minimal width of a title, in columns. A narrow terminal loses other
// columns of the table first.
const leastTitle = 20

// Table writes one line a task.
func (a *App) Table(items []api.Summary, depths []int, names map[string]string) error {
	style := a.OutStyle()
	width := 0
	if a.OutTTY {
		width = a.Width
	}
	idWidth, ageWidth, statusWidth := 2, 4, 6
	for _, t := range items {
		names[KeyOf(t)] = display.OneLine(names[KeyOf(t)])
		idWidth = max(idWidth, display.Columns(names[KeyOf(t)]))
		ageWidth = max(ageWidth, len(a.Age(t.TS)))
		statusWidth = max(statusWidth, len(Status(t)))
	}
	all, tree := api.CostsBelow(items, depths), slices.ContainsFunc(depths, func(d int) bool { return d > 0 })
	columns := columnsIn(width, idWidth, []int{2 + ageWidth, 2 + statusWidth, 1 + costWidth(tree), 1 + 6})
	besides := 30 // columns for tags and folder
	if columns < 4 {
		besides = 0
	}
	line := func(id string, cells ...string) string {
		return display.Pad(id, idWidth) + strings.Join(cells[:columns], "") + "  "
	}
	costs := "     COST"
	if tree {
		costs += "  WITH SUBTASKS"
	}
	head := line("ID", "  "+display.Pad("AGE", ageWidth), "  "+display.Pad("STATUS", statusWidth), costs, "   MSGS") + "TITLE"
	out := bufio.NewWriter(a.Out)
	fmt.Fprintln(out, style.Paint(view.Dim, display.Cut(head, width)))
	for i, t := range items {
		cost := Cents(t.Usage.Cost)
		if tree && all[i] == nil {
			cost += strings.Repeat(" ", 15)
		} else if tree {
			cost += fmt.Sprintf("%15s", Cents(all[i]))
		}
		left := line(names[KeyOf(t)], fmt.Sprintf("  %*s", ageWidth, a.Age(t.TS)), "  "+display.Pad(Status(t), statusWidth),
			fmt.Sprintf(" %*s", costWidth(tree), cost), fmt.Sprintf(" %6d", cmp.Or(t.Messages.UI, t.Messages.API)))
		title := display.OneLine(t.Title)
		if title == "" {
			title = "(no title)"
		}
		title = strings.Repeat("  ", depths[i]) + title
		if t.Pinned {
			title = "^ " + title
		}
		right := ""
		for _, tag := range t.Tags {
			right += "  #" + display.OneLine(tag)
		}
		if t.Workspace != "" {
			right += "  " + display.OneLine(t.Workspace)
		}
		room := 60
		if width > 0 {
			room = max(width-display.Columns(left)-min(display.Columns(right), besides), leastTitle)
		}
		s := view.Plain
		if len(t.Damaged) > 0 {
			s = view.Bad
		} else if t.Status == "waiting" {
			s = view.Asked
		}
		fmt.Fprintln(out, style.Paint(s, display.Cut(left+display.Cut(title, room)+right, width)))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the list: %w", err)
	}
	return nil
}

// columnsIn is how many of some columns, with their widths, fit into a terminal between
// an id and a title; all of them where width is 0.
func columnsIn(width, id int, widths []int) int {
	left := id + 2
	for i, w := range widths {
		if left += w; width > 0 && width-left < leastTitle {
			return i
		}
	}
	return len(widths)
}

func costWidth(tree bool) int {
	if tree {
		return 8 + 15
	}
	return 8
}

// AsTree puts subtasks below their parents, as far as those are listed.
func AsTree(items []api.Summary) ([]api.Summary, []int) {
	listed := map[string]bool{}
	for _, t := range items {
		listed[t.ID] = true
	}
	children := map[string][]api.Summary{}
	for _, t := range items {
		parent := t.ParentID
		if !listed[parent] || parent == t.ID {
			parent = ""
		}
		children[parent] = append(children[parent], t)
	}
	var out []api.Summary
	var depths []int
	seen := map[string]bool{} // by path: damaged folders may name each other as parents
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, t := range children[parent] {
			if seen[t.Path] {
				continue
			}
			seen[t.Path] = true
			out, depths = append(out, t), append(depths, depth)
			walk(t.ID, depth+1)
		}
	}
	walk("", 0)
	for _, t := range items { // those in a circle
		if !seen[t.Path] {
			seen[t.Path] = true
			out, depths = append(out, t), append(depths, 0)
		}
	}
	return out, depths
}
