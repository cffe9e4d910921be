package editing

import (
	"context"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func (a *commands) renameCommand() *cobra.Command {
	var reset bool
	cmd := &cobra.Command{
		Use:   "rename ID TITLE|--reset",
		Short: "Give a task another title",
		Long: "Give a task another title. That of another tool's task is kept in Roost's own root:\n" +
			"the tool's folder is not touched. --reset goes back to the title that the task has by\n" +
			"itself; roost undo ID goes back to the one before.",
		Example: "  roost rename 0199 \"paint the fence\"\n  roost rename 0199 --reset", ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			l := labels{untitled: reset}
			if reset {
				if err := failure.Arguments(1, 1, "roost rename ID --reset")(cmd, args); err != nil {
					return err
				}
			} else {
				if err := failure.Arguments(2, 2, `roost rename ID "new title"`)(cmd, args); err != nil {
					return err
				}
				title := strings.TrimSpace(args[1])
				l.title = &title
			}
			return a.label(cmd.Context(), args[:1], l, func(t api.Summary) string { return t.Title })
		},
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "back to the title that the task has by itself")
	return cmd
}

// labels are titles, tags and pins to change.
type labels struct {
	title       *string
	untitled    bool // back to the title that the task has by itself
	add, remove []string
	pinned      *bool
}

func (l labels) patch() map[string]any {
	body := map[string]any{}
	if l.untitled {
		body["title"] = nil
	}
	if l.title != nil {
		body["title"] = *l.title
	}
	if l.pinned != nil {
		body["pinned"] = *l.pinned
	}
	if len(l.add) > 0 {
		body["add_tags"] = l.add
	}
	if len(l.remove) > 0 {
		body["remove_tags"] = l.remove
	}
	return body
}

// label changes the labels of tasks and prints each. All tasks are found before one changes. show returns the
// text of a task's line.
func (a *commands) label(ctx context.Context, ids []string, l labels, show func(api.Summary) string) error {
	return a.Connect(ctx, func(c *client.Client) error {
		found := make([]api.Summary, len(ids))
		for i, id := range ids {
			t, err := c.Task(ctx, id)
			if err != nil {
				return err
			}
			found[i] = t
		}
		body := l.patch()
		seen := map[string]bool{}
		for _, t := range found {
			if seen[t.Path] {
				continue
			}
			seen[t.Path] = true
			if len(body) > 0 {
				patch := client.Request{Method: http.MethodPatch, Path: app.PathOf(t.Source + ":" + t.ID), Body: body, Repeatable: true}
				if _, err := c.Ask(ctx, patch, &t); err != nil {
					return err
				}
			}
			if a.Flags.JSON {
				if err := app.Encode(a.Out, t, false); err != nil {
					return err
				}
				continue
			}
			if err := a.Println(display.OneLine(t.ID) + "  " + display.OneLine(show(t))); err != nil {
				return err
			}
		}
		return nil
	})
}
