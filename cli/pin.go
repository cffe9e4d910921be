package cli

import (
	"github.com/roost-dev/roost/api"
	"github.com/spf13/cobra"
)

// pinCommand is pin or unpin.
func (a *App) pinCommand(name, short, done string, pinned bool) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID...", Short: short,
		Args: count(1, -1, "roost "+name+" ID"), ValidArgsFunction: a.taskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.label(cmd.Context(), args, labels{pinned: &pinned}, func(api.Summary) string { return done })
		},
	}
}
