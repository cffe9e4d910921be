package tasks

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
)

// printBranches draws the tree of a task's branches.
func (a *commands) printBranches(tree api.BranchTree) error {
	if f := tree.Forked; f != nil {
		if err := a.Println(fmt.Sprintf("forked from %s at #%d of %s", display.OneLine(f.Source+":"+f.ID), f.At, f.Branch)); err != nil {
			return err
		}
	}
	return a.branchesBelow(tree.Items, "", 0)
}

// branchesBelow prints the branches that leave a branch and, indented, those that leave them.
func (a *commands) branchesBelow(all []api.BranchRow, parent string, depth int) error {
	for _, b := range all {
		if b.Parent != parent {
			continue
		}
		line := strings.Repeat("  ", depth) + display.OneLine(b.Name) + "  " + app.MessagesText(b.All, 0)
		if b.Parent != "" {
			line += fmt.Sprintf("; leaves %s behind #%d, %d of its own", b.Parent, b.From, b.Apart.UI)
			if b.First != nil {
				line += ", from " + app.RowText(*b.First)
			}
			line += "; left by " + leftBy(b)
			if b.Left != nil {
				line += " " + a.When(b.Left)
			}
		} else if b.Last != nil {
			line += "; at " + app.RowText(*b.Last)
		}
		if err := a.Println(line); err != nil {
			return err
		}
		if err := a.branchesBelow(all, b.Name, depth+1); err != nil {
			return err
		}
	}
	if depth == 0 && len(all) > 1 {
		a.Say("go on with one: roost resume ID --branch NAME; a new task from one: roost fork ID --branch NAME")
	}
	return nil
}

func leftBy(b api.BranchRow) string {
	text := map[string]string{"remove": "a deleted message", "branch": "going to another branch", "edit": "an edit"}[b.Why]
	if text == "" {
		text = "a " + display.OneLine(b.Why)
	}
	if b.By != "" {
		text += " in " + display.OneLine(b.By)
	}
	return text
}
