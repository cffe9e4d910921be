package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/view"
)

// family is a task with its subtasks, as they are listed: each behind its parent.
type family struct {
	tasks  []store.Summary
	depths []int
}

// familyOf is a task and all that come from it, empty ones too: a subtask that was
// saved and has said nothing yet is one.
func familyOf(ctx context.Context, s *store.Store, ref store.Ref) (family, error) {
	got, err := s.List(ctx, store.Filter{Tree: true, Empty: true, Sort: "oldest"})
	if err != nil {
		return family{}, err
	}
	at := slices.IndexFunc(got.Items, func(t store.Summary) bool {
		return t.ID == ref.ID && (t.Path == ref.Dir || slices.Contains(t.Copies, ref.Dir))
	})
	if at < 0 {
		return family{}, fmt.Errorf("%w: %q", store.ErrNotFound, ref.ID)
	}
	to := at + 1
	for to < len(got.Items) && got.Depths[to] > got.Depths[at] {
		to++
	}
	return family{got.Items[at:to], got.Depths[at:to]}, nil
}

// costsBelow are the costs of each task of a tree together with its subtasks; nil where none
// of them is known, and where a task has none.
func costsBelow(tasks []store.Summary, depths []int) []*money.USD {
	out := make([]*money.USD, len(tasks))
	for i := range tasks {
		if i+1 == len(tasks) || depths[i+1] <= depths[i] {
			continue
		}
		for j := i; j < len(tasks) && (j == i || depths[j] > depths[i]); j++ {
			if c := tasks[j].Usage.Cost; c != nil {
				if out[i] == nil {
					out[i] = new(money.USD)
				}
				*out[i] += *c
			}
		}
	}
	return out
}

// branch is a task and its subtasks as JSON.
type branch struct {
	Task     store.Summary `json:"task"`
	Cost     *money.USD    `json:"cost"` // of all of them; null when nothing is known
	Children []branch      `json:"children"`
}

func (f family) branch() branch {
	all := costsBelow(f.tasks, f.depths)
	b := branch{Task: f.tasks[0], Cost: all[0], Children: []branch{}}
	if b.Cost == nil {
		b.Cost = f.tasks[0].Usage.Cost
	}
	for i := 1; i < len(f.tasks); {
		to := i + 1
		for to < len(f.tasks) && f.depths[to] > f.depths[i] {
			to++
		}
		b.Children = append(b.Children, family{f.tasks[i:to], f.depths[i:to]}.branch())
		i = to
	}
	return b
}

// showTree draws a task and its subtasks.
func (a *App) showTree(ctx context.Context, s *store.Store, ref store.Ref) error {
	f, err := familyOf(ctx, s, ref)
	if err != nil {
		return err
	}
	if a.flags.json {
		return encode(a.Out, f.branch(), false)
	}
	names, err := shortNames(ctx, s, f.tasks)
	if err != nil {
		return err
	}
	width, style := 0, a.outStyle()
	if a.OutTTY {
		width = a.Width
	}
	all := costsBelow(f.tasks, f.depths)
	out := bufio.NewWriter(a.Out)
	for i, t := range f.tasks {
		facts := []string{display.OneLine(names[t.Path]), status(t)}
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

// lead is the part of the tree's drawing that stands before a task.
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
