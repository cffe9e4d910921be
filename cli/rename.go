package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/store"
)

func (a *App) renameCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rename ID TITLE",
		Short: "Give a task another title",
		Long: "Give a task another title. That of another tool's task is kept in Roost's own root:\n" +
			"the tool's folder is not touched.",
		Args: count(2, 2, `roost rename ID "new title"`), ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			title := strings.TrimSpace(args[1])
			t, err := a.label(cmd, "rename task "+args[0], args[0], store.Labels{Title: &title})
			if err != nil {
				return err
			}
			return a.labelled(t, t.Title)
		},
	}
}

// label changes what a task is filed under.
func (a *App) label(cmd *cobra.Command, what, id string, l store.Labels) (store.Summary, error) {
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
