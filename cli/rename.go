package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/store"
)

func (a *App) renameCommand() *cobra.Command {
	var reset bool
	cmd := &cobra.Command{
		Use:   "rename ID TITLE|--reset",
		Short: "Give a task another title",
		Long: "Give a task another title. That of another tool's task is kept in Roost's own root:\n" +
			"the tool's folder is not touched. --reset goes back to the title that the task has by\n" +
			"itself; roost undo ID goes back to the one before.",
		Example: "  roost rename 0199 \"paint the fence\"\n  roost rename 0199 --reset", ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			l := store.Labels{Untitled: reset}
			if reset {
				if err := count(1, 1, "roost rename ID --reset")(cmd, args); err != nil {
					return err
				}
			} else {
				if err := count(2, 2, `roost rename ID "new title"`)(cmd, args); err != nil {
					return err
				}
				title := strings.TrimSpace(args[1])
				l.Title = &title
			}
			t, err := a.label(cmd, "rename task "+args[0], args[0], l)
			if err != nil {
				return err
			}
			return a.labelled(t, t.Title)
		},
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "back to the title that the task has by itself")
	return cmd
}

// label changes what a task is filed under.
func (a *App) label(cmd *cobra.Command, what, id string, l store.Labels) (store.Summary, error) {
	var far store.Summary
	if done, err := a.remotely(func(c *client.Client) (err error) { far, err = a.farLabel(cmd.Context(), c, id, l); return err }); done {
		return far, err
	}
	s, err := a.open()
	if err != nil {
		return store.Summary{}, err
	}
	ref, err := s.Find(cmd.Context(), id)
	if err != nil {
		return store.Summary{}, err
	}
	t, err := s.Label(cmd.Context(), ref, l)
	if errors.Is(err, store.ErrLabel) {
		return t, usage(what, err.Error(), cmd.CommandPath()+" --help")
	}
	return t, err
}

// labelled prints a task that was filed: its row for programs, one line for people.
func (a *App) labelled(t store.Summary, what string) error {
	if a.flags.json {
		return encode(a.Out, t, false)
	}
	return a.println(display.OneLine(t.ID) + "  " + display.OneLine(what))
}
