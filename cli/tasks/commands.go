// Package tasks holds the commands that look at tasks and change nothing: lists, searches,
// histories, runs, questions, files and costs; exports; and the picker, in which a person
// chooses a task. What a model or another tool wrote reaches a terminal only as plain text.
package tasks

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/local"
)

// commands are the commands of this package with the invocation that they belong to.
type commands struct{ *app.App }

// Commands are the commands of this package.
func Commands(app *app.App) []*cobra.Command {
	a := &commands{app}
	return []*cobra.Command{
		a.listCommand(),
		a.searchCommand(),
		a.picks(a.showCommand()),
		a.usageCommand(),
		a.picks(a.exportCommand()),
		a.filesCommand(),
		a.runsCommand(),
		a.questionsCommand(),
	}
}

// Welcome is roost without a command: on a terminal the picker, else help.
func Welcome(a *app.App, cmd *cobra.Command) error { return (&commands{a}).welcome(cmd) }

// Pick lets a person choose one task. purpose is one word, for messages.
func Pick(ctx context.Context, a *app.App, s *local.Roost, purpose string) (string, error) {
	return (&commands{a}).pick(ctx, s, purpose)
}
