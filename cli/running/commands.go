// Package running holds the commands that start, continue, follow, answer, stop and await runs,
// and the chat. A follower's end never ends a run of another process; without a terminal no
// question is asked, and the exit code tells that one is open.
package running

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/local"
)

// Parts are what runs need of other packages of the command line.
type Parts struct {
	Pick func(ctx context.Context, a *app.App, s *local.Roost, purpose string) (id string, err error) // a person chooses a task
	Run  func(ctx context.Context, a *app.App, args []string) (exit int)                              // a whole command line
}

// commands are the commands of this package with the invocation that they belong to.
type commands struct {
	*app.App
	parts Parts
}

// Commands are the commands of this package.
func Commands(app *app.App, parts Parts) []*cobra.Command {
	a := &commands{app, parts}
	return []*cobra.Command{
		a.runCommand(),
		a.resumeCommand(),
		a.continueCommand(),
		a.answerCommand(),
		a.attachCommand(),
		a.sendCommand(),
		a.cancelCommand(),
		a.waitCommand(),
		a.chatCommand(),
	}
}

// Attach follows what a task does now, over the connection c. ask allows questions to the user.
func Attach(ctx context.Context, a *app.App, c *client.Client, id string, ask bool) error {
	return (&commands{App: a}).attach(ctx, c, id, ask)
}
