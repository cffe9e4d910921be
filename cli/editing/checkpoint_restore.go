package editing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/view"
)

// conflictRules are the ways to handle files that others changed.
var conflictRules = []string{"keep", "merge", "overwrite"}

func (a *commands) checkpointRestoreCommand() *cobra.Command {
	var o checkpoints.RestoreOptions
	var yes bool
	var rule string
	cmd := &cobra.Command{
		Use:   "restore ID [C]",
		Short: "Put the files that a task changed back as they were at a checkpoint",
		Long: "Put the files that a task changed back as they were at a checkpoint; without C, as before\n" +
			"the newest change. Only files go back: for the histories there is roost rewind ID, for\n" +
			"both roost rewind ID --files.\n\n" +
			"On a terminal what would be done is shown first, and asked. A checkpoint of what is replaced is saved, and\n" +
			"roost undo ID gives everything back. A file that others changed since, or that changed\n" +
			"while a command ran for longer than 3 seconds (by it or by another program), is a conflict:\n" +
			"it is kept as it is, or with --on-conflict merge the task's changes are taken out of it, or\n" +
			"with overwrite it goes. Either all files are put back or none; a restore that is killed is\n" +
			"finished by whoever works on the task next.\n\n" +
			"Exit codes: 14 when there was nothing but conflicts and no --on-conflict was given; 15 when\n" +
			"content of a file was not kept, so that it is not back. A dry run exits with 0.\n\n" +
			"--json: {task_id, dry_run, to: {checkpoint, ...}, safety, files, conflicts, lost: [{path,\n" +
			"change: added|changed|deleted|mode, how: restore|merge|overwrite, why, doubt, size}], bytes, left: [PATH],\n" +
			"outcome: done|rolled_back|nothing}.",
		Example: "  roost checkpoint restore 0199 --dry-run\n" +
			"  roost checkpoint restore 0199 c3\n" +
			"  roost checkpoint restore 0199 '#12' --path src --on-conflict merge --yes",
		Args: failure.Arguments(1, 2, "roost checkpoint restore ID C"), ValidArgsFunction: a.checkpointNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				o.To = args[1]
			}
			if err := a.checkConflictRule(cmd, rule); err != nil {
				return err
			}
			o.OnConflict = rule
			if o.Workspace != "" {
				o.Workspace = a.Abs(o.Workspace)
			}
			return a.restore(cmd.Context(), args[0], o, yes)
		},
	}
	fl := cmd.Flags()
	conflictFlag(cmd, &rule)
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show what would be done")
	fl.BoolVar(&yes, "yes", false, "do not ask")
	fl.StringArrayVar(&o.Paths, "path", nil, "only this `file` or folder (repeatable)")
	fl.StringVarP(&o.Workspace, "workspace", "C", "", "the `folder` that the files lie in now (default: the task's workspace)")
	app.Complete(cmd, "workspace", app.Folders)
	return cmd
}

func conflictFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "on-conflict", "", "what becomes of files that others changed: keep (default), merge or overwrite")
	app.Complete(cmd, "on-conflict", app.Words(conflictRules...))
}

func (a *commands) checkConflictRule(cmd *cobra.Command, rule string) error {
	if rule == "" && !cmd.Flags().Changed("on-conflict") || slices.Contains(conflictRules, rule) {
		return nil
	}
	return failure.Usage(cmd.CommandPath()+" --on-conflict "+rule, "want keep, merge or overwrite", cmd.CommandPath()+" --on-conflict merge")
}

func (a *commands) restore(ctx context.Context, id string, o checkpoints.RestoreOptions, yes bool) error {
	return a.Connect(ctx, func(c *client.Client) error {
		r, doc, err := agreed(ctx, a, c, restoring{
			path: checkpointPath(id, o.To, "restore"),
			what: "restore files of task " + id,
			try:  "roost checkpoint restore " + failure.ShellWord(id),
			ask:  !o.DryRun && !yes,
			body: func(dry bool, plan string) any {
				return api.NewRestore{
					OnConflict: o.OnConflict,
					Paths:      o.Paths,
					Workspace:  o.Workspace,
					Plan:       plan,
					DryRun:     o.DryRun || dry,
				}
			},
		}, func(r api.RestoreResult) *api.RestoreResult { return &r })
		if err != nil {
			return err
		}
		shown := error(nil)
		if a.Flags.JSON {
			shown = a.PrintRaw(doc)
		} else {
			shown = a.tellRestore(r)
		}
		return errors.Join(shown, restoreFailure(r))
	})
}

// agree shows the user what a restore would do, and asks. Only a yes counts as one.
func (a *commands) agree(ctx context.Context, what string, r api.RestoreResult, try string) error {
	for _, line := range a.restoreLines(r, display.Style{On: a.Colour()}) {
		fmt.Fprintln(a.Err, line)
	}
	answer, err := a.Prompter().Read(ctx, fmt.Sprintf("put %d file%s back? (y, or anything else) > ", len(r.Files), app.Plural(len(r.Files))))
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil || answer != "y" && answer != "yes" {
		return &failure.Failure{
			Exit: failure.ExitCancelled,
			Code: "cancelled",
			Task: r.ID,
			What: what,
			Why:  "it was not confirmed; nothing was changed",
			Try:  try + " --dry-run",
		}
	}
	return nil
}

// tellRestore is the result of a restore.
func (a *commands) tellRestore(r api.RestoreResult) error {
	for _, line := range a.restoreLines(r, a.OutStyle()) {
		if err := a.Println(line); err != nil {
			return err
		}
	}
	for _, path := range r.Left {
		a.Warn("changed by others while files were put back, and left as it is: " + path)
	}
	if !r.DryRun && r.Outcome == "done" {
		a.Say("  back: roost undo %s", failure.ShellWord(r.ID))
	}
	return nil
}

// restoreLines are what a restore does, for people: the checkpoint, each file, the sum.
func (a *commands) restoreLines(r api.RestoreResult, style display.Style) []string {
	verb := "restored"
	if r.Outcome == "" {
		verb = "to restore"
	}
	lines := []string{style.Paint(view.Head, verb+" "+display.OneLine(r.ID)+"  "+a.checkpointText(r.To))}
	item := func(look view.Style, word string, i api.RestoreItem, note string) {
		if note != "" {
			note = "  (" + note + ")"
		}
		lines = append(lines, "  "+style.Paint(look, fmt.Sprintf("%-8s", word))+"  "+display.OneLine(i.Path)+note)
	}
	looks := map[string]view.Style{
		api.FileAdded:   view.Added,
		api.FileDeleted: view.Removed,
		api.FileChanged: view.Asked,
		api.FileMode:    view.Asked,
	}
	for _, i := range r.Files {
		note := map[string]string{"merge": "merged: the changes of others stay", "overwrite": "the changes of others are lost"}[i.How]
		item(looks[i.Change], i.Change, i, note)
	}
	for _, i := range r.Conflicts {
		item(view.Asked, "conflict", i, "kept: "+whyText(i.Why, "others changed it since"))
	}
	for _, i := range r.Lost {
		item(view.Bad, "lost", i, "kept: "+whyText(i.Why, "its content at that time was not kept"))
	}
	sum := fmt.Sprintf("%d file%s, %s", len(r.Files), app.Plural(len(r.Files)), app.BytesText(r.Bytes))
	if len(r.Files) == 0 {
		sum = "nothing to put back"
	}
	if n := len(r.Conflicts); n > 0 {
		sum += fmt.Sprintf("; %d conflict%s kept (--on-conflict merge|overwrite)", n, app.Plural(n))
	}
	if n := len(r.Lost); n > 0 {
		sum += fmt.Sprintf("; %d lost", n)
	}
	return append(lines, "  "+sum)
}

func whyText(why, otherwise string) string {
	if why == "" {
		return otherwise
	}
	return display.OneLine(why)
}

// restoreFailure is the failure that a finished restore reports through its exit code.
func restoreFailure(r api.RestoreResult) error {
	if !r.DryRun && len(r.Lost) > 0 {
		return &failure.Failure{
			Exit: failure.ExitDamaged,
			Code: "content_lost",
			Task: r.ID,
			What: "restore all files of task " + r.ID,
			Why:  namesText(r.Lost) + ": the content at that time was not kept, so that the file stays as it is",
			Try:  "roost checkpoint diff " + failure.ShellWord(r.ID) + " " + r.To.Name(),
		}
	}
	return nil
}

// namesText names a few files.
func namesText(items []api.RestoreItem) string {
	var names []string
	for _, i := range items[:min(len(items), 5)] {
		names = append(names, display.OneLine(i.Path))
	}
	text := strings.Join(names, ", ")
	if n := len(items) - len(names); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// filesText describes an action that put files back.
func filesText(d api.Action) string {
	text := fmt.Sprintf("%d file%s", d.Files, app.Plural(d.Files))
	if d.Kind != kindRestore {
		return "with " + text
	}
	if d.Checkpoint != nil {
		text += fmt.Sprintf(" to c%d", *d.Checkpoint)
	}
	return "a restore of " + text
}

// kindRestore is an action that put files back and moved no history.
const kindRestore = api.ActionRestore

// printKept names the files that undo or redo left alone.
func (a *commands) printKept(r *api.RestoreResult) error {
	if r == nil {
		return nil
	}
	for _, i := range r.Conflicts {
		if err := a.Println("  kept: " + display.OneLine(i.Path) + "  (" + whyText(i.Why, "others changed it since") + ")"); err != nil {
			return err
		}
	}
	for _, path := range r.Left {
		a.Warn("changed by others while files were put back, and left as it is: " + path)
	}
	return nil
}
