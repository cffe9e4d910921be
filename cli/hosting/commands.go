// Package hosting holds the commands that serve tasks to other programs and keep a root in
// order: serve, server, doctor and root. A server that others can reach without a token does
// not start; a check changes nothing unless the user asks for a repair.
package hosting

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/view"
)

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands are the commands of this package.
func Commands(app *app.App) []*cobra.Command {
	a := &commands{app}
	return []*cobra.Command{
		a.doctorCommand(),
		a.OnlyHere(a.rootCommand()),
		a.OnlyHere(a.serveCommand()),
		a.serverCommand(),
	}
}

func (a *commands) rootCommand() *cobra.Command {
	parent := help.Command("root", failure.OnlySubcommands)
	var dry bool
	trust := help.Command("root trust", func(cmd *cobra.Command, _ []string) error {
		s, err := a.Open()
		if err != nil {
			return err
		}
		return a.trustRoot(cmd.Context(), s, dry)
	})
	trust.Flags().BoolVar(&dry, "dry-run", false, "show which tasks would continue, and change nothing")
	parent.AddCommand(trust)
	return parent
}

func (a *commands) trustRoot(ctx context.Context, s *local.Roost, dry bool) error {
	all := s.Service()
	defer all.Close()
	watched, shown := a.Watched(ctx)
	r, err := all.TrustRoot(watched, dry)
	shown()
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		err = app.Encode(a.Out, r, false)
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
		err = failure.New(failure.ExitFailed, "trust_incomplete", "trust the root "+r.Root,
			fmt.Sprintf("%d task%s could not be read or written", failed, app.Plural(failed)),
			"roost root trust  # again, when what is named above is mended")
	}
	return err
}

func (a *commands) showTrust(r api.TrustedRoot, dry bool) error {
	out := bufio.NewWriter(a.Out)
	style := a.OutStyle()
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
		a.Say("%d task%s would be trusted; nothing was changed", len(r.Tasks), app.Plural(len(r.Tasks)))
		return nil
	}
	a.Say("the root %s is trusted here: %d key%s of other places count%s, and %d more task%s may go on",
		r.Root, r.Keys, app.Plural(r.Keys), map[bool]string{true: "s"}[r.Keys == 1], len(r.Tasks), app.Plural(len(r.Tasks)))
	return nil
}
