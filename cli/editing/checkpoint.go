package editing

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/view"
)

func (a *commands) checkpointCommand() *cobra.Command {
	list := a.checkpointListCommand()
	cmd := &cobra.Command{
		Use: "checkpoint", Aliases: []string{"checkpoints"}, SuggestFor: []string{"diff", "restore", "snapshot", "snapshots"},
		Short: "List, compare and restore the states of files that an agent changed",
		Long: "A checkpoint is the content of the files that the agent of a task, or a command that it ran,\n" +
			"changed: before a turn's first change, after each command that changed something, and after\n" +
			"the turn. Files that only you touched are in none, and nothing here touches them. Your git\n" +
			"repository is never written to: no commit, branch, stash or index of yours changes.\n\n" +
			"C is c3 or 3; 0 for the files before the task changed anything; the beginning of a\n" +
			"checkpoint's commit; or '#12', the state at that message as roost show numbers it.",
		Example: "  roost checkpoint list 0199\n" +
			"  roost checkpoint diff 0199 c3\n" +
			"  roost checkpoint restore 0199 c3 --dry-run\n" +
			"  roost checkpoint restore 0199 c3 --path src",
		Args: failure.Arguments(0, 1, "roost checkpoint list ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return list.RunE(cmd, args)
		},
	}
	cmd.AddCommand(list, a.checkpointDiffCommand(), a.checkpointRestoreCommand(), a.checkpointSaveCommand(), a.checkpointGCCommand())
	return cmd
}

func (a *commands) checkpointListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list ID",
		Short: "List the checkpoints of a task, oldest first",
		Long: "List the checkpoints of a task, oldest first.\n\n" +
			"--json: {task_id, title, status, workspace, store, objects, bytes, items: [{checkpoint,\n" +
			"reason: before|command|turn|others|safety|restored|manual, title, at, run, call, message, row,\n" +
			"commit, store, files, tracked, unkept, rewound}]}. files is how many it found other than the\n" +
			"one before, tracked how many it holds; bytes is what the task keeps in the store.",
		Example: "  roost checkpoint list 0199",
		Args:    failure.Arguments(1, 1, "roost checkpoint list ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Connect(cmd.Context(), func(c *client.Client) error {
				return app.DocumentOf(cmd.Context(), a.App, c, app.PathOf(args[0], "checkpoints"), nil, a.printCheckpoints)
			})
		},
	}
}

func (a *commands) printCheckpoints(l api.Checkpoints) error {
	if len(l.Checkpoints) == 0 {
		a.Say("task %s has no checkpoints: nothing that it did changed a file", l.ID)
		return nil
	}
	name, reason := 0, 0
	for _, c := range l.Checkpoints {
		name, reason = max(name, len(c.Name())), max(reason, len(reasonText(c.Reason)))
	}
	style, tracked := a.OutStyle(), 0
	for _, c := range l.Checkpoints {
		tracked = max(tracked, c.Tracked)
		row := "     "
		if c.Row > 0 {
			row = fmt.Sprintf("%-5s", fmt.Sprintf("#%d", c.Row))
		}
		line := fmt.Sprintf("%s  %s  %s  %s  %s", style.Paint(view.Head, display.Pad(c.Name(), name)), a.When(&c.Time), row,
			display.Pad(reasonText(c.Reason), reason), titleText(c))
		if c.Unkept > 0 {
			line += style.Paint(view.Asked, fmt.Sprintf("  (%d not kept)", c.Unkept))
		}
		if c.Damaged > 0 {
			line += style.Paint(view.Bad, fmt.Sprintf("  (%d damaged)", c.Damaged))
		}
		if c.Rewound {
			line += style.Paint(view.Dim, "  (rewound)")
		}
		if err := a.Println(line); err != nil {
			return err
		}
	}
	if l.Damaged != "" {
		a.Warn(fmt.Sprintf("the contents in %s are damaged: %s; roost doctor %s names what is lost", l.Store, l.Damaged, failure.ShellWord(l.ID)))
	}
	a.Say("%d checkpoint%s of %d file%s, %s; what restoring one would do: roost checkpoint restore %s C --dry-run",
		len(l.Checkpoints), app.Plural(len(l.Checkpoints)), tracked, app.Plural(tracked), app.BytesText(l.Bytes), failure.ShellWord(l.ID))
	return nil
}

// titleText is what a checkpoint is named after. The reason already names the kind,
// so the words that a restore puts before the files are left out.
func titleText(c api.Checkpoint) string {
	return display.OneLine(view.CheckpointTitle(c.Title))
}

func reasonText(reason string) string { return display.OneLine(view.CheckpointReason(reason)) }

// checkpointText is a checkpoint for people, on a line.
func (a *commands) checkpointText(c api.Checkpoint) string {
	if c.Number == 0 {
		return "c0  the files before the task changed anything"
	}
	return fmt.Sprintf("%s  %s  %s  %s", c.Name(), a.When(&c.Time), reasonText(c.Reason), titleText(c))
}

func (a *commands) checkpointSaveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "save ID",
		Short: "Save a checkpoint of the files that a task changed, as they are now",
		Long: "Save a checkpoint of the files that a task changed, as they are now, also as you changed them\n" +
			"since.\n\n" +
			"--json: {task_id, saved, checkpoint: {...}} with the checkpoint as the list shows it; saved is\n" +
			"false, and checkpoint null, when nothing differs from the newest one.",
		Args: failure.Arguments(1, 1, "roost checkpoint save ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Connect(cmd.Context(), func(c *client.Client) error {
				return posted(cmd.Context(), a, c, args[0], "checkpoints", nil, func(s api.SavedCheckpoint) error {
					if !s.Saved || s.Checkpoint == nil {
						a.Say("nothing was saved: the files equal the newest checkpoint")
						return nil
					}
					return a.Println("saved " + a.checkpointText(*s.Checkpoint))
				})
			})
		},
	}
}

func (a *commands) checkpointGCCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove contents from the checkpoint stores that no task needs any more",
		Long: "Remove contents from the checkpoint stores that no task needs any more: those of tasks that\n" +
			"were purged. What a task's checkpoints hold is never removed, deleted tasks in the trash\n" +
			"included.\n\n" +
			"--json: {dry_run, items: [{store, removed: [TASK], objects, before, after, error}]}, bytes.",
		Args: failure.Arguments(0, 0, "roost checkpoint gc"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithEngine(cmd.Context(), func(s *local.Roost) error {
				all := s.Service()
				defer all.Close()
				found, err := all.Collect(cmd.Context(), dry)
				if err != nil {
					return err
				}
				return a.tellCollected(found, dry)
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would go")
	return cmd
}

func (a *commands) tellCollected(found []api.CollectedStore, dry bool) error {
	type collected struct {
		api.CollectedStore
		Problem string `json:"error,omitempty"`
	}
	items, freed := []collected{}, int64(0)
	var failed error
	for _, s := range found {
		c := collected{CollectedStore: s}
		if s.Err != nil {
			c.Problem, failed = s.Err.Error(), errors.Join(failed, s.Err)
		} else {
			freed += s.Before - s.After
		}
		items = append(items, c)
	}
	if a.Flags.JSON {
		return errors.Join(app.Encode(a.Out, map[string]any{"dry_run": dry, "items": items}, false), failed)
	}
	for _, s := range items {
		line := fmt.Sprintf("%s  %s", display.OneLine(s.Store), app.BytesText(s.After))
		switch {
		case s.Problem != "":
			line = display.OneLine(s.Store) + "  " + display.OneLine(s.Problem)
		case s.Before > s.After:
			line += fmt.Sprintf(", was %s", app.BytesText(s.Before))
		}
		if n := len(s.Removed); n > 0 {
			line += fmt.Sprintf("  of %d task%s that %s no more", n, app.Plural(n), map[bool]string{true: "is", false: "are"}[n == 1])
		}
		if err := a.Println(line); err != nil {
			return err
		}
	}
	verb := "freed"
	if dry {
		verb = "would free"
	}
	a.Say("%d store%s; %s %s", len(items), app.Plural(len(items)), verb, app.BytesText(freed))
	return failed
}

// checkpointNames completes a task, then its checkpoints, and then the words in more.
func (a *commands) checkpointNames(more ...string) app.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if len(args) == 0 {
			return a.TaskIDs(cmd, args, begun)
		}
		if len(args) > 1+len(more) {
			return nil, how
		}
		a.Muted = true
		ctx, cancel := context.WithTimeout(cmd.Context(), app.CompletionTime)
		defer cancel()
		var out []string
		err := a.Connect(ctx, func(c *client.Client) error {
			var l api.Checkpoints
			_, err := c.Do(ctx, http.MethodGet, app.PathOf(args[0], "checkpoints"), nil, nil, &l)
			for i := range l.Checkpoints { // the newest is wanted most
				c := l.Checkpoints[len(l.Checkpoints)-1-i]
				out = append(out, c.Name()+"\t"+display.Cut(reasonText(c.Reason)+" "+titleText(c), 50))
			}
			return err
		})
		if err != nil {
			return nil, how
		}
		return append(out, more...), how
	}
}
