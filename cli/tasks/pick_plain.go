package tasks

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/view"
)

// pickable is how many tasks the plain picker offers.
const pickable = 15

// plainWelcome prints what was found and, on a terminal that cannot be drawn on, asks
// for a number.
func (a *commands) plainWelcome(cmd *cobra.Command, s *local.Roost) error {
	page, found, err := app.Newest(cmd.Context(), s, "", pickable)
	if err != nil {
		return err
	}
	a.BySource(found.Sources)
	a.SumUp(found, len(page))
	if len(page) == 0 {
		a.Say("start one: roost run \"what to do\"; see how it works: roost try")
		return nil
	}
	id, err := a.ask(cmd.Context(), page, "resume")
	if err != nil {
		return err
	}
	return again(cmd, "resume", id)
}

func (a *commands) plainPick(ctx context.Context, s *local.Roost, purpose string) (string, error) {
	page, _, err := app.Newest(ctx, s, "", pickable)
	if err != nil {
		return "", err
	}
	if len(page) == 0 {
		return "", &failure.Failure{
			Exit: failure.ExitNotFound,
			Code: "task_not_found",
			What: purpose + " a task",
			Why:  "there is none",
			Try:  `roost run "what to do"`,
		}
	}
	return a.ask(ctx, page, purpose)
}

// ask prints numbered tasks and reads a number.
func (a *commands) ask(ctx context.Context, items []api.Summary, purpose string) (string, error) {
	lines := make([]view.Line, len(items))
	for i, t := range items {
		text := fmt.Sprintf("%3d. %4s  %-12s %s  %s", i+1, a.Age(t.TS), app.Status(t), display.OneLine(t.Title), display.OneLine(t.Workspace))
		lines[i] = view.Line{Text: display.Cut(text, a.Width)}
	}
	a.Show().Lines(lines) // also with -q: the question is about them
	p := a.Prompter()
	for {
		line, err := p.Read(ctx, purpose+" which (number, or q) > ")
		if err != nil {
			return "", &failure.Failure{
				Exit: failure.ExitCancelled,
				Code: "cancelled",
				What: "choose a task",
				Why:  err.Error(),
				Try:  "roost " + purpose + " ID",
			}
		}
		line = strings.TrimSpace(line)
		if line == "q" {
			return "", notChosen(purpose)
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(items) {
			return items[n-1].Source + ":" + items[n-1].ID, nil
		}
	}
}
