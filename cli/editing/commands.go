// Package editing holds the commands that change stored tasks without a model's turn, or take
// such a change back: rewind, fork, undo, checkpoints, trash, titles, tags, pins, condensing and
// imports. What cannot be undone asks first, and does nothing where no person can be asked.
package editing

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
		a.renameCommand(),
		a.tagCommand(),
		a.pinCommand("pin", "Keep tasks at the top of lists", "pinned", true),
		a.pinCommand("unpin", "Let tasks go from the top of lists", "not pinned", false),
		a.deleteCommand(),
		a.trashCommand(),
		a.rewindCommand(),
		a.forkCommand(),
		a.undoCommand(false),
		a.undoCommand(true),
		a.condenseCommand(),
		a.checkpointCommand(),
		a.importCommand(),
	}
}
