package editing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/roost-dev/roost/view"
)

func (a *commands) checkpointCommand() *cobra.Command {
	list := help.Command("checkpoint list", a.Connected(func(ctx context.Context, c *client.Client, args []string) error {
		return app.DocumentOf(ctx, a.App, c, app.PathOf(args[0], "checkpoints"), nil, a.printCheckpoints)
	}))
	cmd := help.CommandFor("checkpoint", app.First(a.TaskIDs), func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return list.RunE(cmd, args)
	})
	cmd.Aliases, cmd.SuggestFor = []string{"checkpoints"}, []string{"diff", "restore", "snapshot", "snapshots"}
	cmd.AddCommand(list, a.checkpointDiffCommand(), a.checkpointRestoreCommand(), a.checkpointSaveCommand(), a.checkpointGCCommand())
	return cmd
}

func (a *commands) printCheckpoints(l api.Checkpoints) {
	if len(l.Checkpoints) == 0 {
		a.Say("task %s has no checkpoints: nothing that the task did changed a file", l.ID)
		return
	}
	name, reason := 0, 0
	for _, c := range l.Checkpoints {
		name, reason = max(name, len(c.Name())), max(reason, len(reasonText(c.Reason)))
	}
	style, tracked, lines := a.OutStyle(), 0, []string(nil)
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
		lines = append(lines, line)
	}
	a.Painted(lines)
	if l.Damaged != "" {
		a.Warn(fmt.Sprintf("the contents in %s are damaged: %s; roost doctor %s names what is lost", l.Store, l.Damaged, api.ShellWord(l.ID)))
	}
	a.Say("%s of %s, %s; what restoring one would do: roost checkpoint restore %s C --dry-run",
		api.Plural(len(l.Checkpoints), "checkpoint"), api.Plural(tracked, "file"), api.SizeText(l.Bytes), api.ShellWord(l.ID))
}

// titleText returns the title of a checkpoint without the words that a restore puts before the files: the reason
// already names the kind.
func titleText(c api.Checkpoint) string { return display.OneLine(view.CheckpointTitle(c.Title)) }

func reasonText(reason string) string { return display.OneLine(view.CheckpointReason(reason)) }

// checkpointText describes a checkpoint on one line.
func (a *commands) checkpointText(c api.Checkpoint) string {
	if c.Number == 0 {
		return "c0  the files before the task changed anything"
	}
	return fmt.Sprintf("%s  %s  %s  %s", c.Name(), a.When(&c.Time), reasonText(c.Reason), titleText(c))
}

func (a *commands) checkpointSaveCommand() *cobra.Command {
	return help.Command("checkpoint save", a.Connected(func(ctx context.Context, c *client.Client, args []string) error {
		return posted(ctx, a, c, args[0], "checkpoints", nil, func(s api.SavedCheckpoint) {
			if !s.Saved || s.Checkpoint == nil {
				a.Say("nothing was saved: the files equal the newest checkpoint")
				return
			}
			a.Println("saved " + a.checkpointText(*s.Checkpoint))
		})
	}))
}

func (a *commands) checkpointGCCommand() *cobra.Command {
	var dry bool
	cmd := help.Command("checkpoint gc", a.Connected(func(ctx context.Context, c *client.Client, _ []string) error {
		found, err := client.Post[api.Collection](ctx, c, "/v1/collections", api.NewCollection{DryRun: dry})
		if err != nil {
			return err
		}
		var failed error
		for _, s := range found.Items {
			if s.Problem != nil {
				failed = errors.Join(failed, s.Problem)
			}
		}
		return errors.Join(app.Show(a.App, found, a.showCollection), failed)
	}))
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be deleted")
	return cmd
}

func (a *commands) showCollection(found api.Collection) {
	lines, freed := []string(nil), int64(0)
	for _, s := range found.Items {
		line := fmt.Sprintf("%s  %s", display.OneLine(s.Store), api.SizeText(s.After))
		switch {
		case s.Problem != nil:
			line = display.OneLine(s.Store) + "  " + display.OneLine(s.Problem.Detail)
		case s.Before > s.After:
			freed += s.Before - s.After
			line += fmt.Sprintf(", was %s", api.SizeText(s.Before))
		}
		if n := len(s.Removed); n > 0 {
			line += fmt.Sprintf("  of %s no longer there", api.Plural(n, "task"))
		}
		lines = append(lines, line)
	}
	a.Println(lines...)
	verb := map[bool]string{true: "would free", false: "freed"}[found.DryRun]
	a.Say("%s; %s %s", api.Plural(len(found.Items), "store"), verb, api.SizeText(freed))
}

// checkpointNames completes a task, then its checkpoints, and then the words in more.
func (a *commands) checkpointNames(more ...string) app.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return a.TaskIDs(cmd, args, begun)
		}
		return a.CompletingInOrder(func() (out []string, err error) {
			if len(args) > 1+len(more) {
				return nil, nil
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), app.CompletionTime)
			defer cancel()
			err = a.Connect(ctx, func(c *client.Client) error {
				l, err := client.Get[api.Checkpoints](ctx, c, app.PathOf(args[0], "checkpoints"), nil)
				for _, c := range slices.Backward(l.Checkpoints) { // the newest is wanted most
					out = append(out, c.Name()+"\t"+display.Cut(reasonText(c.Reason)+" "+titleText(c), 50))
				}
				return err
			})
			return append(out, more...), err
		})
	}
}

func (a *commands) checkpointRestoreCommand() *cobra.Command {
	var o api.NewRestore
	var yes bool
	var hunk int
	cmd := help.CommandFor("checkpoint restore", a.checkpointNames(), func(cmd *cobra.Command, args []string) error {
		o.Workspace = a.GivenFolder(o.Workspace)
		if hunk > 0 && len(o.Paths) != 1 {
			return failure.Usage(fmt.Sprintf("%s --hunk %d", cmd.CommandPath(), hunk), "the flag needs the file, with one --path",
				cmd.CommandPath()+" ID C --path FILE --hunk 1")
		}
		return a.restore(cmd.Context(), args[0], append(args, "")[1], o, hunk, yes)
	})
	fl := cmd.Flags()
	app.Number(fl, &hunk, "hunk", 0, 1, 0, "1 --path FILE", "only this hunk of checkpoint diff ID C now, from 1; with one --path")
	conflictFlag(cmd, &o.OnConflict)
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show what would be done")
	fl.BoolVar(&yes, "yes", false, "do not ask")
	fl.StringArrayVar(&o.Paths, "path", nil, "only this `file` or folder (repeatable)")
	fl.StringVarP(&o.Workspace, "workspace", "C", "", "the `folder` that the files lie in now (default: the task's workspace)")
	return cmd
}

// conflictFlag adds the flag for the way to handle files that others changed.
func conflictFlag(cmd *cobra.Command, to *string) {
	app.OneOf(cmd, to, "on-conflict", "", "what becomes of files that others changed: keep (default), merge or overwrite",
		"keep", "merge", "overwrite")
}

// restore restores files to a checkpoint; "" is the one before the newest change.
func (a *commands) restore(ctx context.Context, id, to string, o api.NewRestore, hunk int, yes bool) error {
	return a.Connect(ctx, func(c *client.Client) (err error) {
		if hunk > 0 {
			if o.Shown, err = shownHunk(ctx, c, id, to, o.Paths[0], hunk); err != nil {
				return err
			}
		}
		return agreed(ctx, a, c, restoring{
			path: checkpointPath(id, to, "restore"),
			what: "restore files of task " + id,
			try:  "roost checkpoint restore " + api.ShellWord(id),
			ask:  !o.DryRun && !yes,
			body: func(dry bool, plan string) any {
				b := o
				b.DryRun, b.Plan = o.DryRun || dry, plan
				return b
			},
		}, func(r api.RestoreResult) api.RestoreResult { return r }, a.tellRestore)
	})
}

// shownHunk identifies a hunk of the present difference between a checkpoint and now.
func shownHunk(ctx context.Context, c *client.Client, id, to, path string, number int) (*api.Shown, error) {
	d, err := client.Get[api.Diff](ctx, c, checkpointPath(id, to, "diff"), url.Values{"path": {path}})
	if err != nil {
		return nil, err
	}
	for _, f := range d.Files {
		if len(d.Files) == 1 && number <= len(f.Hunks) {
			return &api.Shown{To: d.To, Hunk: number, Hash: f.Hunks[number-1].Hash}, nil
		}
	}
	return nil, failure.NotFound("hunk_not_found", "restore a hunk of "+display.OneLine(path),
		fmt.Sprintf("the difference between %s and now has no hunk %d of that file", d.From, number),
		fmt.Sprintf("roost checkpoint diff %s %s now --path %s", api.ShellWord(id), d.From, api.ShellWord(path))).OfTask(id)
}

// agree shows the user what a restore would do, and asks. Only a yes counts as consent.
func (a *commands) agree(ctx context.Context, what string, r api.RestoreResult, try string) error {
	fmt.Fprintln(a.Err, strings.Join(a.restoreLines(r, a.ErrStyle()), "\n"))
	if agreed, _ := a.Agree(ctx, fmt.Sprintf("put %s back?", api.Plural(len(r.Files), "file"))); !agreed {
		return failure.New(failure.ExitCancelled, "cancelled", what, "it was not confirmed; nothing was changed",
			try+" --dry-run").OfTask(r.ID)
	}
	return nil
}

// tellRestore prints the result of a restore.
func (a *commands) tellRestore(r api.RestoreResult) {
	a.printRestored(r)
	if !r.DryRun && r.Outcome == "done" {
		a.Say("  back: roost undo %s", api.ShellWord(r.ID))
	}
}

// printRestored prints which files were restored, and which others changed meanwhile.
func (a *commands) printRestored(r api.RestoreResult) {
	a.Painted(a.restoreLines(r, a.OutStyle()))
	a.warnLeft(r)
}

func (a *commands) warnLeft(r api.RestoreResult) {
	for _, path := range r.Left {
		a.Warn("changed by others while files were put back, and left as it is: " + path)
	}
}

// previewLines bounds the difference of a file that a restore shows before it asks.
const previewLines = 40

// restoreLines returns lines about a restore: the checkpoint, each file, the sum.
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
		lines = append(lines, "  "+style.Paint(look, fmt.Sprintf("%-8s", display.OneLine(word)))+"  "+display.OneLine(i.Path)+note)
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
		if patch := strings.Split(strings.TrimSuffix(display.Safe(i.Patch), "\n"), "\n"); i.Patch != "" && len(patch) <= previewLines {
			for _, line := range patch {
				lines = append(lines, "    "+style.Paint(lineStyle(line), line))
			}
		}
	}
	for _, i := range r.Conflicts {
		item(view.Asked, "conflict", i, "kept: "+cmp.Or(display.OneLine(i.Why), "others changed it since"))
	}
	for _, i := range r.Lost {
		item(view.Bad, "lost", i, "kept: "+cmp.Or(display.OneLine(i.Why), "its content at that time was not kept"))
	}
	sum := fmt.Sprintf("%s, %s", api.Plural(len(r.Files), "file"), api.SizeText(r.Bytes))
	if r.Workspace != "" {
		sum += ", in " + display.OneLine(r.Workspace)
	}
	if len(r.Files) == 0 {
		sum = "nothing to put back"
	}
	if n := len(r.Conflicts); n > 0 {
		sum += fmt.Sprintf("; %s kept (--on-conflict merge|overwrite)", api.Plural(n, "conflict"))
	}
	if n := len(r.Lost); n > 0 {
		sum += fmt.Sprintf("; %d lost", n)
	}
	return append(lines, "  "+sum)
}

// restoreFailure returns the failure that the exit code of a finished restore reports; nil for none.
func restoreFailure(r api.RestoreResult) error {
	if r.DryRun || len(r.Lost) == 0 {
		return nil
	}
	return failure.New(failure.ExitDamaged, "content_lost", "restore all files of task "+r.ID,
		namesText(r.Lost)+": the content at that time was not kept, so that the file stays as it is",
		"roost checkpoint diff "+api.ShellWord(r.ID)+" "+r.To.Name()).OfTask(r.ID)
}

// namesText names a few files.
func namesText(items []api.RestoreItem) string {
	names := api.Each(items[:min(len(items), 5)], func(i api.RestoreItem) string { return display.OneLine(i.Path) })
	text := strings.Join(names, ", ")
	if n := len(items) - len(names); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// filesText describes an action that restored files.
func filesText(d api.Action) string {
	text := api.Plural(d.Files, "file")
	if d.Kind != api.ActionRestore {
		return "with " + text
	}
	if d.Checkpoint != nil {
		text += fmt.Sprintf(" to c%d", *d.Checkpoint)
	}
	return "a restore of " + text
}

// printKept names the files that undo or redo left unchanged.
func (a *commands) printKept(r *api.RestoreResult) {
	if r == nil {
		return
	}
	for _, i := range r.Conflicts {
		why := cmp.Or(display.OneLine(i.Why), "others changed it since")
		a.Println("  kept: " + display.OneLine(i.Path) + "  (" + why + ")")
	}
	a.warnLeft(*r)
}

// barWidth is the number of signs in the longest bar of --stat.
const barWidth = 40

func (a *commands) checkpointDiffCommand() *cobra.Command {
	var paths []string
	var stat bool
	show := func(ctx context.Context, c *client.Client, args []string) error {
		args = append(args, "", "")
		q := url.Values{}
		app.SetQuery(q, "to", args[2])
		app.SetQuery(q, "path", strings.Join(paths, "\n"))
		if stat {
			q.Set("stat", "true")
		}
		var failed error // of the pager
		err := app.DocumentOf(ctx, a.App, c, checkpointPath(args[0], args[1], "diff"), q, func(d api.Diff) {
			failed = a.showDiff(ctx, d, stat)
		})
		return cmp.Or(failed, err)
	}
	cmd := help.CommandFor("checkpoint diff", a.checkpointNames("now"), a.Connected(show))
	fl := cmd.Flags()
	fl.BoolVar(&stat, "stat", false, "only count lines, a bar a file")
	fl.StringArrayVar(&paths, "path", nil, "only this `file` or folder (repeatable)")
	return cmd
}

// showDiff prints a difference for people.
func (a *commands) showDiff(ctx context.Context, d api.Diff, stat bool) error {
	if len(d.Files) == 0 {
		a.Say("nothing differs between %s and %s", d.From, d.To)
		return nil
	}
	if stat {
		return a.printStat(d.Files)
	}
	return a.Paged(ctx, func() error { return a.printPatch(d.Files) })
}

// printPatch prints a difference as a patch: for programs byte for byte, so that it can be applied. Everything in it
// comes from files and models, names included.
func (a *commands) printPatch(files []api.FileDiff) error {
	for _, f := range files {
		if f.Patch == "" || f.Why != "" {
			a.Styled(view.Head, f.Change+"  "+display.OneLine(f.Path)+"  ("+diffNote(f)+")")
			continue
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(a.Result(f.Patch), "\n"), "\n") {
			a.Styled(lineStyle(line), line)
		}
	}
	return a.Flush()
}

func lineStyle(line string) view.Style {
	if strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ") {
		return view.Head
	}
	return view.DiffStyle(line)
}

// diffNote returns a note on a difference that a patch does not show.
func diffNote(f api.FileDiff) string {
	var notes []string
	if f.From.Kind == api.KindFile && f.To.Kind == api.KindFile && f.From.Mode != f.To.Mode {
		notes = append(notes, fmt.Sprintf("mode %03o, was %03o", f.To.Mode, f.From.Mode))
	}
	if f.From.Kind != f.To.Kind && f.From.Kind != api.KindGone && f.To.Kind != api.KindGone {
		notes = append(notes, "a "+kindText(f.To.Kind)+", was a "+kindText(f.From.Kind))
	}
	if f.Why != "" {
		notes = append(notes, "not compared by lines: "+display.OneLine(f.Why))
	}
	return strings.Join(notes, "; ")
}

func kindText(kind string) string {
	texts := map[string]string{api.KindFile: "file", api.KindLink: "link", api.KindOther: "folder or device"}
	return cmp.Or(texts[kind], display.OneLine(kind))
}

// printStat prints a line with a bar for each file.
func (a *commands) printStat(files []api.FileDiff) error {
	style, width, most, added, removed := a.OutStyle(), 0, 0, 0, 0
	for _, f := range files {
		width = max(width, min(display.Columns(display.OneLine(f.Path)), 60))
		most, added, removed = max(most, f.Added+f.Removed), added+f.Added, removed+f.Removed
	}
	var lines []string
	for _, f := range files {
		end := diffNote(f)
		if by := strings.Join(api.Each(f.Authors, view.Author), "; "); by != "" {
			end = strings.TrimPrefix(end+"; by "+display.OneLine(by), "; ")
		}
		if f.Added+f.Removed > 0 {
			plus, minus := bar(f.Added, f.Removed, most)
			end = strings.TrimRight(fmt.Sprintf("%5d %s%s  %s", f.Added+f.Removed, style.Paint(view.Added, strings.Repeat("+", plus)),
				style.Paint(view.Removed, strings.Repeat("-", minus)), end), " ")
		}
		name := display.Pad(display.Cut(display.OneLine(f.Path), width), width)
		lines = append(lines, fmt.Sprintf(" %-7s  %s | %s", display.OneLine(f.Change), name, end))
	}
	return a.Painted(append(lines, fmt.Sprintf(" %s, %s added, %d removed", api.Plural(len(files), "file"), api.Plural(added, "line"), removed)))
}

// bar divides the signs of a bar between added and removed lines, in proportion. One added
// or removed line gets at least one sign.
func bar(added, removed, most int) (plus, minus int) {
	if most <= barWidth {
		return added, removed
	}
	scale := func(n int) int { return max(min(n, 1), n*barWidth/most) }
	return scale(added), scale(removed)
}
