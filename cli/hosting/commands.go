// Package hosting holds the commands that serve tasks to other programs and keep a root in
// order: serve, server, doctor and root. A server that others can reach without a token does
// not start; a check changes nothing unless the user asks for a repair.
package hosting

import (
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
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
