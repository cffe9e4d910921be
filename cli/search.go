package cli

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

const (
	firstHits = 100 // when no limit was asked for
)

func (a *App) searchCommand() *cobra.Command {
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
		Args: count(1, -1, "roost search QUERY"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Text = strings.Join(args, " ")
			f := &q.Filter
			var err error
			if f.Since, f.Until, err = a.span("roost search", since, until); err != nil {
				return err
			}
			f.Workspace = a.folder(f.Workspace)
			q.In = list(in)
			for _, scope := range q.In {
				if !slices.Contains(api.Scopes, scope) {
					return usage("roost search --in "+scope, "there is no such place",
						"roost search --in "+strings.Join(api.Scopes, ",")+" QUERY")
				}
			}
			if f.Limit < 0 {
				return usage("roost search --limit", "a limit cannot be negative", "roost search --limit 20 QUERY")
			}
			if f.Status != "" && !slices.Contains(statuses, f.Status) {
				return usage("roost search --status "+f.Status, "there is no such status",
					"roost search --status "+strings.Join(statuses, "|")+" QUERY")
			}
			if f.MinCost, err = dollarsFlag("roost search QUERY", "min-cost", minCost); err != nil {
				return err
			}
			if f.MaxCost, err = dollarsFlag("roost search QUERY", "max-cost", maxCost); err != nil {
				return err
			}
			if a.OutTTY && !a.flags.json && !cmd.Flags().Changed("limit") {
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
	complete(cmd, "in", words(api.Scopes...))
	complete(cmd, "status", words(statuses...))
	complete(cmd, "source", a.sourceNames)
	complete(cmd, "workspace", folders)
	for _, name := range []string{"since", "until", "limit", "cursor", "tag", "model", "min-cost", "max-cost", "tool"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *App) search(cmd *cobra.Command, q api.SearchQuery) error {
	return a.connect(cmd.Context(), func(c *client.Client) error {
		query := q.Filter.Query()
		query.Set("q", q.Text)
		query.Set("with", "names,found")
		set(query, "in", strings.Join(q.In, ","))
		set(query, "tool", q.Tool)
		set(query, "file", q.File)
		got, err := a.pages(cmd.Context(), c, "/v1/search", query, q.Filter.Limit)
		if badCursor(err) {
			return usage("roost search --cursor "+q.Filter.Cursor, "no search gave that cursor",
				"roost search QUERY  # its last line names the next one")
		}
		if err != nil {
			return err
		}
		for _, note := range got.found.Notes {
			a.warn(note)
		}
		for _, src := range got.found.Sources {
			if why := unreachable(src); why != "" {
				a.warn(src.Path + " (" + src.Name + ")" + why)
			}
		}
		for _, lost := range got.found.Unread {
			a.warn("not looked through: " + lost.File + ": " + lost.Problem)
		}
		if a.flags.json {
			return a.printRaw(got.doc())
		}
		hits, err := decoded[api.Hit](got.items)
		if err != nil {
			return err
		}
		if len(hits) == 0 {
			a.noSource(q.Filter.Source, got.found.Sources)
		}
		return a.showHits(cmd, hits, got)
	})
}

// showHits prints hits below their tasks.
func (a *App) showHits(cmd *cobra.Command, hits []api.Hit, got listed) error {
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
		style, out := a.outStyle(), bufio.NewWriter(a.Out)
		last := ""
		for _, h := range hits {
			if key(h) != last {
				last = key(h)
				head := fmt.Sprintf("%s  %s  %s", display.OneLine(got.names[last]), a.age(h.Task.TS),
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
		a.say("open one: roost show %s%s --tail 5 --before %d", got.names[key(first)], flag, first.Number+3)
	}
	line := fmt.Sprintf("%d hit%s in %d of %d task%s", len(hits), plural(len(hits)), len(tasks), got.found.Tasks, plural(got.found.Tasks))
	if got.next != "" {
		line += "; more: " + nextPage(cmd, got.next)
	}
	a.say("%s", line)
	return nil
}
