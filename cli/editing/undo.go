package editing

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// undoneLimit is how many tasks undo --list names without --limit.
const undoneLimit = 20

// undoCommand returns the command undo or redo.
func (a *commands) undoCommand(name string) *cobra.Command {
	var list bool
	var o api.NewUndo
	redo, limit := name == "redo", undoneLimit
	cmd := help.CommandFor(name, app.First(a.undoable), func(cmd *cobra.Command, args []string) error {
		if list {
			if err := failure.Arguments(0, 1, "roost undo --list")(cmd, args); err != nil {
				return err
			}
			return a.listActions(cmd, args, limit)
		}
		if err := failure.Arguments(1, 1, "roost "+name+" ID")(cmd, args); err != nil {
			return err
		}
		return a.undo(cmd, args[0], redo, o)
	})
	fl := cmd.Flags()
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show which it would be")
	fl.StringVar(&o.Expect, "only", "", "the `action` that is meant, as --dry-run --json names it; if another one is next by now, do nothing")
	if redo {
		return cmd
	}
	fl.BoolVar(&list, "list", false, "list what can be taken back: of one task, or of all")
	app.Number(fl, &limit, "limit", undoneLimit, 0, 0, "20 --list", "with --list: at most this many tasks (0 = all)")
	return cmd
}

// undo takes back the last action on a task, or does it again. It first prints which action that is.
func (a *commands) undo(cmd *cobra.Command, id string, redo bool, o api.NewUndo) error {
	ctx := cmd.Context()
	return a.Connect(ctx, func(c *client.Client) error {
		did, would, doing := "took back", "would take back", "taking back: "
		if redo {
			did, would, doing = "did again", "would do again", "doing again: "
		}
		if o.DryRun {
			did = would
		} else if !a.Flags.JSON { // with --json, the result names the action
			now, err := client.Get[api.TaskActions](ctx, c, app.PathOf(id, "undo"), nil)
			if err != nil {
				return err
			}
			next := now.Undo
			if redo {
				next = now.Redo
			}
			if len(next) > 0 && (o.Expect == "" || o.Expect == next[0].ID) {
				o.Expect = next[0].ID
				a.Say("%s%s", doing, a.actionText(next[0], true))
			}
		}
		return posted(ctx, a, c, id, cmd.Name(), o, func(u api.Undone) {
			action := u.Undone
			if redo {
				action = u.Redone
			}
			if action == nil {
				action = &api.Action{}
			}
			a.printUndo(did, *action, u.TaskActions, redo, o.DryRun)
			a.printKept(u.Restore)
		})
	})
}

// printUndo prints what was undone or redone, and how to revert that.
func (a *commands) printUndo(did string, action api.Action, task api.TaskActions, redo, dry bool) {
	a.Println(did + " " + display.OneLine(task.Task.ID) + "  " + a.actionText(action, false))
	if n := len(task.Subtasks); n > 0 {
		a.Say("  and its %s: %s", api.Plural(n, "subtask"), strings.Join(task.Subtasks, ", "))
	}
	switch {
	case dry:
	case redo:
		a.Say("  back: roost undo %s", api.ShellWord(task.Name))
	default:
		a.Say("  again: roost redo %s", api.ShellWord(task.Name))
	}
}

// listActions lists what undo and redo can do.
func (a *commands) listActions(cmd *cobra.Command, args []string, limit int) error {
	return a.Connect(cmd.Context(), func(c *client.Client) error {
		if len(args) == 0 {
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			return app.DocumentOf(cmd.Context(), a.App, c, "/v1/undo", q, a.showActions)
		}
		d, err := client.Get[api.TaskActions](cmd.Context(), c, app.PathOf(args[0], "undo"), nil)
		if err != nil {
			return err
		}
		return app.Show(a.App, api.PageOf([]api.TaskActions{d}, ""), a.showActions)
	})
}

func (a *commands) showActions(all api.Page[api.TaskActions]) {
	undos, lines := 0, []string(nil)
	for _, d := range all.Items {
		undos += len(d.Undo)
		title := display.Cut(display.OneLine(d.Task.Title), 60)
		if d.Trashed {
			title += "  (deleted)"
		}
		lines = append(lines, display.OneLine(d.Name)+"  "+title)
		for _, l := range []struct {
			what    string
			actions []api.Action
		}{{"undo", d.Undo}, {"redo", d.Redo}} {
			for i, action := range l.actions {
				word := l.what
				if i > 0 { // only the first is next
					word = strings.Repeat(" ", len(word))
				}
				lines = append(lines, "  "+word+"  "+a.actionText(action, true))
			}
		}
	}
	a.Println(lines...)
	if undos == 0 {
		a.Say("nothing can be taken back")
	} else {
		a.Say("take the first back: roost undo ID")
	}
}

// actionText describes an action.
func (a *commands) actionText(d api.Action, when bool) string {
	var parts []string
	title := func(p *string) string {
		if *p == "" {
			return "its own title"
		}
		return `"` + display.Cut(display.OneLine(*p), 60) + `"`
	}
	if d.To.Title != nil && d.From.Title != nil {
		parts = append(parts, "rename from "+title(d.From.Title)+" to "+title(d.To.Title))
	}
	if d.To.Tags != nil && d.From.Tags != nil {
		parts = append(parts, "tag "+tagged(*d.From.Tags, *d.To.Tags))
	}
	if d.To.Pinned != nil {
		parts = append(parts, map[bool]string{true: "pin", false: "unpin"}[*d.To.Pinned])
	}
	if d.Gone != nil {
		parts = append(parts, moveText(d))
	}
	if d.Covered > 0 {
		what := map[string]string{api.ActionCondense: "a summary of ", api.ActionTruncate: "a truncation of "}[d.Kind]
		parts = append(parts, fmt.Sprintf("%s%d messages", what, d.Covered))
	}
	if d.Files > 0 {
		parts = append(parts, filesText(d))
	}
	text := cmp.Or(strings.Join(parts, ", "), display.OneLine(d.Kind))
	if when && d.At != nil {
		text = fmt.Sprintf("%s, %s", text, a.When(d.At))
	}
	return text
}

// moveText describes an action that moved the histories.
func moveText(d api.Action) string {
	text := "going to another branch"
	if d.Kind != "branch" {
		verb := map[string]string{"edit": "an edit; it took ", "remove": "the deletion of "}[d.Kind]
		text = cmp.Or(verb, "a "+display.OneLine(d.Kind)+" of ") + app.MessagesText(*d.Gone, 0)
	}
	if d.By != "" {
		text += " in " + display.OneLine(d.By)
	}
	if d.WentOn {
		text += " (the task continued since: roost fork ID --branch " + d.Branch + ")"
	}
	return text
}

// tagged describes how the tags differ.
func tagged(from, to []string) string {
	out := api.Some(to, func(t string) (string, bool) { return "+" + display.OneLine(t), !slices.Contains(from, t) })
	out = append(out, api.Some(from, func(t string) (string, bool) {
		return "-" + display.OneLine(t), !slices.Contains(to, t)
	})...)
	return strings.Join(out, " ")
}

// undoable completes tasks, and those in the trash.
func (a *commands) undoable(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	out, how := a.TaskIDs(cmd, args, word)
	more, _ := a.trashNames(cmd, args, word)
	return append(out, more...), how
}

func (a *commands) rewindCommand() *cobra.Command {
	var o api.NewRewind
	var remove string
	var yes bool
	cmd := help.Command("rewind", func(cmd *cobra.Command, args []string) error {
		fl := cmd.Flags()
		if fl.Changed("delete") {
			if fl.Changed("to") || fl.Changed("edit") || fl.Changed("keep-target") {
				return failure.Usage("roost rewind --delete", "--delete removes one message, and excludes any other change",
					"roost rewind "+api.ShellWord(args[0])+" --delete "+api.ShellWord(remove))
			}
			o.To, o.Delete = remove, true
		}
		if fl.Changed("edit") && (strings.TrimSpace(o.Edit) == "" || !fl.Changed("to") || o.KeepTarget) {
			return failure.Usage("roost rewind --edit", "--edit needs the message to replace (--to) and the new words",
				"roost rewind "+api.ShellWord(args[0])+" --to '#12' --edit \"new words\"")
		}
		for _, name := range []string{"on-conflict", "yes"} {
			if fl.Changed(name) && !o.Files {
				return failure.Usage("roost rewind --"+name, "the flag is for putting files back, and needs --files",
					"roost rewind "+api.ShellWord(args[0])+" --files --"+name)
			}
		}
		if o.Files && o.Delete {
			return failure.Usage("roost rewind --delete --files",
				"files can only return to an earlier moment, and removing one message names no moment",
				"roost rewind "+api.ShellWord(args[0])+" --to MESSAGE --files")
		}
		return a.rewind(cmd.Context(), args[0], o, yes)
	})
	fl := cmd.Flags()
	fl.StringVar(&o.To, "to", "~1", "the first `MESSAGE` that goes: #12, ~2 (turns), c3 (a checkpoint), or a ts")
	fl.BoolVar(&o.KeepTarget, "keep-target", false, "keep the message itself")
	fl.StringVar(&o.Edit, "edit", "", "put this `TEXT` in its place, for the next run")
	fl.StringVar(&remove, "delete", "", "take only this `MESSAGE` out, with what belongs to it")
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show what would go")
	fl.BoolVar(&o.Files, "files", false, "put the files back as well that the task changed, as they were before that message")
	conflictFlag(cmd, &o.OnConflict)
	fl.BoolVar(&yes, "yes", false, "with --files: do not ask, also on a terminal")
	return cmd
}

// rewind rewinds the histories of a task and, with body.Files, its files. yes: do not ask.
func (a *commands) rewind(ctx context.Context, id string, body api.NewRewind, yes bool) error {
	return a.Connect(ctx, func(c *client.Client) error {
		if !body.Files {
			return posted(ctx, a, c, id, "rewinds", body, func(r api.Rewound) {
				if r.Finished != "" {
					a.Say("%s", r.Finished)
				}
				a.printRewind(r.RewindResult)
			})
		}
		files := func(r api.Rewound) api.RestoreResult {
			if r.Restore == nil {
				return api.RestoreResult{}
			}
			return *r.Restore
		}
		return agreed(ctx, a, c, restoring{
			path: app.PathOf(id, "rewinds"),
			what: "rewind task " + id,
			try:  "roost rewind " + api.ShellWord(id) + " --files",
			ask:  !body.DryRun && !yes,
			body: func(dry bool, plan string) any {
				b := body
				b.DryRun, b.Plan = body.DryRun || dry, plan
				return b
			},
		}, files, func(r api.Rewound) {
			a.printRestored(files(r))
			a.printRewind(r.RewindResult)
		})
	})
}

// printRewind prints what a rewind hid, or would hide.
func (a *commands) printRewind(r api.RewindResult) {
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
	lines := []string{line}
	for _, c := range r.Calls {
		lines = append(lines, "  "+map[bool]string{true: "outcome of ", false: "call "}[c.Stays]+display.OneLine(c.Name+"  "+c.Outcome))
	}
	lines = append(lines, api.Each(r.Files, func(f string) string { return "  not known any more: " + display.OneLine(f) })...)
	a.Println(lines...)
	if r.Forked != "" {
		a.Say("  it continues %s, whose files cannot be written", r.Forked)
	}
	if r.Asked+r.Queued > 0 {
		a.Say("  with %s and %s", api.Plural(r.Asked, "question"), api.Plural(r.Queued, "queued input"))
	}
	if r.Restored > 0 {
		a.Say("  %d older message%s sent again", r.Restored, map[bool]string{true: " is", false: "s are"}[r.Restored == 1])
	}
	if r.Unmatched > 0 {
		a.Say("  %s could not be matched to rows: look with roost show %s --api", api.Plural(r.Unmatched, "message"),
			api.ShellWord(r.ID))
	}
	if r.Spent.TokensIn+r.Spent.TokensOut > 0 {
		a.Say("  what it cost stays counted: %s in, %s out, %s", view.Count(r.Spent.TokensIn), view.Count(r.Spent.TokensOut),
			app.Dollars(r.Spent.Cost))
	}
	if r.DryRun {
		return
	}
	if r.Kind == "edit" {
		a.Say("  go on with the new words: roost resume %s", api.ShellWord(r.ID))
	}
	a.Say("  back: roost undo %s", api.ShellWord(r.ID))
}

func (a *commands) condenseCommand() *cobra.Command {
	body := api.NewCondense{Origin: "cli"}
	cmd := help.Command("condense", func(cmd *cobra.Command, args []string) error {
		if err := app.CheckBaseURL(body.BaseURL); err != nil {
			return err
		}
		body.Workspace = a.GivenFolder(body.Workspace)
		return a.condense(cmd.Context(), args[0], body)
	})
	f := cmd.Flags()
	f.StringVarP(&body.Workspace, "workspace", "C", "", "the `folder` of the task, when it has moved")
	f.StringVar(&body.Keep, "keep", "", "what the summary should keep, in your own `words`")
	f.BoolVar(&body.DryRun, "dry-run", false, "only show what would be summarised")
	f.StringVar(&body.Provider, "provider", "", "the provider that writes the summary (default: the task's)")
	f.StringVar(&body.Model, "model", "", "the model that writes the summary (default: the task's)")
	f.StringVar(&body.BaseURL, "base-url", "", "the provider's address")
	f.StringVar(&body.Profile, "profile", "", "provider and model of this `NAME` in the settings file")
	return cmd
}

// costWords writes an amount in a sentence.
func costWords(cost *money.USD) string {
	if cost == nil {
		return "an amount that is not known"
	}
	return "about " + app.Dollars(cost)
}

func (a *commands) condense(ctx context.Context, id string, body api.NewCondense) error {
	stop := a.Stopper(ctx)
	defer stop.Undo()
	err := a.Connect(stop.Ctx, func(c *client.Client) (err error) {
		if body.Model, err = a.ModelOf(stop.Ctx, c, id, cmp.Or(body.Provider, body.Profile), body.Model); err != nil {
			return err
		}
		return posted(stop.Ctx, a, c, id, "condense", body, a.printCondensed)
	})
	if err != nil && stop.Exit() != 0 {
		return failure.New(stop.Exit(), "cancelled", "condense task "+id,
			"it was stopped; the histories are as before", "the same command again").OfTask(id)
	}
	return err
}

// printCondensed prints what a summary replaces, or would replace.
func (a *commands) printCondensed(out api.Condensed) {
	if out.DryRun {
		hidden := ""
		if n := out.Messages - out.Sent; n > 0 {
			hidden = fmt.Sprintf(" (%d of them are hidden from requests already)", n)
		}
		a.Println(fmt.Sprintf("would condense %s: a summary replaces %d messages%s, %d stay as they are; "+
			"the next request has about %d tokens, and to ask costs %s",
			out.Task, out.Messages, hidden, out.Kept, out.Before, costWords(out.Cost)))
		return
	}
	text := fmt.Sprintf("condensed %s: a summary replaces %d messages, %d stay as they are; "+
		"about %d tokens are %d now; it cost %s",
		out.Task, out.Messages, out.Kept, out.Before, out.After, costWords(out.Cost))
	if a.Flags.Verbose {
		text += "\n" + display.Safe(out.Summary)
	}
	a.Println(text)
	a.Say("  back: roost undo %s", api.ShellWord(out.Task))
}

func (a *commands) forkCommand() *cobra.Command {
	o := api.NewFork{Origin: "cli"}
	cmd := help.Command("fork", func(cmd *cobra.Command, args []string) error {
		if err := app.CheckBaseURL(o.BaseURL); err != nil {
			return err
		}
		o.Workspace = a.GivenFolder(o.Workspace)
		return a.Connect(cmd.Context(), func(c *client.Client) (err error) {
			if o.Model, err = a.ModelOf(cmd.Context(), c, args[0], o.Provider, o.Model); err != nil {
				return err
			}
			return posted(cmd.Context(), a, c, args[0], "forks", o, a.tellFork)
		})
	})
	fl := cmd.Flags()
	fl.StringVar(&o.At, "at", "", "the last `MESSAGE` that it has: #12, a ts, or ~2 (turns)")
	fl.StringVar(&o.Branch, "branch", "", "the branch (`NAME`) that it starts from")
	fl.StringVar(&o.Title, "title", "", "its title (default: that of the other one)")
	fl.StringVarP(&o.Workspace, "workspace", "C", "", "its `folder`")
	fl.StringVar(&o.Mode, "mode", "", "its mode")
	fl.StringVar(&o.Provider, "provider", "", "the model's provider")
	fl.StringVar(&o.Model, "model", "", "the model; for script: the file to play")
	fl.StringVar(&o.BaseURL, "base-url", "", "the provider's address")
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show what it would have")
	return cmd
}

func (a *commands) tellFork(f api.ForkResult) {
	line := display.OneLine(f.ID)
	if f.DryRun {
		line = "would fork " + display.OneLine(f.From.ID)
	}
	line += "  " + app.MessagesText(f.Messages, 0)
	if f.Last != nil {
		line += ", up to " + app.RowText(*f.Last)
	}
	a.Println(line)
	if !f.DryRun {
		a.Say("  go on with it: roost resume %s", api.ShellWord(f.ID))
	}
}
