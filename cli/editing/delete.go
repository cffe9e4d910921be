package editing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func (a *commands) deleteCommand() *cobra.Command {
	var how cascade
	cmd := help.Command("delete", func(cmd *cobra.Command, args []string) error {
		if how.with && how.keep {
			return failure.Usage("roost delete --children --keep-children", "the flags exclude each other", "roost delete ID --children")
		}
		return a.delete(cmd, args, how)
	})
	cmd.Flags().BoolVar(&how.with, "children", false, "and their subtasks, to the last one")
	cmd.Flags().BoolVar(&how.keep, "keep-children", false, "and leave their subtasks where they are")
	return cmd
}

// delete puts tasks into the trash. It finds all of them before it deletes one.
func (a *commands) delete(cmd *cobra.Command, ids []string, how cascade) error {
	ctx := cmd.Context()
	return a.Connect(ctx, func(c *client.Client) error {
		trees, err := api.TryEach(ids, func(id string) (api.Branch, error) {
			return client.Get[api.Branch](ctx, c, app.PathOf(id, "tree"), nil)
		})
		if err != nil {
			return err
		}
		chosen := api.Distinct(api.Each(trees, func(b api.Branch) api.Summary { return b.Task }), pathOf)
		all := slices.Clone(chosen)
		for _, b := range trees {
			all = append(all, app.Flat(b, 0).Tasks...)
		}
		more := api.Distinct(all, pathOf)[len(chosen):]
		with, err := how.decide(cmd, a, chosen, more)
		if err != nil {
			return err
		}
		subtasks := map[bool]string{true: "delete", false: "keep"}[with]
		done, gone := []api.DeletedTask{}, map[string]bool{}
		for _, t := range chosen {
			name := t.Key()
			if gone[name] { // deleted with a task before it
				continue
			}
			var d api.Deleted
			if err := c.Do(ctx, http.MethodDelete, app.PathOf(name), url.Values{"subtasks": {subtasks}}, nil, &d); err != nil {
				return errors.Join(a.printDone("deleted", done), err)
			}
			for _, one := range append([]api.DeletedTask{d.DeletedTask}, d.With...) {
				gone[one.Key()] = true
				if done = append(done, one); a.Flags.JSON {
					continue
				}
				if err := a.deleted(ctx, c, one); err != nil {
					return err
				}
			}
		}
		return a.printDone("deleted", done)
	})
}

// printDone prints, with --json, the results for several tasks.
func (a *commands) printDone(what string, done any) error {
	if !a.Flags.JSON {
		return nil
	}
	return a.PrintJSON(map[string]any{what: done})
}

// deleted prints one deleted task and how to restore it.
func (a *commands) deleted(ctx context.Context, c *client.Client, t api.DeletedTask) error {
	line := "deleted " + display.OneLine(t.ID)
	if title := display.Cut(display.OneLine(t.Title), 60); title != "" {
		line += "  " + title
	}
	if err := a.Println(line + "\n  get it back: roost trash restore " + api.ShellWord(t.Name)); err != nil {
		return err
	}
	if t.Hidden {
		a.Say("its folder stays as it is, and Roost does not show it any more: %s", t.Path)
	}
	if other, err := c.Task(ctx, t.ID); err == nil && other.ID == t.ID {
		a.Say("%s has a task of that id too, which is listed: %s", other.Source, other.Path)
	}
	return nil
}

// cascade is the decision about the subtasks of a deleted task.
type cascade struct {
	with, keep bool
}

// decide reports whether subtasks are deleted with their tasks.
func (c cascade) decide(cmd *cobra.Command, a *commands, tasks, more []api.Summary) (bool, error) {
	if len(more) == 0 || c.with || c.keep {
		return c.with, nil
	}
	first := tasks[0].ID
	what := "delete " + api.Plural(len(tasks), "task")
	if len(tasks) == 1 {
		what = "delete task " + first
	}
	some := api.Each(more[:min(len(more), 3)], func(t api.Summary) string { return t.ID })
	why := fmt.Sprintf("%s belong%s to it: %s", api.Plural(len(more), "subtask"),
		map[bool]string{true: "s"}[len(more) == 1], strings.Join(some, ", "))
	if len(more) > 3 {
		why += ", ..."
	}
	if !a.Interactive() {
		return false, &failure.Failure{
			Exit: failure.ExitInput, Code: "input_needed", What: what, Why: why + "; nothing was deleted",
			Try:         cmd.CommandPath() + " --children " + first,
			Suggestions: []string{cmd.CommandPath() + " --children " + first, cmd.CommandPath() + " --keep-children " + first},
		}
	}
	a.Say("%s", why)
	for {
		answer, err := a.Prompter().Read(cmd.Context(), "  y delete them too, k keep them, q delete nothing > ")
		word := strings.ToLower(strings.TrimSpace(answer))
		switch {
		case err != nil || word == "q":
			return false, failure.New(failure.ExitCancelled, "cancelled", what,
				"it was not confirmed; nothing was deleted", cmd.CommandPath()+" --keep-children "+first)
		case word == "y" || word == "yes":
			return true, nil
		case word == "k" || word == "keep":
			return false, nil
		}
	}
}

func (a *commands) trashCommand() *cobra.Command {
	cmd := help.Command("trash", func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(
		help.Command("trash list", a.Connected(a.trashList)),
		help.CommandFor("trash restore", a.trashNames, a.trashRestore),
		a.purgeCommand(),
	)
	return cmd
}

func (a *commands) trashList(ctx context.Context, c *client.Client, _ []string) error {
	got, err := a.Pages(ctx, c, "/v1/trash", url.Values{}, 0)
	return app.ShowList(a.App, got, err, a.showTrash)
}

func (a *commands) showTrash(found []api.DeletedTask) {
	width := 0
	for _, t := range found {
		width = max(width, display.Columns(display.OneLine(t.Name)))
	}
	for _, t := range found {
		title := cmp.Or(display.Cut(display.OneLine(t.Title), 60), "(no title)")
		if t.Hidden {
			title += "  (hidden; its folder is where it was)"
		}
		a.Println(fmt.Sprintf("%s  %s  %s", display.Pad(display.OneLine(t.Name), width), a.When(t.DeletedAt), title))
	}
	if len(found) == 0 {
		a.Say("the trash is empty")
	} else {
		a.Say("%s; get one back: roost trash restore ID", api.Plural(len(found), "deleted task"))
	}
}

func (a *commands) trashRestore(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	return a.Connect(ctx, func(c *client.Client) error {
		chosen, err := a.trashed(cmd, c, args)
		if err != nil {
			return err
		}
		done := []api.Restored{}
		for _, t := range chosen {
			path := "/v1/trash/" + url.PathEscape(t.QualifiedName()) + "/restore"
			back, failed := client.Post[api.Restored](ctx, c, path, nil)
			if err = failed; err != nil {
				break
			}
			if done = append(done, back); a.Flags.JSON {
				continue
			}
			if err = a.Println("restored " + display.OneLine(back.ID) + "  " + display.Cut(display.OneLine(t.Title), 60)); err != nil {
				break
			}
		}
		return errors.Join(a.printDone("restored", done), err)
	})
}

func (a *commands) purgeCommand() *cobra.Command {
	var all, yes bool
	cmd := help.CommandFor("trash purge", a.trashNames, func(cmd *cobra.Command, args []string) error {
		if all == (len(args) > 0) {
			return failure.Usage("roost trash purge", "it needs either ids or --all", "roost trash purge ID  # or --all")
		}
		return a.purge(cmd, args, yes)
	})
	cmd.Flags().BoolVar(&all, "all", false, "everything in the trash")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// purge removes deleted tasks irrevocably: those that are named, or all.
func (a *commands) purge(cmd *cobra.Command, names []string, yes bool) error {
	ctx := cmd.Context()
	return a.Connect(ctx, func(c *client.Client) error {
		chosen, err := a.trashed(cmd, c, names)
		if err != nil {
			return err
		}
		if len(chosen) == 0 && !a.Flags.JSON {
			a.Say("the trash is empty")
			return nil
		}
		if len(chosen) > 0 && !yes {
			if err := a.consent(cmd, chosen); err != nil {
				return err
			}
		}
		body := api.NewPurge{Names: make([]string, len(chosen))}
		body.Names = api.Each(chosen, func(t api.DeletedTask) string { return t.QualifiedName() })
		return app.Exchange(ctx, a.App, c, client.Request{Method: http.MethodPost, Path: "/v1/purges", Body: body}, func(p api.Purged) {
			for _, t := range p.Items {
				line := "purged " + display.OneLine(t.Name) + "  " + display.Cut(display.OneLine(t.Title), 60)
				if t.Hidden {
					line += "  (its folder was not touched and stays hidden)"
				}
				a.Println(line)
			}
		})
	})
}

// consent asks before bytes are removed. Only a complete "yes" counts.
func (a *commands) consent(cmd *cobra.Command, chosen []api.DeletedTask) error {
	what := fmt.Sprintf("remove %s for good", api.Plural(len(chosen), "task"))
	if !a.Interactive() {
		given := cmp.Or(strings.Join(api.Each(cmd.Flags().Args(), api.ShellWord), " "), "--all")
		return failure.New(failure.ExitInput, "input_needed", what,
			"this cannot be undone, and there is no terminal to ask on", "roost trash purge "+given+" --yes")
	}
	for _, t := range chosen {
		a.Say("  %s  %s", t.Name, t.Title)
	}
	answer, err := a.Prompter().Read(cmd.Context(), what+"? This cannot be undone (yes, or anything else) > ")
	if err != nil || strings.TrimSpace(answer) != "yes" {
		return failure.New(failure.ExitCancelled, "cancelled", what, "it was not confirmed; nothing was removed",
			"roost trash list")
	}
	return nil
}

// trashed finds tasks in the trash by name or id, or by an end of it; all tasks in the trash when none is named. It
// finds every task, each once, before the command changes one.
func (a *commands) trashed(cmd *cobra.Command, c *client.Client, names []string) (out []api.DeletedTask, err error) {
	ctx := cmd.Context()
	if len(names) == 0 {
		return app.All[api.DeletedTask](a.Pages(ctx, c, "/v1/trash", url.Values{}, 0))
	}
	for _, name := range names {
		t, err := client.Get[api.DeletedTask](ctx, c, "/v1/trash/"+url.PathEscape(name), nil)
		var p *client.Problem
		switch {
		case errors.As(err, &p) && p.Code == "ambiguous_id":
			f := failure.Usage("find "+name+" in the trash", p.Detail, "")
			for _, s := range p.Suggestions {
				f.Suggestions = append(f.Suggestions, cmd.CommandPath()+" "+api.ShellWord(s))
			}
			f.Try = f.Suggestions[0]
			return nil, f
		case errors.As(err, &p) && p.Code == "task_not_found":
			f := failure.NotFound("task_not_found", "find "+name+" in the trash",
				"no deleted task has that name", "roost trash list")
			if t, err := c.Task(ctx, name); err == nil {
				f.Why, f.Try = "it is not deleted: it is task "+t.ID+" of "+t.Source, "roost show "+api.ShellWord(t.Key())
			}
			return nil, f
		case err != nil:
			return nil, err
		}
		out = append(out, t)
	}
	return api.Distinct(out, api.DeletedTask.QualifiedName), nil
}

// trashNames completes the tasks in the trash.
func (a *commands) trashNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.CompletingInOrder(func() (out []string, err error) {
		err = a.Connect(cmd.Context(), func(c *client.Client) error {
			found, err := a.trashed(cmd, c, nil)
			out = api.Some(found, func(t api.DeletedTask) (string, bool) { // the shell would run or split another name
				return t.Name + "\t" + display.Cut(display.OneLine(t.Title), 50), api.ValidTaskID(t.ID)
			})
			return err
		})
		return out, err
	})
}
