package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/view"
)

// pickable is how many tasks the plain picker offers.
const pickable = 15

// plainWelcome prints what was found and, on a terminal that cannot be drawn on, asks
// for a number.
func (a *App) plainWelcome(cmd *cobra.Command, s *local.Roost) error {
	page, found, err := newest(cmd.Context(), s, "", pickable)
	if err != nil {
		return err
	}
	a.bySource(found.Sources)
	a.sumUp(found, len(page))
	if len(page) == 0 {
		a.say("start one: roost run \"what to do\"; see how it works: roost try")
		return nil
	}
	id, err := a.ask(cmd.Context(), page, "resume")
	if err != nil {
		return err
	}
	return again(cmd, "resume", id)
}

// newest are the newest tasks, of one folder unless it is "", and what was found in all.
func newest(ctx context.Context, s *local.Roost, folder string, limit int) ([]api.Summary, api.Found, error) {
	all := s.Service()
	defer all.Close()
	page, found, err := all.List(ctx, api.TaskFilter{Workspace: folder, Sort: "newest", Limit: limit})
	return page.Items, found, err
}

func (a *App) plainPick(ctx context.Context, s *local.Roost, purpose string) (string, error) {
	page, _, err := newest(ctx, s, "", pickable)
	if err != nil {
		return "", err
	}
	if len(page) == 0 {
		return "", &Failure{
			Exit: ExitNotFound,
			Code: "task_not_found",
			What: purpose + " a task",
			Why:  "there is none",
			Try:  `roost run "what to do"`,
		}
	}
	return a.ask(ctx, page, purpose)
}

// ask prints numbered tasks and reads a number.
func (a *App) ask(ctx context.Context, items []api.Summary, purpose string) (string, error) {
	lines := make([]view.Line, len(items))
	for i, t := range items {
		text := fmt.Sprintf("%3d. %4s  %-12s %s  %s", i+1, a.age(t.TS), status(t), display.OneLine(t.Title), display.OneLine(t.Workspace))
		lines[i] = view.Line{Text: display.Cut(text, a.Width)}
	}
	a.show().Lines(lines) // also with -q: the question is about them
	p := a.prompter()
	for {
		line, err := p.Read(ctx, purpose+" which (number, or q) > ")
		if err != nil {
			return "", &Failure{
				Exit: ExitCancelled,
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
