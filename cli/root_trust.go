package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/view"
)

func (a *App) rootCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "root",
		Short: "Look after the folder that keeps your tasks",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	var dry bool
	trust := &cobra.Command{
		Use:               "trust",
		Short:             "Trust this root with its present content",
		Args:              count(0, 0, "roost root trust"),
		ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Roost signs what it writes with a key outside of the root, in $XDG_STATE_HOME/roost. A\n" +
			"root that was copied, restored, moved or unpacked, or that an older Roost wrote, has no key in its\n" +
			"place: nothing of it runs by itself, and no recorded answer counts.\n\n" +
			"This command declares the root yours: keys that you have for it from other places count here,\n" +
			"and tasks that hold something open, or settings of their own, continue with those. Tasks that were\n" +
			"imported stay as the import left them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open()
			if err != nil {
				return err
			}
			return a.trustRoot(cmd.Context(), s, dry)
		},
	}
	trust.Flags().BoolVar(&dry, "dry-run", false, "show which tasks would continue, and change nothing")
	parent.AddCommand(trust)
	return parent
}

func (a *App) trustRoot(ctx context.Context, s *local.Roost, dry bool) error {
	watched, shown := a.watched(ctx)
	r, err := s.Store().Trust(watched, dry)
	shown()
	if err != nil {
		return err
	}
	if a.flags.json {
		err = encode(a.Out, r, false)
	} else {
		err = a.showTrust(r, dry)
	}
	failed := 0
	for _, t := range r.Tasks {
		if t.Problem != "" {
			failed++
		}
	}
	if err == nil && failed > 0 {
		err = &Failure{Exit: ExitFailed, Code: "trust_incomplete", What: "trust the root " + r.Root,
			Why: fmt.Sprintf("%d task%s could not be read or written", failed,
				plural(failed)), Try: "roost root trust  # again, when what is named above is mended"}
	}
	return err
}

func (a *App) showTrust(r store.TrustReport, dry bool) error {
	out := bufio.NewWriter(a.Out)
	style := a.outStyle()
	for _, t := range r.Tasks {
		paint, text := view.Plain, t.ID+": "+strings.Join(t.Holds, "; ")
		if t.Problem != "" {
			paint, text = view.Bad, t.ID+": "+t.Problem
		}
		fmt.Fprintln(out, style.Paint(paint, display.OneLineIndented(text)))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if dry {
		a.say("%d task%s would be trusted; nothing was changed", len(r.Tasks), plural(len(r.Tasks)))
		return nil
	}
	a.say("the root %s is trusted here: %d key%s of other places count%s, and %d more task%s may go on",
		r.Root, r.Keys, plural(r.Keys), map[bool]string{true: "s"}[r.Keys == 1], len(r.Tasks), plural(len(r.Tasks)))
	return nil
}

// receive lets a task continue that is not proven to be this root's own. If the task holds
// open work or settings that would take effect, it first asks the user, on a terminal.
func (a *App) receive(ctx context.Context, e *engine.Engine, req engine.Request) (engine.Request, error) {
	_, err := e.Receive(ctx, req)
	var held *engine.UntrustedError
	if !errors.As(err, &held) || !a.interactive() {
		return req, err
	}
	a.say("%s", held.Error())
	a.say("  Continuing ends all that is open in it, and uses your own settings. If the root is yours, stop and")
	a.say("  run: roost root trust")
	answer, err := a.prompter().Read(ctx, "  go on with it? (y, or anything else) > ")
	if err != nil {
		return req, err
	}
	if strings.TrimSpace(answer) != "y" {
		return req, held
	}
	req.OwnSettings = true
	_, err = e.Receive(ctx, req)
	return req, err
}
