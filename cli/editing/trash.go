package editing

import (
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
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func (a *commands) trashCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trash",
		Short: "List, restore and purge deleted tasks",
		Args:  failure.Arguments(0, 0, "roost trash list"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List deleted tasks, newest first", Args: failure.Arguments(0, 0, "roost trash list"),
			ValidArgsFunction: cobra.NoFileCompletions, RunE: a.trashList,
		},
		&cobra.Command{
			Use: "restore ID...", Short: "Put deleted tasks back", Args: failure.Arguments(1, -1, "roost trash restore ID"),
			ValidArgsFunction: a.trashNames, RunE: a.trashRestore,
		},
		a.purgeCommand(),
	)
	return cmd
}

func (a *commands) trashList(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	return a.Connect(ctx, func(c *client.Client) error {
		got, err := a.Pages(ctx, c, "/v1/trash", url.Values{}, 0)
		if err != nil {
			return err
		}
		if a.Flags.JSON {
			return a.PrintRaw(got.Doc())
		}
		found, err := app.Decoded[api.DeletedTask](got.Items)
		if err != nil {
			return err
		}
		return a.showTrash(found)
	})
}

func (a *commands) showTrash(found []api.DeletedTask) error {
	width := 0
	for _, t := range found {
		width = max(width, display.Columns(display.OneLine(t.Name)))
	}
	for _, t := range found {
		title := display.Cut(display.OneLine(t.Title), 60)
		if title == "" {
			title = "(no title)"
		}
		if t.Hidden {
			title += "  (hidden; its folder is where it was)"
		}
		if err := a.Println(fmt.Sprintf("%s  %s  %s", display.Pad(display.OneLine(t.Name), width), a.When(t.DeletedAt),
			title)); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		a.Say("the trash is empty")
	} else {
		a.Say("%d deleted task%s; get one back: roost trash restore ID", len(found), app.Plural(len(found)))
	}
	return nil
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
			var back api.Restored
			if _, err = c.Do(ctx, http.MethodPost, "/v1/trash/"+url.PathEscape(t.QualifiedName())+"/restore", nil, nil, &back); err != nil {
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
	cmd := &cobra.Command{
		Use:   "purge ID...|--all",
		Short: "Remove deleted tasks for good",
		Long: "Remove the bytes of deleted tasks for good. Of a task in another tool's storage only what\n" +
			"Roost keeps of it is removed; its folder stays, and stays hidden. Its checkpoints go too,\n" +
			"with the contents of files that no other task needs.",
		ValidArgsFunction: a.trashNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return failure.Usage("roost trash purge", "it needs either ids or --all", "roost trash purge ID  # or --all")
			}
			return a.purge(cmd, args, yes)
		},
	}
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
		for i, t := range chosen {
			body.Names[i] = t.QualifiedName()
		}
		return app.Exchange(ctx, a.App, c, client.Request{Method: http.MethodPost, Path: "/v1/purges", Body: body}, func(p api.Purged) error {
			for _, t := range p.Items {
				if err := a.tellPurged(t); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (a *commands) tellPurged(t api.DeletedTask) error {
	line := "purged " + display.OneLine(t.Name) + "  " + display.Cut(display.OneLine(t.Title), 60)
	if t.Hidden {
		line += "  (its folder was not touched and stays hidden)"
	}
	return a.Println(line)
}

// consent asks before bytes are removed. Only a whole yes is one.
func (a *commands) consent(cmd *cobra.Command, chosen []api.DeletedTask) error {
	what := fmt.Sprintf("remove %d task%s for good", len(chosen), app.Plural(len(chosen)))
	if !a.Interactive() {
		return &failure.Failure{
			Exit: failure.ExitInput,
			Code: "input_needed",
			What: what,
			Why:  "this cannot be undone, and there is no terminal to ask on",
			Try:  "roost trash purge ID --yes",
		}
	}
	for _, t := range chosen {
		a.Say("  %s  %s", t.Name, t.Title)
	}
	answer, err := a.Prompter().Read(cmd.Context(), what+"? This cannot be undone (yes, or anything else) > ")
	if err != nil || strings.TrimSpace(answer) != "yes" {
		return &failure.Failure{
			Exit: failure.ExitCancelled,
			Code: "cancelled",
			What: what,
			Why:  "it was not confirmed; nothing was removed",
			Try:  "roost trash list",
		}
	}
	return nil
}

// trashed finds tasks in the trash by name or id, or by an end of it; all of the trash when none is named. It finds
// every task, each once, before the command changes one.
func (a *commands) trashed(cmd *cobra.Command, c *client.Client, names []string) (out []api.DeletedTask, err error) {
	ctx := cmd.Context()
	if len(names) == 0 {
		got, err := a.Pages(ctx, c, "/v1/trash", url.Values{}, 0)
		if err != nil {
			return nil, err
		}
		return app.Decoded[api.DeletedTask](got.Items)
	}
	for _, name := range names {
		var t api.DeletedTask
		_, err := c.Do(ctx, http.MethodGet, "/v1/trash/"+url.PathEscape(name), nil, nil, &t)
		var p *client.Problem
		switch {
		case errors.As(err, &p) && p.Code == "ambiguous_id":
			f := failure.Usage("find "+name+" in the trash", p.Detail, "")
			for _, s := range p.Suggestions {
				f.Suggestions = append(f.Suggestions, cmd.CommandPath()+" "+failure.ShellWord(s))
			}
			f.Try = f.Suggestions[0]
			return nil, f
		case errors.As(err, &p) && p.Code == "task_not_found":
			f := &failure.Failure{
				Exit: failure.ExitNotFound, Code: "task_not_found", Status: 404,
				What: "find " + name + " in the trash", Why: "no deleted task has that name", Try: "roost trash list",
			}
			if t, err := c.Task(ctx, name); err == nil {
				f.Why, f.Try = "it is not deleted: it is task "+t.ID+" of "+t.Source, "roost show "+failure.ShellWord(t.Source+":"+t.ID)
			}
			return nil, f
		case err != nil:
			return nil, err
		}
		if !slices.ContainsFunc(out, func(o api.DeletedTask) bool { return o.QualifiedName() == t.QualifiedName() }) {
			out = append(out, t)
		}
	}
	return out, nil
}

// trashNames completes what is in the trash.
func (a *commands) trashNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	a.Muted = true
	var found []api.DeletedTask
	err := a.Connect(cmd.Context(), func(c *client.Client) (err error) {
		found, err = a.trashed(cmd, c, nil)
		return err
	})
	if err != nil {
		return nil, how
	}
	var out []string
	for _, t := range found {
		if api.ValidTaskID(t.ID) { // the shell would run or split it
			out = append(out, t.Name+"\t"+display.Cut(display.OneLine(t.Title), 50))
		}
	}
	return out, how
}
