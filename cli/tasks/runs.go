package tasks

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/view"
)

// runStates are the states of a run.
var runStates = []string{"queued", "running", "waiting", "completed", "failed", "cancelled", "interrupted"}

func (a *commands) runsCommand() *cobra.Command {
	var state, cursor string
	var limit int
	cmd := help.Command("runs", func(cmd *cobra.Command, args []string) error {
		query, path := url.Values{}, "/v1/runs"
		if len(args) > 0 {
			path = app.PathOf(args[0], "runs")
			if state != "" || cmd.Flags().Changed("cursor") || cmd.Flags().Changed("limit") {
				return failure.Usage("roost runs ID", "--state, --limit and --cursor are for the runs of all tasks", "roost runs "+api.ShellWord(args[0]))
			}
		} else {
			query.Set("limit", strconv.Itoa(limit))
			app.SetQuery(query, "state", state)
			app.SetQuery(query, "cursor", cursor)
		}
		return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
			return app.DocumentOf(cmd.Context(), a.App, c, path, query, func(p api.Page[api.Run]) {
				more := ""
				if p.Next != nil && len(args) == 0 {
					more = app.NextPage(cmd, *p.Next)
				}
				a.showRuns(p, more, a.ShortIDs(cmd.Context(), c))
			})
		})
	})
	fl := cmd.Flags()
	app.OneOf(cmd, &state, "state", "", "only runs in this `state`", runStates...)
	app.Number(fl, &limit, "limit", 100, 1, 1000, "20", "at most this many")
	fl.StringVar(&cursor, "cursor", "", "go on where the last page ended")
	return cmd
}

// showRuns prints a page of runs; more is the command for the next page, "" on the last one. The ids of runs are for
// programs: a terminal gets them with -v.
func (a *commands) showRuns(p api.Page[api.Run], more string, short func(string) string) {
	if len(p.Items) == 0 {
		a.Say("no runs")
		return
	}
	width := a.Columns()
	rows, styles := [][]string{{"TASK", "STATE", "AGE", "TURNS", "COST", "RUN", ""}}, []view.Style{view.Dim}
	for _, r := range p.Items {
		state := r.State
		if r.Outcome != "" && r.Outcome != r.State {
			state += "/" + r.Outcome
		}
		note := ""
		switch {
		case r.State == "queued" && r.Position > 0:
			note = fmt.Sprintf("number %d in the queue", r.Position)
		case r.Question != "":
			note = "waits for an answer: roost answer " + api.ShellWord(short(r.Task))
		case r.Reason != "":
			note = display.Cut(display.OneLine(r.Reason), 60)
		}
		rows = append(rows, []string{display.OneLine(short(r.Task)), state, a.Age(api.Millis(r.StartedAt, r.QueuedAt)),
			app.Count(int64(r.Turns)), app.Cents(r.Cost), display.OneLine(r.ID), note})
		styles = append(styles, map[string]view.Style{"waiting": view.Asked, "failed": view.Bad}[r.State])
	}
	if width > 0 && !a.Flags.Verbose {
		for i, row := range rows {
			rows[i] = slices.Delete(row, 5, 6)
		}
	}
	a.Sheet(rows, styles, 2, 5, width)
	if more != "" {
		more = "; more: " + more
	}
	a.Say("%s%s", api.Plural(len(p.Items), "run"), more)
}

func (a *commands) questionsCommand() *cobra.Command {
	return help.Command("questions", a.ConnectedEngine(func(ctx context.Context, c *client.Client, args []string) error {
		query := url.Values{}
		app.SetQuery(query, "task", append(args, "")[0])
		return app.DocumentOf(ctx, a.App, c, "/v1/questions", query, a.showQuestions)
	}))
}

func (a *commands) showQuestions(p api.Page[api.Question]) {
	if len(p.Items) == 0 {
		a.Say("no task asks anything")
		return
	}
	for i, q := range p.Items {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		a.question(q)
	}
	a.Flush()
	a.Say("%s; answer one: roost answer ID --yes, --no, --choice N or \"words\"", api.Plural(len(p.Items), "open question"))
}

// question prints a whole question: the user agrees to all of it.
func (a *commands) question(q api.Question) {
	title := display.Cut(display.OneLine(q.Title), 60)
	a.Styled(view.Head, display.OneLine(q.ID)+"  "+a.Age(api.Millis(&q.At))+"  "+display.OneLine(q.Kind)+"  "+title)
	for _, text := range app.Wrap(display.Safe(q.Text), a.Columns()) {
		a.Styled(view.Asked, "  "+text)
	}
	for i, c := range q.Choices {
		a.Styled(view.Asked, fmt.Sprintf("  %d. %s%s", i+1, display.OneLine(c), display.InMode(q.QuestionOpened, i)))
	}
	if q.Always != "" {
		a.Styled(view.Dim, "  --always allows "+display.OneLine(q.Always))
	}
	if q.Diff != "" && a.Flags.Verbose {
		for _, text := range app.Wrap(display.Safe(q.Diff), 0) {
			a.Styled(view.DiffStyle(text), "  "+text)
		}
	} else if q.Diff != "" {
		a.Styled(view.Dim, "  it comes with a diff: roost questions -v "+api.ShellWord(q.Task))
	}
}

func (a *commands) usageCommand() *cobra.Command {
	var f api.TaskFilter
	var by string
	groupings := append([]string{"folder"}, api.Each(api.Groupings, func(g api.Grouping) string { return string(g) })...)
	cmd := help.Command("usage", func(cmd *cobra.Command, _ []string) error {
		if by == "folder" {
			by = string(api.ByWorkspace)
		}
		f.Workspace = a.GivenFolder(f.Workspace)
		q := f.Query()
		q.Set("by", by)
		return a.Connect(cmd.Context(), func(c *client.Client) error {
			return a.Paged(cmd.Context(), func() error {
				return app.DocumentOf(cmd.Context(), a.App, c, "/v1/usage", q, a.showSpending)
			})
		})
	})
	fl := cmd.Flags()
	app.OneOf(cmd, &by, "by", "day", "`group` by day, week, month, folder, model, task or tool", groupings...)
	a.Moment(fl, &f.Since, "since", "requests from this `time` on: 2026-01-31, RFC 3339, or an age such as 7d")
	a.Moment(fl, &f.Until, "until", "requests before this `time`")
	fl.StringVar(&f.Source, "source", "", "only tasks of this `source`")
	fl.StringVar(&f.Workspace, "workspace", "", "only tasks of this `folder`")
	return cmd
}

// unnamed is the name of a group without a key.
var unnamed = map[api.Grouping]string{
	api.ByDay:       "(no time)",
	api.ByWeek:      "(no time)",
	api.ByMonth:     "(no time)",
	api.ByModel:     "(model not known)",
	api.ByWorkspace: "(no folder)",
	api.ByTask:      "(no id)",
	api.ByTool:      "(no tool)",
}

// showSpending prints a line for each group, the sum of each month below its days, and the total.
func (a *commands) showSpending(s api.Totals) {
	if len(s.Items) == 0 {
		a.Say("nothing was spent")
		return
	}
	head := strings.ToUpper(string(s.By))
	if s.By == api.ByWorkspace {
		head = "FOLDER"
	}
	rows := [][]string{{head, "TASKS", "REQUESTS", "IN", "OUT", "CACHE W", "CACHE R", "COST"}}
	styles, notes := []view.Style{view.Dim}, []string{""}
	add := func(row []string, how view.Style, note string) {
		rows, styles, notes = append(rows, row), append(styles, how), append(notes, note)
	}
	month := api.SpendingGroup{}
	for i, g := range s.Items {
		note := ""
		if s.By == api.ByTask {
			note = a.taskNote(g)
		}
		add(a.spendingRow(s.By, g), view.Plain, note)
		if s.By != api.ByDay || g.Key == "" {
			continue
		}
		month.Key = g.Key[:len("2006-01")]
		month.Requests += g.Requests
		month.Usage = month.Usage.Plus(g.Usage)
		if i == len(s.Items)-1 || !strings.HasPrefix(s.Items[i+1].Key, month.Key) {
			row := a.spendingRow(s.By, month)
			row[1] = "" // a task that worked on two days is one task
			add(row, view.Head, "")
			month = api.SpendingGroup{}
		}
	}
	add(a.spendingRow(s.By, s.Total), view.Head, "")
	if a.Flags.Verbose {
		alignCosts(rows)
	}
	width := a.Columns()
	rows, widths := narrow(rows, app.Widths(rows), width)
	for n, row := range rows {
		line := app.Cells(row, widths, 1, len(row))
		if notes[n] != "" {
			line = display.Cut(line+notes[n], width)
		}
		a.Styled(styles[n], line)
	}
	a.Flush()
	if s.Total.Unpriced > 0 {
		a.Say("%s without a known price: what they cost is not in the sums", countOf(s.Total.Unpriced, "request"))
	}
}

// leastName is the number of columns that a group's name keeps in a narrow terminal while other columns can be left
// out.
const leastName = 16

// narrow fits a table of costs into a terminal: it leaves out the columns of the cache, and
// cuts names. Width 0 means no terminal.
func narrow(rows [][]string, widths []int, width int) ([][]string, []int) {
	rest := func() (all int) {
		for _, w := range widths[1:] {
			all += len("  ") + w
		}
		return all
	}
	if width == 0 || widths[0]+rest() <= width {
		return rows, widths
	}
	if min(widths[0], leastName)+rest() > width {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 5, 7)
		}
		widths = slices.Delete(widths, 5, 7)
	}
	widths[0] = min(widths[0], max(width-rest(), leastName))
	for i, row := range rows {
		if strings.HasPrefix(row[0], "/") || strings.HasPrefix(row[0], "~") { // the end of a path says more
			rows[i][0] = app.CutStart(row[0], widths[0])
		}
		rows[i][0] = display.Cut(rows[i][0], widths[0])
	}
	return rows, widths
}

// alignCosts gives the amounts in the last column the same number of digits.
func alignCosts(rows [][]string) {
	digits := func(cell string) int {
		_, fraction, _ := strings.Cut(cell, ".")
		return len(fraction)
	}
	most := 0
	for _, row := range rows[1:] {
		most = max(most, digits(row[len(row)-1]))
	}
	for _, row := range rows[1:] {
		if cell := &row[len(row)-1]; strings.HasPrefix(*cell, "$") {
			*cell += strings.Repeat("0", most-digits(*cell))
		}
	}
}

func (a *commands) spendingRow(by api.Grouping, g api.SpendingGroup) []string {
	u := g.Usage
	name := display.OneLine(g.Key)
	if by == api.ByWorkspace {
		name = a.Folder(name)
	}
	return []string{cmp.Or(name, unnamed[by]), app.Count(int64(g.Tasks)), app.Count(int64(g.Requests)), app.Count(u.TokensIn),
		app.Count(u.TokensOut), app.Count(u.CacheWrites), app.Count(u.CacheReads), a.Dollars(u.Cost)}
}

// taskNote returns a task's title, and its cost with its subtasks.
func (a *commands) taskNote(g api.SpendingGroup) string {
	note := "  " + display.Cut(display.OneLine(g.Title), 50)
	if g.WithChildren != nil {
		note += " (with subtasks " + a.Dollars(g.WithChildren.Cost) + ")"
	}
	return note
}
