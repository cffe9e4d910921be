package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/view"
)

// runStates are the states of a run.
var runStates = []string{"queued", "running", "waiting", "completed", "failed", "cancelled", "interrupted"}

func (a *App) runsCommand() *cobra.Command {
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
		Args:    count(0, 1, "roost runs"), ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if state != "" && !slices.Contains(runStates, state) {
				return usage("roost runs --state "+state, "there is no such state", "roost runs --state "+strings.Join(runStates, "|"))
			}
			if limit < 1 || limit > 1000 {
				return usage("roost runs --limit", "want a number from 1 to 1000", "roost runs --limit 20")
			}
			query, path := url.Values{}, "/v1/runs"
			if len(args) > 0 {
				path = pathOf(args[0], "runs")
				if state != "" || cmd.Flags().Changed("cursor") || cmd.Flags().Changed("limit") {
					return usage("roost runs ID", "--state, --limit and --cursor are for the runs of all tasks", "roost runs "+args[0])
				}
			} else {
				query.Set("limit", strconv.Itoa(limit))
				set(query, "state", state)
				set(query, "cursor", cursor)
			}
			return a.withClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
				return documentOf(cmd.Context(), a, c, path, query, func(p api.Page[api.Run]) error {
					more := ""
					if p.Next != nil && len(args) == 0 {
						more = nextPage(cmd, *p.Next)
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
	complete(cmd, "state", words(runStates...))
	complete(cmd, "limit", cobra.NoFileCompletions)
	complete(cmd, "cursor", cobra.NoFileCompletions)
	return cmd
}

// pathOf is the path of something of a task.
func pathOf(id string, rest ...string) string {
	return "/v1/tasks/" + strings.Join(append([]string{url.PathEscape(id)}, rest...), "/")
}

// set puts a parameter into a query, unless it is empty.
func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// documentOf gets a document from a server: with --json it prints the server's bytes, else it
// calls show.
func documentOf[T any](ctx context.Context, a *App, c *client.Client, path string, query url.Values, show func(T) error) error {
	return exchange(ctx, a, c, client.Request{Method: http.MethodGet, Path: path, Query: query}, show)
}

// exchange is documentOf for any request.
func exchange[T any](ctx context.Context, a *App, c *client.Client, r client.Request, show func(T) error) error {
	var doc json.RawMessage
	watched, shown := a.watched(ctx)
	_, err := c.Ask(watched, r, &doc)
	shown()
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printRaw(doc)
	}
	var v T
	if err := json.Unmarshal(doc, &v); err != nil {
		return fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
	}
	return show(v)
}

// printRaw prints a document as it came.
func (a *App) printRaw(doc []byte) error {
	if n := len(doc); n == 0 || doc[n-1] != '\n' {
		doc = append(doc, '\n')
	}
	if _, err := a.Out.Write(doc); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// showRuns prints a page of runs; more is the command for the next one, "" where this is the last.
func (a *App) showRuns(p api.Page[api.Run], more string) error {
	style, width := a.outStyle(), 0
	if a.OutTTY {
		width = a.Width
	}
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
			note = "waits for an answer: roost answer " + shellWord(r.Question)
		case r.Reason != "":
			note = display.Cut(display.OneLine(r.Reason), 60)
		}
		line := fmt.Sprintf("%s  %-11s %5s  %5d %8s  %s  %s", display.Pad(display.OneLine(r.ID), runWidth), state,
			a.age(momentOf(r.StartedAt, r.QueuedAt)), r.Turns, cents(r.Cost),
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
	if err := flushed(out); err != nil {
		return err
	}
	switch {
	case len(p.Items) == 0:
		a.say("no runs")
	case more != "":
		a.say("%d run%s; more: %s", len(p.Items), plural(len(p.Items)), more)
	default:
		a.say("%d run%s", len(p.Items), plural(len(p.Items)))
	}
	return nil
}

// momentOf is the first time of some that is known, in Unix milliseconds; 0 = none is.
func momentOf(stamps ...*string) int64 {
	for _, s := range stamps {
		if s == nil {
			continue
		}
		if at, err := time.Parse(time.RFC3339, *s); err == nil {
			return at.UnixMilli()
		}
	}
	return 0
}
