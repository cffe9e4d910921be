package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

func (a *App) trashCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trash",
		Short: "List, restore and purge deleted tasks",
		Args:  count(0, 0, "roost trash list"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List deleted tasks, newest first", Args: count(0, 0, "roost trash list"),
			ValidArgsFunction: cobra.NoFileCompletions, RunE: a.trashList,
		},
		&cobra.Command{
			Use: "restore ID...", Short: "Put deleted tasks back", Args: count(1, -1, "roost trash restore ID"),
			ValidArgsFunction: a.trashNames, RunE: a.trashRestore,
		},
		a.purgeCommand(),
	)
	return cmd
}

func (a *App) trashList(cmd *cobra.Command, _ []string) error {
	if done, err := a.remotely(func(c *client.Client) error { return a.farTrash(cmd.Context(), c) }); done {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	found, err := s.Trash(cmd.Context())
	if err != nil {
		return err
	}
	if a.flags.json {
		return encode(a.Out, struct {
			Items []store.Trashed `json:"items"`
			Next  *string         `json:"next_cursor"`
		}{Items: found}, false)
	}
	return a.showTrash(found)
}

func (a *App) showTrash(found []store.Trashed) error {
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
		if err := a.println(fmt.Sprintf("%s  %s  %s", display.Pad(display.OneLine(t.Name), width), a.when(t.DeletedAt), title)); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		a.say("the trash is empty")
	} else {
		a.say("%d deleted task%s; get one back: roost trash restore ID", len(found), plural(len(found)))
	}
	return nil
}

// when is a day and a minute, for people.
func (a *App) when(stamp *string) string {
	if stamp == nil {
		return "-               "
	}
	return strings.Replace((*stamp)[:16], "T", " ", 1)
}

func (a *App) trashRestore(cmd *cobra.Command, args []string) error {
	if done, err := a.remotely(func(c *client.Client) error { return a.farRestore(cmd.Context(), c, args) }); done {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	chosen, err := a.chooseTrashed(cmd, s, args)
	if err != nil {
		return err
	}
	type place struct {
		ID     string `json:"id"`
		Source string `json:"source"`
		Path   string `json:"path"`
	}
	done := []place{}
	for _, t := range chosen {
		ref, failed := s.Restore(cmd.Context(), t.Word())
		if errors.Is(failed, store.ErrTaken) {
			err = &Failure{
				Exit: ExitBusy, Code: "task_exists", Status: 409, Task: t.ID, What: "restore task " + t.Name, Why: failed.Error(),
				Try: "roost delete " + t.ID + ", then restore this one",
			}
		} else if failed != nil {
			err = failed
		}
		if err != nil {
			break
		}
		done = append(done, place{ref.ID, ref.Source, ref.Dir})
		if !a.flags.json {
			if err = a.println("restored " + display.OneLine(ref.ID) + "  " + display.Cut(display.OneLine(t.Title), 60)); err != nil {
				break
			}
		}
	}
	if a.flags.json {
		out := struct {
			Restored []place `json:"restored"`
		}{done}
		if told := encode(a.Out, out, false); err == nil {
			err = told
		}
	}
	return err
}

func (a *App) purgeCommand() *cobra.Command {
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
				return usage("roost trash purge", "it needs either ids or --all", "roost trash purge ID  # or --all")
			}
			if done, err := a.remotely(func(c *client.Client) error { return a.farPurge(cmd, c, args, yes) }); done {
				return err
			}
			return a.withEngine(cmd.Context(), func(s *store.Store, e *engine.Engine) (err error) {
				var chosen []store.Trashed
				if all {
					chosen, err = s.Trash(cmd.Context())
				} else {
					chosen, err = a.chooseTrashed(cmd, s, args)
				}
				if err != nil {
					return err
				}
				if len(chosen) > 0 && !yes {
					if err := a.consent(cmd, chosen); err != nil {
						return err
					}
				}
				return a.purge(cmd, e, chosen)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything in the trash")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *App) purge(cmd *cobra.Command, e *engine.Engine, chosen []store.Trashed) error {
	done := []store.Trashed{}
	words := make([]string, len(chosen))
	for i, t := range chosen {
		words[i] = t.Word()
	}
	err := e.PurgeAll(cmd.Context(), words, func(t store.Trashed) error {
		done = append(done, t)
		if a.flags.json {
			return nil
		}
		return a.tellPurged(t)
	})
	if a.flags.json {
		out := struct {
			Purged []store.Trashed `json:"purged"`
		}{done}
		if told := encode(a.Out, out, false); err == nil {
			err = told
		}
	} else if len(chosen) == 0 {
		a.say("the trash is empty")
	}
	return err
}

func (a *App) tellPurged(t store.Trashed) error {
	line := "purged " + display.OneLine(t.Name) + "  " + display.Cut(display.OneLine(t.Title), 60)
	if t.Hidden {
		line += "  (its folder was not touched and stays hidden)"
	}
	return a.println(line)
}

// consent asks before bytes are removed. Only a whole yes is one.
func (a *App) consent(cmd *cobra.Command, chosen []store.Trashed) error {
	what := fmt.Sprintf("remove %d task%s for good", len(chosen), plural(len(chosen)))
	if !a.interactive() {
		return &Failure{Exit: ExitInput, Code: "input_needed", What: what, Why: "this cannot be undone, and there is no terminal to ask on", Try: "roost trash purge ID --yes"}
	}
	for _, t := range chosen {
		a.say("  %s  %s", t.Name, t.Title)
	}
	answer, err := a.prompter().Read(cmd.Context(), what+"? This cannot be undone (yes, or anything else) > ")
	if err != nil || strings.TrimSpace(answer) != "yes" {
		return &Failure{Exit: ExitCancelled, Code: "cancelled", What: what, Why: "it was not confirmed; nothing was removed", Try: "roost trash list"}
	}
	return nil
}

// chooseTrashed finds every one before anything is done, each once.
func (a *App) chooseTrashed(cmd *cobra.Command, s *store.Store, args []string) ([]store.Trashed, error) {
	var out []store.Trashed
	seen := map[string]bool{}
	for _, given := range args {
		t, err := s.Trashed(cmd.Context(), given)
		var many *store.AmbiguousError
		switch {
		case errors.As(err, &many):
			f := usage("find "+given+" in the trash", err.Error(), "")
			for _, c := range many.Candidates {
				f.Suggestions = append(f.Suggestions, cmd.CommandPath()+" "+shellWord(c.Source+":"+c.ID))
			}
			f.Try = f.Suggestions[0]
			return nil, f
		case errors.Is(err, store.ErrNotFound):
			f := &Failure{
				Exit: ExitNotFound, Code: "task_not_found", Status: 404, What: "find " + given + " in the trash",
				Why: "nothing there goes by that name", Try: "roost trash list",
			}
			if ref, err := s.Find(cmd.Context(), given); err == nil {
				f.Why, f.Try = "it is not deleted: it is task "+ref.ID+" of "+ref.Source, "roost show "+shellWord(ref.Source+":"+ref.ID)
			}
			return nil, f
		case err != nil:
			return nil, err
		}
		if !seen[t.Word()] {
			seen[t.Word()] = true
			out = append(out, t)
		}
	}
	return out, nil
}

// trashNames completes what is in the trash.
func (a *App) trashNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	a.muted = true
	s, err := a.open()
	if err != nil {
		return nil, how
	}
	found, err := s.Trash(cmd.Context())
	if err != nil {
		return nil, how
	}
	var out []string
	for _, t := range found {
		if roofmt.ValidID(t.ID) { // the shell would run or split it
			out = append(out, t.Name+"\t"+display.Cut(display.OneLine(t.Title), 50))
		}
	}
	return out, how
}
