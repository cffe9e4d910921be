package cli

import (
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/store"
)

// pinCommand is pin or unpin.
func (a *App) pinCommand(name, short, done string, pinned bool) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID...", Short: short,
		Args: count(1, -1, "roost "+name+" ID"), ValidArgsFunction: a.taskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if done, err := a.remotely(func(c *client.Client) error { return a.farPin(cmd.Context(), c, args, pinned, done) }); done {
				return err
			}
			s, err := a.open()
			if err != nil {
				return err
			}
			refs, err := findAll(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			for _, ref := range refs {
				t, err := s.Label(cmd.Context(), ref, store.Labels{Pinned: &pinned})
				if err != nil {
					return err
				}
				if err := a.labelled(t, done); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
