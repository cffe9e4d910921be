package editing

import (
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
)

// pinCommand is pin or unpin.
func (a *commands) pinCommand(name, short, done string, pinned bool) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID...", Short: short,
		Args: failure.Arguments(1, -1, "roost "+name+" ID"), ValidArgsFunction: a.TaskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.label(cmd.Context(), args, labels{pinned: &pinned}, func(api.Summary) string { return done })
		},
	}
}
