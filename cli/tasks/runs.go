package tasks

import (
	"bufio"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
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
	cmd := &cobra.Command{
		Use:   "runs [ID]",
		Short: "List the runs of all tasks, or of one, with their states",
		Long: "List the runs of all tasks, those that work or wait first, then the newest; or those of\n" +
			"one task. A run is one stretch of work on a task, from its start to its end; one that\n" +
			"waits for an answer continues under its own id.\n\n" +
			"States: " + strings.Join(runStates, ", ") + ".",
		Example: "  roost runs --state running\n  roost runs 0199 --json",
		Args:    failure.Arguments(0, 1, "roost runs"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("roost runs", "state", state, "there is no such state", runStates, ""); err != nil {
				return err
			}
			if limit < 1 || limit > 1000 {
				return failure.Usage("roost runs --limit", "want a number from 1 to 1000", "roost runs --limit 20")
			}
			query, path := url.Values{}, "/v1/runs"
			if len(args) > 0 {
				path = app.PathOf(args[0], "runs")
				if state != "" || cmd.Flags().Changed("cursor") || cmd.Flags().Changed("limit") {
					return failure.Usage("roost runs ID", "--state, --limit and --cursor are for the runs of all tasks", "roost runs "+args[0])
				}
			} else {
				query.Set("limit", strconv.Itoa(limit))
				app.SetQuery(query, "state", state)
				app.SetQuery(query, "cursor", cursor)
			}
			return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
				return app.DocumentOf(cmd.Context(), a.App, c, path, query, func(p api.Page[api.Run]) error {
					more := ""
					if p.Next != nil && len(args) == 0 {
						more = app.NextPage(cmd, *p.Next)
					}
					return a.showRuns(p, more)
				})
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&state, "state", "", "only runs in this `state`")
	fl.IntVar(&limit, "limit", 100, "at most this many")
	fl.StringVar(&cursor, "cursor", "", "go on where the last page ended")
	app.Complete(cmd, "state", app.Words(runStates...))
	app.NoFiles(cmd, "limit", "cursor")
	return cmd
}

// showRuns prints a page of runs; more is the command for the next one, "" where this is the last.
func (a *commands) showRuns(p api.Page[api.Run], more string) error {
	style, width := a.OutStyle(), a.Columns()
	out := bufio.NewWriter(a.Out)
	runWidth, taskWidth := 3, 4
	for _, r := range p.Items {
		runWidth = max(runWidth, display.Columns(display.OneLine(r.ID)))
		taskWidth = max(taskWidth, display.Columns(display.OneLine(r.Task)))
	}
	if len(p.Items) > 0 {
		head := display.Pad("RUN", runWidth) + "  STATE         AGE  TURNS     COST  " + display.Pad("TASK", taskWidth) + "  "
		fmt.Fprintln(out, style.Paint(view.Dim, head))
	}
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
			note = "waits for an answer: roost answer " + failure.ShellWord(r.Question)
		case r.Reason != "":
			note = display.Cut(display.OneLine(r.Reason), 60)
		}
		line := fmt.Sprintf("%s  %-11s %5s  %5d %8s  %s  %s", display.Pad(display.OneLine(r.ID), runWidth), state,
			a.Age(app.MomentOf(r.StartedAt, r.QueuedAt)), r.Turns, app.Cents(r.Cost),
			display.Pad(display.OneLine(r.Task), taskWidth), note)
		s := view.Plain
		switch r.State {
		case "waiting":
			s = view.Asked
		case "failed":
			s = view.Bad
		}
		fmt.Fprintln(out, style.Paint(s, display.Cut(strings.TrimRight(line, " "), width)))
	}
	if err := app.Flushed(out); err != nil {
		return err
	}
	if len(p.Items) == 0 {
		a.Say("no runs")
		return nil
	}
	if more != "" {
		more = "; more: " + more
	}
	a.Say("%d run%s%s", len(p.Items), app.Plural(len(p.Items)), more)
	return nil
}

func (a *commands) questionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "questions [ID]",
		Short: "List the open questions and approvals of all tasks, or of one",
		Long: "List what tasks that Roost runs ask, the oldest first: questions of the model, and\n" +
			"what is to be approved, whether a run waits for the answer now or was let go long ago.\n" +
			"roost answer answers one. What a task of another tool asked last is none of these.",
		Example: "  roost questions\n  roost answer 0199 --yes",
		Args:    failure.Arguments(0, 1, "roost questions"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			if len(args) > 0 {
				query.Set("task", args[0])
			}
			return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
				return app.DocumentOf(cmd.Context(), a.App, c, "/v1/questions", query, a.showQuestions)
			})
		},
	}
}

func (a *commands) showQuestions(p api.Page[api.Question]) error {
	out := bufio.NewWriter(a.Out)
	for i, q := range p.Items {
		if i > 0 {
			fmt.Fprintln(out)
		}
		a.question(out, q)
	}
	if err := app.Flushed(out); err != nil {
		return err
	}
	if len(p.Items) == 0 {
		a.Say("no task asks anything")
	} else {
		a.Say("%d open question%s; answer one: roost answer ID --yes, --no, --choice N or \"words\"", len(p.Items), app.Plural(len(p.Items)))
	}
	return nil
}

// question prints one question whole: it is what the user agrees to.
func (a *commands) question(out *bufio.Writer, q api.Question) {
	style := a.OutStyle()
	line := func(s view.Style, text string) { fmt.Fprintln(out, style.Paint(s, text)) }
	title := display.Cut(display.OneLine(q.Title), 60)
	line(view.Head, display.OneLine(q.ID)+"  "+a.Age(app.MomentOf(&q.At))+"  "+display.OneLine(q.Kind)+"  "+title)
	for _, text := range app.Wrap(display.Safe(q.Text), a.Columns()) {
		line(view.Asked, "  "+text)
	}
	for i, c := range q.Choices {
		line(view.Asked, fmt.Sprintf("  %d. %s%s", i+1, display.OneLine(c), display.InMode(q.QuestionOpened, i)))
	}
	if q.Always != "" {
		line(view.Dim, "  --always allows "+display.OneLine(q.Always))
	}
	if q.Diff != "" && a.Flags.Verbose {
		for _, text := range app.Wrap(display.Safe(q.Diff), 0) {
			line(view.DiffStyle(text), "  "+text)
		}
	} else if q.Diff != "" {
		line(view.Dim, "  it comes with a diff: roost questions -v "+failure.ShellWord(q.Task))
	}
}
