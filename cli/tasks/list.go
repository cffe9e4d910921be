// Package tasks holds the commands that look at tasks and change nothing: lists, searches, histories, runs, questions,
// files and costs; exports; and the picker, in which a person chooses a task. Text of a model or another tool reaches a
// terminal only as plain text.
package tasks

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

func (a *commands) listCommand() *cobra.Command {
	var f api.TaskFilter
	var group string
	cmd := help.Command("list", func(cmd *cobra.Command, _ []string) error {
		f.Workspace = a.GivenFolder(f.Workspace)
		// A first list discards nearly all that it reads. Collecting garbage less often saves 40 percent of its time for 11 MB
		// more at its peak (600 tasks, 340 MB).
		if a.Env("GOGC") == "" {
			debug.SetGCPercent(400)
		}
		return a.list(cmd, f, group != "")
	})
	fl := cmd.Flags()
	fl.StringVar(&f.Words, "query", "", "only tasks whose title holds these `words`")
	app.OneOf(cmd, &f.Sort, "sort", "newest", "`order`: newest, oldest, cost, tokens", app.Sorts...)
	app.Number(fl, &f.Limit, "limit", 0, 0, 0, "20", "at most this many (0 = all; without it, as many as fit on the screen)")
	fl.BoolVar(&f.Tree, "tree", false, "subtasks below their parents, and on one page with them")
	app.OneOf(cmd, &group, "group", "", "put the tasks of each `workspace` together", "workspace")
	fl.BoolVar(&f.Damaged, "damaged", false, "only damaged tasks")
	fl.BoolVar(&f.Empty, "empty", false, "also task folders without messages")
	a.addFilter(cmd, &f)
	return cmd
}

// besideList is the number of lines that a list takes beside its tasks: head, sum, how to see more, and the next
// prompt.
const besideList = 6

func (a *commands) list(cmd *cobra.Command, f api.TaskFilter, group bool) error {
	if f.Limit == 0 && a.OutTTY && !a.Flags.JSON && !group && !cmd.Flags().Changed("limit") { // a table cut off in the middle of a group would show a wrong sum
		f.Limit = a.Rows(besideList)
	}
	return a.Connect(cmd.Context(), func(c *client.Client) error {
		q := f.Query()
		if !a.Flags.JSON {
			q.Set("with", "names,found")
		}
		got, err := a.Pages(cmd.Context(), c, "/v1/tasks", q, f.Limit)
		if app.BadCursor(err) {
			return failure.Usage("roost list --cursor "+f.Cursor, "no list in this order gave that cursor",
				"roost list  # its last line names the next cursor")
		}
		return app.ShowList(a.App, got, err, func(items []api.Summary) { a.showList(cmd, items, got, f, group) })
	})
}

// showList prints a list for people.
func (a *commands) showList(cmd *cobra.Command, items []api.Summary, got app.Listed, f api.TaskFilter, group bool) {
	switch {
	case len(items) == 0:
		defer a.noSource(f.Source, got.Found.Sources)
	case group:
		a.grouped(items, f.Tree, got)
	case f.Tree:
		a.Table(items, api.DepthsOf(items), got.Names, got.Found.Sources)
	default:
		a.Table(items, make([]int, len(items)), got.Names, got.Found.Sources)
	}
	a.SumUp(got.Found, len(items))
	if got.Next != "" {
		a.Say("more: %s, or --limit 0 for all", app.NextPage(cmd, got.Next))
	}
}

// byWorkspace groups the tasks by folder, in the order in which each folder first occurs.
func byWorkspace(items []api.Summary) (groups [][]api.Summary) {
	for _, t := range items {
		i := slices.IndexFunc(groups, func(group []api.Summary) bool { return group[0].Workspace == t.Workspace })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// grouped prints a table for each folder, below a line with its sums.
func (a *commands) grouped(items []api.Summary, tree bool, got app.Listed) {
	for i, group := range byWorkspace(items) {
		var sum api.Usage
		for _, t := range group {
			sum = sum.Plus(t.Usage)
		}
		name := cmp.Or(display.OneLine(group[0].Workspace), "(no folder)")
		line := fmt.Sprintf("%s  %s, %s", name, api.Plural(len(group), "task"), a.Dollars(sum.Cost))
		line = strings.Repeat("\n", min(i, 1)) + a.OutStyle().Paint(view.Head, line) + "\n"
		fmt.Fprint(a.Out, line)
		depths := make([]int, len(group))
		if tree {
			depths = api.DepthsOf(group)
		}
		a.Table(group, depths, got.Names, got.Found.Sources)
	}
}

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands returns the commands of this package.
func Commands(app *app.App) []*cobra.Command {
	a := &commands{app}
	return []*cobra.Command{
		a.listCommand(),
		a.searchCommand(),
		a.picks(a.showCommand()),
		a.usageCommand(),
		a.picks(a.exportCommand()),
		a.filesCommand(),
		a.runsCommand(),
		a.questionsCommand(),
	}
}

// Pick lets a person choose one task. purpose is one word, for messages. folder is where a run of the task must work;
// "" = its own folder.
func Pick(ctx context.Context, a *app.App, purpose string) (id, folder string, err error) {
	return (&commands{a}).pick(ctx, purpose)
}
