package tasks

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace"
)

func (a *commands) usageCommand() *cobra.Command {
	var f api.TaskFilter
	var by, since, until string
	var groupings []string
	for _, g := range api.Groupings {
		groupings = append(groupings, string(g))
	}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Tokens and cost, by day, model, workspace, task or tool",
		Long: "What all tasks spent, also in parts that were rewound, by day, model, workspace,\n" +
			"task or tool. Subtasks count once, as tasks of their own. The groups add up to the\n" +
			"total, and the total equals the costs in `list` and `show`, to the millionth of a dollar.\n\n" +
			"--since and --until look at the request, not at the task. A request's cost is shared\n" +
			"by the tools that its reply called.",
		Args: failure.Arguments(0, 0, "roost usage"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := oneOf("roost usage", "by", by, "there is no such grouping", groupings, "")
			if err != nil {
				return err
			}
			if f.Since, f.Until, err = a.span("roost usage", since, until); err != nil {
				return err
			}
			f.Workspace = a.folder(f.Workspace)
			q := f.Query()
			q.Set("by", by)
			return a.Connect(cmd.Context(), func(c *client.Client) error {
				return app.DocumentOf(cmd.Context(), a.App, c, "/v1/usage", q, a.showSpending)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&by, "by", "day", "`group` by day, model, workspace, task or tool")
	fl.StringVar(&since, "since", "", "requests from this `time` on: 2026-01-31, RFC 3339, or an age such as 7d")
	fl.StringVar(&until, "until", "", "requests before this `time`")
	fl.StringVar(&f.Source, "source", "", "only tasks of this `source`")
	fl.StringVar(&f.Workspace, "workspace", "", "only tasks of this `folder`")
	app.Complete(cmd, "by", app.Words(groupings...))
	app.Complete(cmd, "source", a.SourceNames)
	app.Complete(cmd, "workspace", app.Folders)
	app.NoFiles(cmd, "since", "until")
	return cmd
}

// unnamed is what a group without a key is called.
var unnamed = map[api.Grouping]string{
	api.ByDay:       "(no time)",
	api.ByModel:     "(model not known)",
	api.ByWorkspace: "(no folder)",
	api.ByTask:      "(no id)",
	api.ByTool:      "(no tool)",
}

// showSpending prints one line a group, then the total. Costs have all their
// digits: rounded ones would not add up.
func (a *commands) showSpending(s api.Totals) error {
	if len(s.Items) == 0 {
		a.Say("nothing was spent")
		return nil
	}
	style := a.OutStyle()
	rows := [][]string{{strings.ToUpper(string(s.By)), "TASKS", "REQUESTS", "IN", "OUT", "CACHE W", "CACHE R", "COST"}}
	for _, g := range append(slices.Clone(s.Items), s.Total) {
		rows = append(rows, spendingRow(s.By, g))
	}
	alignCosts(rows)
	width := a.Columns()
	rows, widths := narrow(rows, app.Widths(rows), width)
	out := bufio.NewWriter(a.Out)
	for n, row := range rows {
		line := app.Cells(row, widths, 1, len(row))
		if s.By == api.ByTask && n > 0 && n < len(rows)-1 {
			line = display.Cut(line+taskNote(s.Items[n-1]), width)
		}
		how := view.Plain
		switch n {
		case 0:
			how = view.Dim
		case len(rows) - 1:
			how = view.Head
		}
		fmt.Fprintln(out, style.Paint(how, line))
	}
	if s.Total.Unpriced > 0 {
		a.Say("%d request%s without a known price: what they cost is not in the sums", s.Total.Unpriced, app.Plural(s.Total.Unpriced))
	}
	return app.Flushed(out)
}

// leastName is how many columns a group's name gets in a narrow terminal, as long as there is
// something else to leave out.
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
	for i := range rows {
		rows[i][0] = display.Cut(rows[i][0], widths[0])
	}
	return rows, widths
}

// alignCosts gives the amounts in the last column as many digits as the longest has.
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

func spendingRow(by api.Grouping, g api.SpendingGroup) []string {
	u := g.Usage
	return []string{cmp.Or(display.OneLine(g.Key), unnamed[by]), fmt.Sprint(g.Tasks), fmt.Sprint(g.Requests), fmt.Sprint(u.TokensIn), fmt.Sprint(u.TokensOut),
		fmt.Sprint(u.CacheWrites), fmt.Sprint(u.CacheReads), app.Dollars(u.Cost)}
}

// taskNote is a task's title, and what it spent with its subtasks.
func taskNote(g api.SpendingGroup) string {
	note := "  " + display.Cut(display.OneLine(g.Title), 50)
	if g.WithChildren != nil {
		note += " (with subtasks " + app.Dollars(g.WithChildren.Cost) + ")"
	}
	return note
}

func (a *commands) filesCommand() *cobra.Command {
	var dir, path string
	var check bool
	cmd := &cobra.Command{
		Use:   "files ID",
		Short: "Show which files the model of a task knows, and which changed since",
		Long: "Show which files the model of a task knows: those that it read or edited, and those that\n" +
			"you mentioned. Each is fresh, changed or missing, by its content: touching a file, or\n" +
			"changing it and back, is no change. For what another tool recorded, which keeps no\n" +
			"content, the file's time decides; --json names that in `inferred`.\n\n" +
			"Nothing is changed and nothing is sent. When the task continues, its model learns once\n" +
			"of what changed.",
		Example: "  roost files 0199\n" +
			"  roost files 0199 --check && echo all as the model knows them\n" +
			"  roost files 0199 --path src/main.go",
		Args: failure.Arguments(1, 1, "roost files ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.files(cmd.Context(), args[0], dir, path, check)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&check, "check", false, "exit with 15 when a file is changed or missing, and name it")
	fl.StringVar(&path, "path", "", "all that this task ever recorded of one `file`, rewound or not, and the checkpoints that hold it")
	fl.StringVarP(&dir, "workspace", "C", "", "the `folder` to look in (default: the task's workspace)")
	app.Complete(cmd, "workspace", app.Folders)
	return cmd
}

func (a *commands) files(ctx context.Context, id, dir, path string, check bool) error {
	return a.Connect(ctx, func(c *client.Client) error {
		q := url.Values{}
		if dir != "" {
			q.Set("workspace", a.Abs(dir))
		}
		app.SetQuery(q, "path", path)
		known := func() (doc json.RawMessage, err error) {
			_, err = c.Do(ctx, http.MethodGet, app.PathOf(id, "files"), q, nil, &doc)
			return doc, err
		}
		doc, err := known()
		var p *client.Problem
		if errors.As(err, &p) && p.Code == "file_not_known" && !filepath.IsAbs(path) {
			q.Set("path", a.Abs(path)) // a path from the current folder, and not from the workspace
			if again, failed := known(); failed == nil {
				doc, err = again, nil
			}
		}
		if err != nil {
			return err
		}
		var got struct {
			Items []api.KnownFile `json:"items"`
			Task  string          `json:"task_id"`
		}
		if err := json.Unmarshal(doc, &got); err != nil {
			return fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
		}
		if a.Flags.JSON {
			err = a.PrintRaw(doc)
		} else {
			err = a.printFiles(got.Task, got.Items)
		}
		if err != nil || !check {
			return err
		}
		return staleFailure(got.Task, got.Items)
	})
}

// staleFailure names the files that are not as the model knows them; nil when all are.
func staleFailure(id string, items []api.KnownFile) error {
	var stale []string
	for _, item := range items {
		if item.State != string(workspace.Unchanged) {
			stale = append(stale, display.OneLine(item.Path)+" ("+item.State+")")
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	names := strings.Join(stale[:min(len(stale), 20)], ", ")
	if len(stale) > 20 {
		names += fmt.Sprintf(" and %d more", len(stale)-20)
	}
	return &failure.Failure{Exit: failure.ExitDamaged, Code: "stale_files", Task: id,
		What: fmt.Sprintf("%d of %d files are not as the model of task %s knows them", len(stale), len(items), id),
		Why:  names, Try: "roost resume " + failure.ShellWord(id)}
}

// howKnown are the names of sources for people.
var howKnown = map[string]string{
	"read_tool":      "read",
	"file_mentioned": "mentioned",
	"roo_edited":     "edited by the agent",
	"user_edited":    "changed by others",
}

func (a *commands) printFiles(id string, items []api.KnownFile) error {
	style, width, counts := a.OutStyle(), 0, map[string]int{}
	for _, f := range items {
		width = max(width, display.Columns(display.OneLine(f.Path)))
	}
	width = min(width, 60)
	for _, f := range items {
		counts[f.State]++
		state := fmt.Sprintf("%-7s", f.State)
		if f.State != string(workspace.Unchanged) {
			state = style.Paint(view.Bad, state)
		}
		line := state + "  " + display.Pad(display.OneLine(f.Path), width) + "  " + a.knownText(f.Source, f.By, f.Task, f.TS)
		if len(f.Inferred) > 0 {
			line += " (judged by its time)"
		}
		if err := a.Println(line); err != nil {
			return err
		}
		for _, k := range f.History {
			size, hash := "", ""
			if k.Hash != nil {
				size, hash = fmt.Sprintf("  %d bytes", *k.Size), "  "+(*k.Hash)[:min(12, len(*k.Hash))]
			}
			text := a.knownText(k.Source, k.By, k.Task, 0)
			if k.Checkpoint > 0 {
				text = fmt.Sprintf("in checkpoint c%d (%s)", k.Checkpoint, display.OneLine(k.Reason))
			}
			if k.Rewound {
				text += " [rewound]"
			}
			if err := a.Println("  " + a.When(k.At) + "  " + text + size + hash); err != nil {
				return err
			}
		}
	}
	if len(items) == 0 {
		a.Say("the model of task %s knows no files", id)
		return nil
	}
	a.Say("%d file%s: %d fresh, %d changed, %d missing", len(items), app.Plural(len(items)), counts["fresh"], counts["changed"],
		counts["missing"])
	return nil
}

func (a *commands) knownText(source string, by *string, task string, ts int64) string {
	text := cmp.Or(howKnown[source], display.OneLine(source))
	other := by != nil && (*by == "command" || *by == "subtask")
	switch {
	case source != "user_edited" || by == nil:
	case other:
		text = "changed while a " + *by + " ran"
	case *by == "restore":
		text = "put back by a restore"
	case task != "":
		text = "changed by task " + display.OneLine(task)
	}
	if ts > 0 {
		text += " " + a.Age(ts)
	}
	if source != "user_edited" && other {
		text += ", last changed while a " + *by + " ran"
	}
	return text
}
