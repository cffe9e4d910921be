package tasks

import (
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// byWorkspace puts the tasks of each folder together, in the order in which the
// folders come first.
func byWorkspace(items []api.Summary) [][]api.Summary {
	at := map[string]int{}
	var out [][]api.Summary
	for _, t := range items {
		i, ok := at[t.Workspace]
		if !ok {
			i = len(out)
			at[t.Workspace] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], t)
	}
	return out
}

// grouped prints a table for each folder, below a line that sums it up.
func (a *commands) grouped(items []api.Summary, tree bool, names map[string]string) error {
	for i, group := range byWorkspace(items) {
		var cost *money.USD
		for _, t := range group {
			if t.Usage.Cost != nil {
				sum := *t.Usage.Cost
				if cost != nil {
					sum += *cost
				}
				cost = &sum
			}
		}
		name := display.OneLine(group[0].Workspace)
		if name == "" {
			name = "(no folder)"
		}
		line := fmt.Sprintf("%s  %d task%s, %s", name, len(group), app.Plural(len(group)), app.Dollars(cost))
		if i > 0 {
			line = "\n" + a.OutStyle().Paint(view.Head, line)
		} else {
			line = a.OutStyle().Paint(view.Head, line)
		}
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return fmt.Errorf("print the list: %w", err)
		}
		depths := make([]int, len(group))
		if tree {
			group, depths = app.AsTree(group)
		}
		if err := a.Table(group, depths, names); err != nil {
			return err
		}
	}
	return nil
}
