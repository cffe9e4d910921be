package tasks

import (
	"bufio"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// statuses are those that a task can have.
var statuses = []string{"queued", "running", "waiting", "delegated", "restoring", "interrupted", "completed", "failed", "cancelled", "idle"}

// screenful is how many tasks a terminal gets when no limit was asked for.
const screenful = 40

func (a *commands) listCommand() *cobra.Command {
	var f api.TaskFilter
	var since, until string
	var group, minCost, maxCost string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tasks of all sources, newest first",
		Long: "List the tasks of all sources, newest first. A status with ! is that of a damaged task: `roost\n" +
			"doctor ID` shows what is wrong with it. With * another program changed the task's files since Roost\n" +
			"worked on it; that is taken in when the task continues. ^ is a pinned task, which comes first.\n\n" +
			"Each is listed with the shortest beginning or end of its id that names it alone. A narrow terminal\n" +
			"gets fewer columns; in a pipe and with --json none is left out.",
		Args: failure.Arguments(0, 0, "roost list"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.Since, f.Until, err = a.span("roost list", since, until); err != nil {
				return err
			}
			f.Workspace = a.folder(f.Workspace)
			if f.MinCost, err = dollarsFlag("roost list", "min-cost", minCost); err != nil {
				return err
			}
			if f.MaxCost, err = dollarsFlag("roost list", "max-cost", maxCost); err != nil {
				return err
			}
			if f.Sort != "" && !slices.Contains(app.Sorts, f.Sort) {
				return failure.Usage("roost list --sort "+f.Sort, "there is no such order", "roost list --sort "+strings.Join(app.Sorts, "|"))
			}
			if f.Limit < 0 {
				return failure.Usage("roost list --limit", "a limit cannot be negative", "roost list --limit 20")
			}
			if f.Status != "" && !slices.Contains(statuses, f.Status) {
				return failure.Usage("roost list --status "+f.Status, "there is no such status", "roost list --status "+strings.Join(statuses, "|"))
			}
			if group != "" && group != "workspace" {
				return failure.Usage("roost list --group "+group, "there is no such grouping", "roost list --group workspace")
			}
			a.collectRarely()
			return a.list(cmd, f, group != "")
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Workspace, "workspace", "", "only tasks of this `folder`")
	fl.StringVar(&f.Words, "query", "", "only tasks whose title holds these `words`")
	fl.StringVar(&f.Status, "status", "", "only tasks with this `status`")
	fl.StringVar(&f.Source, "source", "", "only tasks of this `source`")
	fl.StringVar(&f.Model, "model", "", "only tasks whose model's name holds these `words`")
	fl.StringVar(&minCost, "min-cost", "", "only tasks that cost at least so many `dollars`")
	fl.StringVar(&maxCost, "max-cost", "", "only tasks that cost at most so many `dollars`; one of unknown cost is in neither")
	fl.StringVar(&f.Tag, "tag", "", "only tasks with this `tag`")
	fl.StringVar(&since, "since", "", "changed after this `time`: 2026-01-31, RFC 3339, or an age such as 7d")
	fl.StringVar(&until, "until", "", "changed before this `time`")
	fl.StringVar(&f.Sort, "sort", "newest", "`order`: newest, oldest, cost, tokens")
	fl.IntVar(&f.Limit, "limit", 0, "at most this many (0 = all; on a terminal a screenful, without --group)")
	fl.StringVar(&f.Cursor, "cursor", "", "go on where the last page ended")
	fl.BoolVar(&f.Tree, "tree", false, "subtasks below their parents, and on one page with them")
	fl.StringVar(&group, "group", "", "put the tasks of each `workspace` together")
	fl.BoolVar(&f.Damaged, "damaged", false, "only damaged tasks")
	fl.BoolVar(&f.Empty, "empty", false, "also task folders without messages")
	app.Complete(cmd, "group", app.Words("workspace"))
	app.Complete(cmd, "status", app.Words(statuses...))
	app.Complete(cmd, "sort", app.Words(app.Sorts...))
	app.Complete(cmd, "source", a.SourceNames)
	app.Complete(cmd, "workspace", app.Folders)
	for _, name := range []string{"tag", "query", "model", "min-cost", "max-cost", "since", "until", "limit", "cursor"} {
		app.Complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *commands) list(cmd *cobra.Command, f api.TaskFilter, group bool) error {
	if f.Limit == 0 && a.OutTTY && !a.Flags.JSON && !group && !cmd.Flags().Changed("limit") { // a part of a group has no sum
		f.Limit = screenful
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
		if a.Flags.JSON {
			return a.PrintRaw(got.Doc())
		}
		items, err := app.Decoded[api.Summary](got.Items)
		if err != nil {
			return err
		}
		return a.showList(cmd, items, got, f, group)
	})
}

// showList prints a list for people.
func (a *commands) showList(cmd *cobra.Command, items []api.Summary, got app.Listed, f api.TaskFilter, group bool) error {
	if len(items) > 0 {
		depths := make([]int, len(items))
		if f.Tree {
			depths = app.DepthsOf(items)
		}
		var err error
		if group {
			err = a.grouped(items, f.Tree, got.Names)
		} else {
			err = a.Table(items, depths, got.Names)
		}
		if err != nil {
			return err
		}
	}
	a.SumUp(got.Found, len(items))
	if got.Next != "" {
		a.Say("more: %s, or --limit 0 for all", app.NextPage(cmd, got.Next))
	}
	if len(items) == 0 {
		a.noSource(f.Source, got.Found.Sources)
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

// dollarsFlag reads an amount of money that a flag of a command was given; nil when
// text is empty.
func dollarsFlag(command, flag, text string) (*money.USD, error) {
	if text == "" {
		return nil, nil
	}
	usd, err := money.Parse(strings.TrimPrefix(text, "$"))
	if err != nil || usd < 0 {
		return nil, failure.Usage(command+" --"+flag+" "+text, "want an amount of US dollars such as 0.50", command+" --"+flag+" 0.50")
	}
	return &usd, nil
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

const (
	firstHits = 100 // when no limit was asked for
)

func (a *commands) searchCommand() *cobra.Command {
	var q api.SearchQuery
	var in, since, until, minCost, maxCost string
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find words in the messages of all tasks",
		Long: "Find messages that hold every word of the query, in any case, also inside words:\n" +
			"prompts, replies, reasoning, what tools were given and gave back, and paths. Words in\n" +
			"double quotes are one phrase: roost search '\"paint the fence\"'. Hits of the task that\n" +
			"changed last come first. Of one task those come first that hold the query as it was\n" +
			"typed, then those with its first word whole, then people's and models' words before what a tool\n" +
			"gave, then the earlier ones. Each has the number that show prints.\n\n" +
			"The text of tasks is kept in the catalogue (catalog.db in the cache folder), which may be\n" +
			"deleted. A task that it does not know as it is now is read, so nothing is missed. Up to\n" +
			"20 seconds a search also adds what it reads to the catalogue; what is left then is read\n" +
			"again, and added, by the next one.",
		Args: failure.Arguments(1, -1, "roost search QUERY"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Text = strings.Join(args, " ")
			f := &q.Filter
			var err error
			if f.Since, f.Until, err = a.span("roost search", since, until); err != nil {
				return err
			}
			f.Workspace = a.folder(f.Workspace)
			q.In = app.List(in)
			for _, scope := range q.In {
				if !slices.Contains(api.Scopes, scope) {
					return failure.Usage("roost search --in "+scope, "there is no such place",
						"roost search --in "+strings.Join(api.Scopes, ",")+" QUERY")
				}
			}
			if f.Limit < 0 {
				return failure.Usage("roost search --limit", "a limit cannot be negative", "roost search --limit 20 QUERY")
			}
			if f.Status != "" && !slices.Contains(statuses, f.Status) {
				return failure.Usage("roost search --status "+f.Status, "there is no such status",
					"roost search --status "+strings.Join(statuses, "|")+" QUERY")
			}
			if f.MinCost, err = dollarsFlag("roost search QUERY", "min-cost", minCost); err != nil {
				return err
			}
			if f.MaxCost, err = dollarsFlag("roost search QUERY", "max-cost", maxCost); err != nil {
				return err
			}
			if a.OutTTY && !a.Flags.JSON && !cmd.Flags().Changed("limit") {
				f.Limit = screenful
			}
			return a.search(cmd, q)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&in, "in", "", "only in these `places`: ui, api, tool, path, joined by commas")
	fl.StringVar(&q.Filter.Source, "source", "", "only tasks of this `source`")
	fl.StringVar(&q.Filter.Workspace, "workspace", "", "only tasks of this `folder`")
	fl.StringVar(&q.Filter.Status, "status", "", "only tasks with this `status`")
	fl.StringVar(&since, "since", "", "only tasks changed after this `time`: 2026-01-31, RFC 3339, or an age such as 7d")
	fl.StringVar(&until, "until", "", "only tasks changed before this `time`")
	fl.StringVar(&q.Filter.Tag, "tag", "", "only tasks with this `tag`")
	fl.StringVar(&q.Filter.Model, "model", "", "only tasks whose model's name holds these `words`")
	fl.StringVar(&minCost, "min-cost", "", "only tasks that cost this `AMOUNT` of US dollars or more")
	fl.StringVar(&maxCost, "max-cost", "", "only tasks that cost this `AMOUNT` or less")
	fl.StringVar(&q.Tool, "tool", "", "only tasks in which this `tool` was called: read_file")
	fl.StringVar(&q.File, "file", "", "only tasks in which a tool was asked for a `path` that holds this")
	fl.IntVar(&q.Filter.Limit, "limit", firstHits, "at most this many hits (0 = all; on a terminal a screenful)")
	fl.StringVar(&q.Filter.Cursor, "cursor", "", "go on where the last page ended")
	app.Complete(cmd, "in", app.Words(api.Scopes...))
	app.Complete(cmd, "status", app.Words(statuses...))
	app.Complete(cmd, "source", a.SourceNames)
	app.Complete(cmd, "workspace", app.Folders)
	for _, name := range []string{"since", "until", "limit", "cursor", "tag", "model", "min-cost", "max-cost", "tool"} {
		app.Complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *commands) search(cmd *cobra.Command, q api.SearchQuery) error {
	return a.Connect(cmd.Context(), func(c *client.Client) error {
		query := q.Filter.Query()
		query.Set("q", q.Text)
		query.Set("with", "names,found")
		app.SetQuery(query, "in", strings.Join(q.In, ","))
		app.SetQuery(query, "tool", q.Tool)
		app.SetQuery(query, "file", q.File)
		got, err := a.Pages(cmd.Context(), c, "/v1/search", query, q.Filter.Limit)
		if app.BadCursor(err) {
			return failure.Usage("roost search --cursor "+q.Filter.Cursor, "no search gave that cursor",
				"roost search QUERY  # its last line names the next one")
		}
		if err != nil {
			return err
		}
		for _, note := range got.Found.Notes {
			a.Warn(note)
		}
		for _, src := range got.Found.Sources {
			if why := app.Unreachable(src); why != "" {
				a.Warn(src.Path + " (" + src.Name + ")" + why)
			}
		}
		for _, lost := range got.Found.Unread {
			a.Warn("not looked through: " + lost.File + ": " + lost.Problem)
		}
		if a.Flags.JSON {
			return a.PrintRaw(got.Doc())
		}
		hits, err := app.Decoded[api.Hit](got.Items)
		if err != nil {
			return err
		}
		if len(hits) == 0 {
			a.noSource(q.Filter.Source, got.Found.Sources)
		}
		return a.showHits(cmd, hits, got)
	})
}

// showHits prints hits below their tasks.
func (a *commands) showHits(cmd *cobra.Command, hits []api.Hit, got app.Listed) error {
	key := func(h api.Hit) string { return h.Task.Source + ":" + h.Task.ID }
	var tasks []api.Summary
	for i, h := range hits {
		if i == 0 || key(hits[i-1]) != key(h) {
			tasks = append(tasks, h.Task)
		}
	}
	if len(tasks) > 0 {
		width := 0
		titleRoom := 60
		if a.OutTTY {
			width, titleRoom = a.Width, max(a.Width, 60)
		}
		style, out := a.OutStyle(), bufio.NewWriter(a.Out)
		last := ""
		for _, h := range hits {
			if key(h) != last {
				last = key(h)
				head := fmt.Sprintf("%s  %s  %s", display.OneLine(got.Names[last]), a.Age(h.Task.TS),
					display.Cut(display.OneLine(h.Task.Title), titleRoom))
				fmt.Fprintln(out, style.Paint(view.Head, display.Cut(head, width)))
			}
			line := fmt.Sprintf("  #%d %s %s: %s", h.Number, h.History, h.Kind, h.Snippet)
			fmt.Fprintln(out, display.Cut(display.OneLineIndented(line), width))
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("print the hits: %w", err)
		}
		first := hits[0]
		flag := ""
		if first.History == api.API {
			flag = " --api"
		}
		a.Say("open one: roost show %s%s --tail 5 --before %d", got.Names[key(first)], flag, first.Number+3)
	}
	line := fmt.Sprintf("%d hit%s in %d of %d task%s", len(hits), app.Plural(len(hits)), len(tasks), got.Found.Tasks, app.Plural(got.Found.Tasks))
	if got.Next != "" {
		line += "; more: " + app.NextPage(cmd, got.Next)
	}
	a.Say("%s", line)
	return nil
}
