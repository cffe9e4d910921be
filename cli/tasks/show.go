package tasks

import (
	"bufio"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

// page is how many messages a terminal gets when nothing else was asked for.
const page = 20

type showFlags struct {
	ui, api, effective, journal, usage, tree, context bool
	branches                                          bool
	tail                                              int
	before, dir                                       string
	to                                                int // the number in before, 0 = all
}

func (a *commands) showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a task",
		Long: "Show a task: its messages with their numbers, tool calls and results. The model's\n" +
			"thinking is folded and long output is cut; -v shows both. On a terminal it is shown\n" +
			"in $PAGER (less); NO_PAGER=1 goes without.\n\n" +
			"A history whose file is missing is made from the other one, and marked as such.\n\n" +
			"With --json it is the task as in `list`; with --ui or --api and --json the\n" +
			"history, each element exactly as it is stored.",
		Args: failure.Arguments(1, 1, "roost show ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.dir != "" && !f.context {
				return failure.Usage("roost show -C", "the folder is for a request, so the flag needs --context",
					"roost show "+args[0]+" --context -C DIR")
			}
			if f.dir != "" {
				f.dir = a.Abs(f.dir)
			}
			if f.tail < 0 {
				return failure.Usage("roost show --tail", "a number of messages cannot be negative", "roost show "+args[0]+" --tail 20")
			}
			var err error
			if f.to, err = beforeNumber(f.before); err != nil {
				return err
			}
			if err := failure.OneOf(cmd, "ui", "api", "effective", "journal", "usage", "tree", "context", "branches"); err != nil {
				return err
			}
			if !cmd.Flags().Changed("tail") && a.OutTTY && !a.Flags.JSON {
				f.tail = page
			}
			return a.Connect(cmd.Context(), func(c *client.Client) error { return a.showTask(cmd.Context(), c, args[0], f) })
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.ui, "ui", false, "the history that the person sees (default)")
	fl.BoolVar(&f.api, "api", false, "the history that the model sees")
	fl.BoolVar(&f.effective, "effective", false, "the messages that would be sent now")
	fl.BoolVar(&f.journal, "journal", false, "the commits of the task's journal")
	fl.BoolVar(&f.usage, "usage", false, "tokens and cost")
	fl.BoolVar(&f.context, "context", false, "what the next request is made of, in tokens, and what is free")
	fl.BoolVar(&f.tree, "tree", false, "the task and its subtasks: states, and what all of them cost")
	fl.BoolVar(&f.branches, "branches", false, "the branches that rewinds left, as a tree")
	fl.IntVar(&f.tail, "tail", 0, "only the last `N` messages (0 = all; on a terminal 20)")
	fl.StringVar(&f.before, "before", "", "only messages before message `N`, as #12 or 12")
	fl.StringVarP(&f.dir, "workspace", "C", "", "with --context: the `folder` of the task, when it has moved or is not known")
	app.Complete(cmd, "workspace", app.Folders)
	app.Complete(cmd, "tail", cobra.NoFileCompletions)
	app.Complete(cmd, "before", cobra.NoFileCompletions)
	return cmd
}

// beforeNumber reads --before; 0 when it was not given.
func beforeNumber(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
	if err != nil || n < 1 {
		return 0, failure.Usage("roost show --before "+text, "want a message's number such as #12", "roost show ID --before 12")
	}
	return n, nil
}

// window is the part of n messages that the flags ask for.
func window(n int, f showFlags) (from, to int) {
	to = n
	if f.to > 0 {
		to = min(n, f.to-1)
	}
	if f.tail > 0 {
		from = max(0, to-f.tail)
	}
	return from, to
}

// header is the task in a few lines.
func (a *commands) header(t api.Summary, questions []string) error {
	style := a.OutStyle()
	out := bufio.NewWriter(a.Out)
	room := 2 * a.Columns() // the first message shows the full title
	if room == 0 {
		room = 300
	}
	for _, line := range app.Wrap(display.Cut(cmp.Or(display.OneLine(t.Title), "(no title)"), room), a.Columns()) {
		fmt.Fprintln(out, style.Paint(view.Head, line))
	}
	facts := []string{t.ID, t.Source, app.Status(t), a.Age(t.TS)}
	if t.Provider+t.Model != "" {
		facts = append(facts, strings.Trim(t.Provider+"/"+t.Model, "/"))
	}
	if t.Mode != "" {
		facts = append(facts, t.Mode)
	}
	if t.Usage.Cost != nil {
		facts = append(facts, "$"+t.Usage.Cost.String())
	}
	facts = append(facts, fmt.Sprintf("%d message%s, %d for the model", t.Messages.UI, app.Plural(t.Messages.UI), t.Messages.API))
	for _, line := range app.Wrap(display.OneLine(strings.Join(facts, " · ")), a.Columns()) {
		fmt.Fprintln(out, style.Paint(view.Dim, line))
	}
	for _, place := range []string{t.Workspace, t.Path} {
		if place != "" {
			fmt.Fprintln(out, style.Paint(view.Dim, display.OneLine(place)))
		}
	}
	for _, d := range t.Damaged {
		fmt.Fprintln(out, style.Paint(view.Bad, display.OneLine("damaged: "+d.Text())))
	}
	if r := t.Received; r != nil {
		for _, note := range r.Notes {
			fmt.Fprintln(out, style.Paint(view.Asked, display.OneLine(note)))
		}
	}
	for _, text := range questions {
		fmt.Fprintln(out, style.Paint(view.Asked, display.OneLine("open question: "+text)))
	}
	fmt.Fprintln(out)
	return app.Flushed(out)
}

func (a *commands) printUsage(u api.Usage) error {
	cost := "unknown"
	if u.Cost != nil {
		cost = "$" + u.Cost.String()
	}
	_, err := fmt.Fprintf(a.Out, "tokens in     %d\ntokens out    %d\ncache writes  %d\ncache reads   %d\ncost          %s\n",
		u.TokensIn, u.TokensOut, u.CacheWrites, u.CacheReads, cost)
	if err != nil {
		return fmt.Errorf("print the usage: %w", err)
	}
	return nil
}
