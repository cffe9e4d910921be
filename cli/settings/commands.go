// Package settings holds the commands that show and change what Roost works with: the settings
// file, keys, MCP servers, models, modes, skills, approvals and sources. A key is never printed;
// a change of one setting leaves every other byte of the file.
package settings

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
		a.sourcesCommand(),
		a.OnlyHere(a.approvalsCommand()),
		a.modesCommand(),
		a.skillsCommand(),
		a.mcpCommand(),
		a.OnlyHere(a.configCommand()),
		a.OnlyHere(a.authCommand()),
		a.modelsCommand(),
	}
}
