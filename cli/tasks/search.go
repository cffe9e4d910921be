package tasks

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/view"
)

const (
	firstHits  = 100 // hits of a search without a limit
	hitsOfTask = 3   // of one task
	lowScreen  = 40  // a terminal of fewer lines gets one hit less for each task

	besideHits = 6    // lines of a search beside its tasks: how to open a hit, the sum, how to see more, the next prompt
	mostAsked  = 1000 // largest number of hits in one request

	longestWord  = 13 // columns: the speaker
	longestTitle = 100
)

func (a *commands) searchCommand() *cobra.Command {
	var q api.SearchQuery
	f := &q.Filter
	cmd := help.Command("search", func(cmd *cobra.Command, args []string) error {
		q.Text, f.Workspace = strings.Join(args, " "), a.GivenFolder(f.Workspace)
		switch each := cmd.Flags().Changed("each"); {
		case each:
		case a.Flags.JSON:
			q.Each = 0
		case a.OutTTY && a.Rows(0) < lowScreen:
			q.Each--
		}
		return a.search(cmd, q)
	})
	fl := cmd.Flags()
	app.Checked(fl, "in", "only in these `places`: ui, api, tool, path, joined by commas", func(text string) error {
		q.In = config.List(text)
		if slices.ContainsFunc(q.In, func(scope string) bool { return !slices.Contains(api.Scopes, scope) }) {
			return &failure.ValueError{Why: "there is no such place", Example: strings.Join(api.Scopes, ",")}
		}
		return nil
	})
	fl.StringVar(&q.Tool, "tool", "", "only tasks in which this `tool` was called: read_file")
	fl.StringVar(&q.File, "file", "", "only tasks in which a tool was asked for a `path` that holds this")
	app.OneOf(cmd, &f.Sort, "sort", api.SortBest, "`order` of the tasks: best, or new", api.SortBest, api.SortNew)
	app.Number(fl, &q.Each, "each", hitsOfTask, 0, 0, "20", "at most this many hits of one task (0 = all, as with --json)")
	app.Number(fl, &f.Limit, "limit", firstHits, 0, 0, "20", "at most this many hits (0 = all; on a terminal as many as fit)")
	a.addFilter(cmd, f)
	app.Complete(cmd, "in", app.Words(api.Scopes...))
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
		if q.Each > 0 {
			query.Set("each", strconv.Itoa(q.Each))
		}
		var got app.Listed
		var err error
		if a.OutTTY && !a.Flags.JSON && !cmd.Flags().Changed("limit") && q.Each > 0 {
			got, err = a.screenful(cmd.Context(), c, query, q.Each)
		} else {
			got, err = a.Pages(cmd.Context(), c, "/v1/search", query, q.Filter.Limit)
		}
		if app.BadCursor(err) {
			return failure.Usage("roost search --cursor "+q.Filter.Cursor, "no search in this order gave that cursor",
				"roost search QUERY  # its last line names the next one")
		}
		for _, note := range got.Found.Notes {
			a.Warn(note)
		}
		a.WarnUnreachable(got.Found.Sources)
		for _, lost := range got.Found.Unread {
			a.Warn("not looked through: " + lost.File + ": " + lost.Problem)
		}
		return app.ShowList(a.App, got, err, func(hits []api.Hit) {
			if len(hits) == 0 {
				a.noSource(q.Filter.Source, got.Found.Sources)
			}
			a.showHits(cmd, q.Text, hits, got)
		})
	})
}

// screenful reads pages of tasks until the screen is full.
func (a *commands) screenful(ctx context.Context, c *client.Client, query url.Values, each int) (out app.Listed, err error) {
	ctx, shown := a.Watched(ctx)
	defer shown()
	out.Next = query.Get("cursor")
	room := a.Rows(besideHits)
	most := each + 2 // lines of a task: its title, its hits, how many more
	for more := true; more && (room >= most || len(out.Items) == 0); more = out.Next != "" {
		tasks, before := max(room/most, 1), len(out.Items)
		query.Set("tasks", strconv.Itoa(tasks))
		query.Set("limit", strconv.Itoa(min(tasks*each, mostAsked)))
		if err := out.ReadPage(ctx, c, "/v1/search", query); err != nil {
			return out, err
		}
		hits, err := app.All[api.Hit](app.Listed{Items: out.Items[before:]}, nil)
		if err != nil || len(hits) == 0 {
			return out, err
		}
		for _, block := range byTask(hits) {
			if room -= 1 + len(block); out.Found.Hits[block[0].Task.Key()] > len(block) {
				room--
			}
		}
	}
	return out, nil
}

// byTask splits hits where another task begins.
func byTask(hits []api.Hit) (blocks [][]api.Hit) {
	for i, h := range hits {
		if i == 0 || h.Task.Key() != hits[i-1].Task.Key() {
			blocks = append(blocks, nil)
		}
		last := &blocks[len(blocks)-1]
		*last = append(*last, h)
	}
	return blocks
}

// showHits prints hits below their tasks.
func (a *commands) showHits(cmd *cobra.Command, text string, hits []api.Hit, got app.Listed) {
	width, style := a.Columns(), a.OutStyle()
	labels, terms := app.SourceLabels(got.Found.Sources), api.QueryTerms(text)
	blocks := byTask(hits)
	for _, block := range blocks {
		t := block[0].Task
		key := t.Key()
		head := fmt.Sprintf("%s  %s  %s  %s", display.OneLine(got.Names[key]), a.Age(t.TS), display.OneLine(labels[t.Source]),
			display.Cut(cmp.Or(display.OneLine(t.Title), "(no title)"), max(width, longestTitle)))
		a.Styled(view.Head, display.Cut(head, width))
		for _, h := range block {
			lead := fmt.Sprintf("  #%-5d %s  ", h.Number, display.Pad(display.Cut(whose(h), longestWord), longestWord))
			snippet := display.OneLine(h.Snippet)
			if width > 0 {
				room := max(width-display.Columns(lead), 1)
				snippet = display.Cut(nearer(snippet, terms, room), room)
			}
			fmt.Fprintln(a.Out, lead+marked(snippet, terms, style))
		}
		if more := got.Found.Hits[key] - len(block); more > 0 {
			a.Styled(view.Dim, fmt.Sprintf("  and %s more", app.Count(int64(more))))
		}
	}
	a.Flush()
	if len(hits) > 0 {
		a.Say("open one: %s", openHit(hits[0], got.Names, text))
	}
	a.Say("%s", sumOfHits(got.Found, len(blocks), len(hits)))
	if got.Next != "" {
		a.Say("more: %s", app.NextPage(cmd, got.Next))
	}
}

// nearer shortens a snippet at its beginning if room columns would not show the first place with a term.
func nearer(snippet string, terms []string, room int) string {
	parts := view.Marked(snippet, terms)
	if len(parts) < 2 || parts[0].Hit || display.Columns(parts[0].Text+parts[1].Text) < room {
		return snippet
	}
	at := len(parts[0].Text)
	from := at
	for from > 0 && display.Columns(snippet[from:at]) < room/4 {
		_, size := utf8.DecodeLastRuneInString(snippet[:from])
		from -= size
	}
	return "…" + snippet[from:]
}

// openHit returns the command that shows a task at a hit.
func openHit(h api.Hit, names map[string]string, text string) string {
	line := "roost show " + api.ShellWord(display.OneLine(names[h.Task.Key()]))
	if h.History == api.API {
		line += " --api"
	}
	return line + fmt.Sprintf(" --at %d --find %s", h.Number, api.ShellWord(text))
}

// sumOfHits describes how many hits a search found and how many were printed.
func sumOfHits(found api.Found, tasks, hits int) string {
	among := fmt.Sprintf("%s searched", api.Plural(found.Tasks, "task"))
	all := found.Total
	if all == nil {
		return fmt.Sprintf("%s in %s, and perhaps more; %s", api.Plural(hits, "hit"), api.Plural(tasks, "task"), among)
	}
	line := fmt.Sprintf("%s in %s", api.Plural(all.Hits, "hit"), api.Plural(all.Tasks, "task"))
	if tasks < all.Tasks {
		line += fmt.Sprintf(", %d of them shown", tasks)
	}
	return line + "; " + among
}

// tools maps the names of tools in the index to the names that models use.
var tools = map[string]string{
	"readfile": "read_file", "writetofile": "write_to_file", "newfilecreated": "write_to_file", "editedexistingfile": "edit",
	"applieddiff": "apply_diff", "applydiff": "apply_diff", "applypatch": "apply_patch", "searchfiles": "search_files",
	"listfiles": "list_files", "listfilestoplevel": "list_files", "listfilesrecursive": "list_files",
	"executecommand": "command", "usemcptool": "mcp", "askfollowupquestion": "question", "attemptcompletion": "result",
	"updatetodolist": "todo list", "newtask": "new_task", "switchmode": "switch_mode", "insertcontent": "insert",
	"searchandreplace": "replace", "replaceinfile": "replace", "codebasesearch": "search", "webfetch": "web_fetch",
	"finishtask": "finish_task", "editfile": "edit_file", "searchreplace": "replace",
}

// whose names the author of a hit's text, or the tool.
func whose(h api.Hit) string {
	if tool := display.OneLine(h.Tool); tool != "" {
		return cmp.Or(tools[tool], tool)
	}
	return display.OneLine(view.Speaker(h.Kind, h.Number))
}

// marked returns a line with the terms of a query marked.
func marked(line string, terms []string, style display.Style) string {
	var b strings.Builder
	for _, p := range view.Marked(line, terms) {
		if p.Hit {
			p.Text = style.Paint(view.Head, p.Text)
		}
		b.WriteString(p.Text)
	}
	return b.String()
}
