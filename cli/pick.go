package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/view"
)

// pickable is how many tasks the picker offers.
const pickable = 15

// welcome is roost without a command: what was found, then the picker; without a
// terminal, help.
func (a *App) welcome(cmd *cobra.Command) error {
	if !a.interactive() {
		return cmd.Help()
	}
	return a.withEngine(cmd.Context(), func(s *store.Store, e *engine.Engine) error {
		found, err := s.List(cmd.Context(), store.Filter{Sort: "newest", Limit: pickable})
		if err != nil {
			return err
		}
		a.bySource(found.Sources)
		found.NextCursor = "" // the picker is no page of a list
		a.sumUp(found)
		if len(found.Items) == 0 {
			a.say("start one: roost run \"what to do\"; see how it works: roost try")
			return nil
		}
		id, err := a.pick(cmd.Context(), s)
		if err != nil || id == "" {
			return err
		}
		return a.start(cmd.Context(), e, engine.Request{Task: id, Origin: "cli", Interactive: true})
	})
}

// pick lets the person choose one of the newest tasks.
func (a *App) pick(ctx context.Context, s *store.Store) (string, error) {
	if !a.interactive() {
		return "", usage("resume a task", "no task was named, and "+errNoTerminal.Error(), "roost list, then roost resume ID")
	}
	found, err := s.List(ctx, store.Filter{Sort: "newest", Limit: pickable})
	if err != nil {
		return "", err
	}
	if len(found.Items) == 0 {
		return "", &Failure{Exit: ExitNotFound, Code: "task_not_found", What: "resume a task", Why: "there is none", Try: `roost run "what to do"`}
	}
	lines := make([]view.Line, len(found.Items))
	for i, t := range found.Items {
		text := fmt.Sprintf("%3d. %4s  %-12s %s  %s", i+1, a.age(t.TS), status(t), display.OneLine(t.Title), display.OneLine(t.Workspace))
		lines[i] = view.Line{Text: display.Cut(text, a.Width)}
	}
	a.show().Lines(lines) // also with -q: the question is about them
	p := a.prompter()
	for {
		line, err := p.Read(ctx, "resume which (number, or q) > ")
		if err != nil {
			return "", &Failure{Exit: ExitCancelled, Code: "cancelled", What: "choose a task", Why: err.Error(), Try: "roost resume ID"}
		}
		line = strings.TrimSpace(line)
		if line == "q" {
			return "", &Failure{Exit: ExitCancelled, Code: "cancelled", What: "choose a task", Why: "none was chosen", Try: "roost resume ID"}
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(found.Items) {
			return found.Items[n-1].Source + ":" + found.Items[n-1].ID, nil
		}
	}
}
