package editing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

func (a *commands) rewindCommand() *cobra.Command {
	var o api.NewRewind
	var remove string
	var f withFiles
	cmd := &cobra.Command{
		Use:   "rewind ID",
		Short: "Take a task's histories back to a message, edit a message or take one out",
		Long: "Take both histories of a task back: what the person sees and what the model sees, with the\n" +
			"questions, the queued input, and what was known of files. It is one step, and nothing is\n" +
			"destroyed: roost undo ID takes it back, and what was there stays as a branch\n" +
			"(roost show ID --branches). What was spent stays counted. Files in the workspace stay as\n" +
			"they are, unless --files is given: then those that the task changed are put back as well,\n" +
			"as they were before that message, and one undo takes both back. See roost checkpoint\n" +
			"restore --help; the files alone go back with that. With --json its result is in restore.\n\n" +
			"--to names the first message that goes: #12 as roost show prints it, ~2 or -2 for the last\n" +
			"two turns (a turn is one reply of the model with its tool results), a checkpoint such as c3\n" +
			"for what came behind it, or a ts. --edit puts new words in its place: the next roost\n" +
			"resume ID sends them. --delete takes one message out and leaves the rest; a reply goes\n" +
			"with its calls and their results.",
		Example: "  roost rewind 0199\n  roost rewind 0199 --to '#12' --dry-run\n" +
			"  roost rewind 0199 --to '#12' --edit \"use the other file\"\n" +
			"  roost rewind 0199 --delete '#7'\n  roost rewind 0199 --to '#12' --files --dry-run",
		Args: failure.Arguments(1, 1, "roost rewind ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			fl := cmd.Flags()
			if fl.Changed("delete") {
				if fl.Changed("to") || fl.Changed("edit") || fl.Changed("keep-target") {
					return failure.Usage("roost rewind --delete", "it removes one message, and excludes any other change",
						"roost rewind "+args[0]+" --delete '"+remove+"'")
				}
				o.To, o.Delete = remove, true
			}
			if fl.Changed("edit") && (strings.TrimSpace(o.Edit) == "" || !fl.Changed("to") || o.KeepTarget) {
				return failure.Usage("roost rewind --edit", "it needs the message to replace (--to) and the new words",
					"roost rewind "+args[0]+" --to '#12' --edit \"new words\"")
			}
			if err := f.check(a, cmd, args[0]); err != nil {
				return err
			}
			o.Files, o.OnConflict = f.files, f.conflict
			return a.rewind(cmd.Context(), args[0], o, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.To, "to", "~1", "the first `MESSAGE` that goes: #12, ~2 (turns), c3 (a checkpoint), or a ts")
	fl.BoolVar(&o.KeepTarget, "keep-target", false, "keep the message itself")
	fl.StringVar(&o.Edit, "edit", "", "put this `TEXT` in its place, for the next run")
	fl.StringVar(&remove, "delete", "", "take only this `MESSAGE` out, with what belongs to it")
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show what would go")
	f.add(cmd)
	for _, name := range []string{"to", "edit", "delete"} {
		app.Complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// rewind takes the histories of a task back, and with f its files too.
func (a *commands) rewind(ctx context.Context, id string, body api.NewRewind, f withFiles) error {
	return a.Connect(ctx, func(c *client.Client) error {
		if !f.files {
			return posted(ctx, a, c, id, "rewinds", body, func(r api.Rewound) error {
				if r.Finished != "" {
					a.Say("%s", r.Finished)
				}
				return a.printRewind(r.RewindResult)
			})
		}
		r, doc, err := agreed[api.Rewound](ctx, a, c, restoring{
			path: app.PathOf(id, "rewinds"),
			what: "rewind task " + id,
			try:  "roost rewind " + failure.ShellWord(id) + " --files",
			ask:  !body.DryRun && !f.yes,
			body: func(dry bool, plan string) any {
				b := body
				b.DryRun, b.Plan = body.DryRun || dry, plan
				return b
			},
		}, func(r api.Rewound) *api.RestoreResult { return r.Restore })
		if err != nil {
			return err
		}
		var files api.RestoreResult
		if r.Restore != nil {
			files = *r.Restore
		}
		if a.Flags.JSON {
			return errors.Join(a.PrintRaw(doc), restoreFailure(files))
		}
		return errors.Join(a.tellRewindFiles(r.RewindResult, files), restoreFailure(files))
	})
}

// printRewind prints what a rewind hid, or would hide.
func (a *commands) printRewind(r api.RewindResult) error {
	verb := map[string]string{"rewind": "took back", "edit": "took back", "remove": "took out"}[r.Kind]
	if r.DryRun {
		verb = "would take " + strings.TrimPrefix(verb, "took ")
	}
	line := fmt.Sprintf("%s %s  %s", verb, display.OneLine(r.ID), app.MessagesText(r.Gone, r.Turns))
	if r.To != nil {
		line += "  from " + app.RowText(*r.To)
		if r.Kept {
			line = strings.Replace(line, "  from ", "  behind the kept message, from ", 1)
		}
	}
	if err := a.Println(line); err != nil {
		return err
	}
	for _, c := range r.Calls {
		what := "  call "
		if c.Stays {
			what = "  outcome of "
		}
		if err := a.Println(what + display.OneLine(c.Name+"  "+c.Outcome)); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		if err := a.Println("  not known any more: " + display.OneLine(f)); err != nil {
			return err
		}
	}
	if r.Forked != "" {
		a.Say("  it continues %s, whose files cannot be written", r.Forked)
	}
	if r.Asked+r.Queued > 0 {
		a.Say("  with %d question%s and %d queued input%s", r.Asked, app.Plural(r.Asked), r.Queued, app.Plural(r.Queued))
	}
	if r.Restored > 0 {
		a.Say("  %d older message%s sent again", r.Restored, wereSent(r.Restored))
	}
	if r.Unmatched > 0 {
		a.Say("  %d message%s could not be matched to rows: look with roost show %s --api", r.Unmatched, app.Plural(r.Unmatched),
			failure.ShellWord(r.ID))
	}
	if r.Spent.TokensIn+r.Spent.TokensOut > 0 {
		a.Say("  what it cost stays counted: %s in, %s out, %s", view.Count(r.Spent.TokensIn), view.Count(r.Spent.TokensOut),
			app.Dollars(r.Spent.Cost))
	}
	if r.DryRun {
		return nil
	}
	if r.Kind == "edit" {
		a.Say("  go on with the new words: roost resume %s", failure.ShellWord(r.ID))
	}
	a.Say("  back: roost undo %s", failure.ShellWord(r.ID))
	return nil
}

func wereSent(n int) string {
	if n == 1 {
		return " is"
	}
	return "s are"
}
