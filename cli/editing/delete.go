package editing

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func (a *commands) deleteCommand() *cobra.Command {
	var c cascade
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Put tasks into the trash",
		Long: "Put tasks into the trash, and print how to get them back. A task in another tool's storage\n" +
			"stays there as it is; Roost does not show it any more.\n\n" +
			"For a task with subtasks, delete asks what becomes of those; without a terminal a flag has to decide.",
		Args: failure.Arguments(1, -1, "roost delete ID"), ValidArgsFunction: a.TaskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.delete(cmd, args, c)
		},
	}
	c.add(cmd)
	return cmd
}

// delete puts tasks into the trash. All are found before one is deleted.
func (a *commands) delete(cmd *cobra.Command, ids []string, how cascade) error {
	if err := how.check(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	return a.Connect(ctx, func(c *client.Client) error {
		var chosen, more []api.Summary
		add := func(to []api.Summary, t api.Summary) []api.Summary {
			same := func(s api.Summary) bool { return s.Path == t.Path }
			if slices.ContainsFunc(chosen, same) || slices.ContainsFunc(more, same) {
				return to
			}
			return append(to, t)
		}
		var trees []app.Family
		for _, id := range ids {
			var b api.Branch
			if _, err := c.Do(ctx, http.MethodGet, app.PathOf(id, "tree"), nil, nil, &b); err != nil {
				return err
			}
			trees = append(trees, app.Flat(b, 0))
			chosen = add(chosen, b.Task)
		}
		for _, f := range trees {
			for _, t := range f.Tasks[1:] {
				more = add(more, t)
			}
		}
		subtasks := "keep"
		if !how.keep {
			with, err := how.decide(cmd, a, idsOf(chosen), idsOf(more))
			if err != nil {
				return err
			}
			if with {
				subtasks = "delete"
			}
		}
		done := []api.DeletedTask{}
		err := a.deleteEach(ctx, c, chosen, subtasks, func(t api.DeletedTask) error {
			if done = append(done, t); a.Flags.JSON {
				return nil
			}
			return a.deleted(ctx, c, t)
		})
		return errors.Join(a.printDone("deleted", done), err)
	})
}

// deleteEach deletes tasks in order. A task that went with one before it is deleted already.
func (a *commands) deleteEach(ctx context.Context, c *client.Client, chosen []api.Summary, subtasks string,
	show func(api.DeletedTask) error) error {
	gone := map[string]bool{}
	for _, t := range chosen {
		if gone[t.Source+":"+t.ID] {
			continue
		}
		var d api.Deleted
		if _, err := c.Do(ctx, http.MethodDelete, app.PathOf(t.Source+":"+t.ID), url.Values{"subtasks": {subtasks}}, nil, &d); err != nil {
			return err
		}
		for _, one := range append([]api.DeletedTask{d.DeletedTask}, d.With...) {
			gone[one.Source+":"+one.ID] = true
			if err := show(one); err != nil {
				return err
			}
		}
	}
	return nil
}

func idsOf(tasks []api.Summary) []string {
	out := make([]string, len(tasks))
	for i, t := range tasks {
		out[i] = t.ID
	}
	return out
}

// printDone prints, with --json, the results for several tasks.
func (a *commands) printDone(what string, done any) error {
	if !a.Flags.JSON {
		return nil
	}
	return app.Encode(a.Out, map[string]any{what: done}, false)
}

// deleted prints one deleted task and how to get it back.
func (a *commands) deleted(ctx context.Context, c *client.Client, t api.DeletedTask) error {
	if err := a.tellDeleted(t); err != nil {
		return err
	}
	if other, err := c.Task(ctx, t.ID); err == nil && other.ID == t.ID {
		a.Say("%s has a task of that id too, which is listed: %s", other.Source, other.Path)
	}
	return nil
}

func (a *commands) tellDeleted(t api.DeletedTask) error {
	line := "deleted " + display.OneLine(t.ID)
	if title := display.Cut(display.OneLine(t.Title), 60); title != "" {
		line += "  " + title
	}
	if err := a.Println(line + "\n  get it back: roost trash restore " + failure.ShellWord(t.Name)); err != nil {
		return err
	}
	if t.Hidden {
		a.Say("its folder stays as it is, and Roost does not show it any more: %s", t.Path)
	}
	return nil
}
