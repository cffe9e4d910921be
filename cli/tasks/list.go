// Package tasks holds the commands that look at tasks and change nothing: lists, searches,
// histories, runs, questions, files and costs; exports; and the picker, in which a person
// chooses a task. What a model or another tool wrote reaches a terminal only as plain text.
package tasks

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
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
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// statuses are those that a task can have.
var statuses = []string{"queued", "running", "waiting", "delegated", "restoring", "interrupted", "completed", "failed", "cancelled", "idle"}

// filter is how the flags of a command choose tasks.
type filter struct {
	*api.TaskFilter
	since, until, minCost, maxCost string
}

// addTo adds the flags that list and search have in common.
func (f *filter) addTo(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.Workspace, "workspace", "", "only tasks of this `folder`")
	fl.StringVar(&f.Status, "status", "", "only tasks with this `status`")
	fl.StringVar(&f.Source, "source", "", "only tasks of this `source`: a tool (roo, cline, claude) or a name that roost sources prints")
	fl.StringVar(&f.Model, "model", "", "only tasks whose model's name holds these `words`")
	fl.StringVar(&f.minCost, "min-cost", "", "only tasks that cost this `AMOUNT` of US dollars or more")
	fl.StringVar(&f.maxCost, "max-cost", "", "only tasks that cost this `AMOUNT` or less; one of unknown cost is in neither")
	fl.StringVar(&f.Tag, "tag", "", "only tasks with this `tag`")
	fl.StringVar(&f.since, "since", "", "only tasks changed after this `time`: 2026-01-31, RFC 3339, or an age such as 7d")
	fl.StringVar(&f.until, "until", "", "only tasks changed before this `time`")
	fl.StringVar(&f.Cursor, "cursor", "", "go on where the last page ended")
	app.Complete(cmd, "status", app.Words(statuses...))
	app.Complete(cmd, "model", cobra.NoFileCompletions) // words of it
}

// read checks the flags and puts them into the filter. what follows the flags in the command line of an advice.
func (f *filter) read(a *commands, command, what string) (err error) {
	if f.Since, f.Until, err = a.span(command, f.since, f.until); err != nil {
		return err
	}
	f.Workspace = a.folder(f.Workspace)
	for _, cost := range []struct {
		to         **money.USD
		flag, text string
	}{{&f.MinCost, "min-cost", f.minCost}, {&f.MaxCost, "max-cost", f.maxCost}} {
		if cost.text == "" {
			continue
		}
		usd, err := money.Parse(strings.TrimPrefix(cost.text, "$"))
		if err != nil || usd < 0 {
			return failure.Usage(command+" --"+cost.flag+" "+cost.text, "want an amount of US dollars such as 0.50",
				command+" --"+cost.flag+" 0.50"+what)
		}
		*cost.to = &usd
	}
	if f.Limit < 0 {
		return failure.Usage(command+" --limit", "a limit cannot be negative", command+" --limit 20"+what)
	}
	return oneOf(command, "status", f.Status, "there is no such status", statuses, what)
}

// oneOf checks the value of a flag that takes one of some words, or nothing.
func oneOf(command, flag, word, why string, words []string, what string) error {
	if word == "" || slices.Contains(words, word) {
		return nil
	}
	command += " --" + flag + " "
	return failure.Usage(command+word, why, command+strings.Join(words, "|")+what)
}

func (a *commands) listCommand() *cobra.Command {
	f := filter{TaskFilter: &api.TaskFilter{}}
	var group string
	cmd := help.Command("list", func(cmd *cobra.Command, _ []string) error {
		if err := f.read(a, "roost list", ""); err != nil {
			return err
		}
		if err := oneOf("roost list", "sort", f.Sort, "there is no such order", app.Sorts, ""); err != nil {
			return err
		}
		if err := oneOf("roost list", "group", group, "there is no such grouping", []string{"workspace"}, ""); err != nil {
			return err
		}
		a.collectRarely()
		return a.list(cmd, *f.TaskFilter, group != "")
	})
	fl := cmd.Flags()
	fl.StringVar(&f.Words, "query", "", "only tasks whose title holds these `words`")
	fl.StringVar(&f.Sort, "sort", "newest", "`order`: newest, oldest, cost, tokens")
	fl.IntVar(&f.Limit, "limit", 0, "at most this many (0 = all; without it, as many as fit on the screen)")
	fl.BoolVar(&f.Tree, "tree", false, "subtasks below their parents, and on one page with them")
	fl.StringVar(&group, "group", "", "put the tasks of each `workspace` together")
	fl.BoolVar(&f.Damaged, "damaged", false, "only damaged tasks")
	fl.BoolVar(&f.Empty, "empty", false, "also task folders without messages")
	f.addTo(cmd)
	app.Complete(cmd, "group", app.Words("workspace"))
	app.Complete(cmd, "sort", app.Words(app.Sorts...))
	return cmd
}

// besideList is how many lines a list has beside its tasks: head, sum, how to see more, and the next prompt.
const besideList = 6

func (a *commands) list(cmd *cobra.Command, f api.TaskFilter, group bool) error {
	if f.Limit == 0 && a.OutTTY && !a.Flags.JSON && !group && !cmd.Flags().Changed("limit") { // a part of a group has no sum
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
		if err != nil {
			return err
		}
		return app.ShowList(a.App, got, func(items []api.Summary) error { return a.showList(cmd, items, got, f, group) })
	})
}

// showList prints a list for people.
func (a *commands) showList(cmd *cobra.Command, items []api.Summary, got app.Listed, f api.TaskFilter, group bool) error {
	var err error
	switch {
	case len(items) == 0:
		defer a.noSource(f.Source, got.Found.Sources)
	case group:
		err = a.grouped(items, f.Tree, got)
	case f.Tree:
		err = a.Table(items, app.DepthsOf(items), got.Names, got.Found.Sources)
	default:
		err = a.Table(items, make([]int, len(items)), got.Names, got.Found.Sources)
	}
	if err != nil {
		return err
	}
	a.SumUp(got.Found, len(items))
	if got.Next != "" {
		a.Say("more: %s, or --limit 0 for all", app.NextPage(cmd, got.Next))
	}
	return nil
}

// noSource is the message when nothing was found because no source has the given name.
func (a *commands) noSource(name string, sources []api.SourceState) {
	if name == "" || slices.ContainsFunc(sources, func(s api.SourceState) bool { return name == s.Name || name == s.Tool }) {
		return
	}
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
	}
	a.Say("no source is called %s; there are: %s", name, strings.Join(names, ", "))
}

// span parses the times of --since and --until.
func (a *commands) span(command, since, until string) (from, to int64, err error) {
	if from, err = a.moment(command+" --since", since); err == nil {
		to, err = a.moment(command+" --until", until)
	}
	return from, to, err
}

// folder is what --workspace names; "" stays.
func (a *commands) folder(given string) string {
	if given == "" {
		return ""
	}
	return a.Abs(given)
}

// moment reads a time as Unix milliseconds; 0 when text is empty.
func (a *commands) moment(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if at, ok := api.Moment(text, a.Now()); ok {
		return at, nil
	}
	return 0, failure.Usage(flag+" "+text, "it is neither a time nor an age", flag+" 7d")
}

// collectRarely runs the garbage collector less often than usual: a first list discards
// nearly all that it reads, and takes 40 percent less time for 11 MB more at its peak
// (600 tasks, 340 MB).
func (a *commands) collectRarely() {
	if a.Env("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

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
func (a *commands) grouped(items []api.Summary, tree bool, got app.Listed) error {
	for i, group := range byWorkspace(items) {
		var cost *money.USD
		for _, t := range group {
			if t.Usage.Cost != nil {
				cost = cmp.Or(cost, new(money.USD))
				*cost += *t.Usage.Cost
			}
		}
		name := cmp.Or(display.OneLine(group[0].Workspace), "(no folder)")
		line := fmt.Sprintf("%s  %d task%s, %s", name, len(group), view.Plural(len(group)), a.Dollars(cost))
		line = strings.Repeat("\n", min(i, 1)) + a.OutStyle().Paint(view.Head, line) + "\n"
		if _, err := io.WriteString(a.Out, line); err != nil {
			return fmt.Errorf("print the list: %w", err)
		}
		depths := make([]int, len(group))
		if tree {
			depths = app.DepthsOf(group)
		}
		if err := a.Table(group, depths, got.Names, got.Found.Sources); err != nil {
			return err
		}
	}
	return nil
}

// drawTree prints a family.
func (a *commands) drawTree(f api.Family, names map[string]string) error {
	width, style := a.Columns(), a.OutStyle()
	all := api.CostsBelow(f.Tasks, f.Depths)
	out := bufio.NewWriter(a.Out)
	for i, t := range f.Tasks {
		facts := []string{display.OneLine(names[app.KeyOf(t)]), app.Status(t)}
		if t.Mode != "" {
			facts = append(facts, display.OneLine(t.Mode))
		}
		if t.Usage.Cost != nil {
			facts = append(facts, a.Dollars(t.Usage.Cost))
		}
		if all[i] != nil {
			facts = append(facts, a.Dollars(all[i])+" with its subtasks")
		}
		title := cmp.Or(display.Cut(display.OneLine(t.Title), 60), "(no words yet)")
		line := app.Lead(f.Depths, i) + strings.Join(facts, " · ") + "  " + title
		fmt.Fprintln(out, style.Paint(app.StyleOf(t), display.Cut(line, width)))
	}
	return app.Flushed(out)
}

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands are the commands of this package.
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

// Welcome is roost without a command: on a terminal the picker, else help.
func Welcome(a *app.App, cmd *cobra.Command) error { return (&commands{a}).welcome(cmd) }

// Pick lets a person choose one task. purpose is one word, for messages. folder is where a run of it is to work; "" =
// where the task says.
func Pick(ctx context.Context, a *app.App, purpose string) (id, folder string, err error) {
	return (&commands{a}).pick(ctx, purpose)
}
