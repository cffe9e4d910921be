package tasks

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

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
