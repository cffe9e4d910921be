package editing

import (
	"cmp"
	"errors"
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
)

// undoneLimit is how many tasks undo --list names when no number was asked for.
const undoneLimit = 20

// undoOptions are the flags of undo and redo.
type undoOptions struct {
	Redo   bool
	DryRun bool
	Only   string // the id of the action that is meant; "" = the next one
}

// undoCommand is undo or redo.
func (a *commands) undoCommand(name string) *cobra.Command {
	var list bool
	o := undoOptions{Redo: name == "redo"}
	limit := undoneLimit
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
		return a.undo(cmd, args[0], o)
	})
	fl := cmd.Flags()
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show which it would be")
	fl.StringVar(&o.Only, "only", "", "the `action` that is meant, as --dry-run --json names it; if another one is next by now, do nothing")
	if o.Redo {
		return cmd
	}
	fl.BoolVar(&list, "list", false, "list what can be taken back: of one task, or of all")
	fl.IntVar(&limit, "limit", undoneLimit, "with --list: at most this many tasks (0 = all)")
	return cmd
}

// undo takes back what was last done to a task, or does it again. It prints first which action that is.
func (a *commands) undo(cmd *cobra.Command, id string, o undoOptions) error {
	ctx := cmd.Context()
	return a.Connect(ctx, func(c *client.Client) error {
		did, would, doing := "took back", "would take back", "taking back: "
		if o.Redo {
			did, would, doing = "did again", "would do again", "doing again: "
		}
		if o.DryRun {
			did = would
		} else if !a.Flags.JSON { // there it is in the result
			now, err := client.Get[api.TaskActions](ctx, c, app.PathOf(id, "undo"), nil)
			if err != nil {
				return err
			}
			next := now.Undo
			if o.Redo {
				next = now.Redo
			}
			if len(next) > 0 && (o.Only == "" || o.Only == next[0].ID) {
				o.Only = next[0].ID
				a.Say("%s%s", doing, a.actionText(next[0], true))
			}
		}
		body := api.NewUndo{Expect: o.Only, DryRun: o.DryRun}
		return posted(ctx, a, c, id, cmd.Name(), body, func(u api.Undone) error {
			action := u.Undone
			if o.Redo {
				action = u.Redone
			}
			if action == nil {
				action = &api.Action{}
			}
			return errors.Join(a.printUndo(did, *action, u.TaskActions, o), a.printKept(u.Restore))
		})
	})
}

// printUndo prints what was taken back or done again, and how to revert that.
func (a *commands) printUndo(did string, action api.Action, task api.TaskActions, o undoOptions) error {
	if err := a.Println(did + " " + display.OneLine(task.Task.ID) + "  " + a.actionText(action, false)); err != nil {
		return err
	}
	if n := len(task.Subtasks); n > 0 {
		a.Say("  and its %d subtask%s: %s", n, app.Plural(n), strings.Join(task.Subtasks, ", "))
	}
	switch {
	case o.DryRun:
	case o.Redo:
		a.Say("  back: roost undo %s", failure.ShellWord(task.Name))
	default:
		a.Say("  again: roost redo %s", failure.ShellWord(task.Name))
	}
	return nil
}

// listActions lists what undo and redo can do.
func (a *commands) listActions(cmd *cobra.Command, args []string, limit int) error {
	if limit < 0 {
		return failure.Usage("roost undo --limit", "a limit cannot be negative", "roost undo --list --limit 20")
	}
	return a.Connect(cmd.Context(), func(c *client.Client) error {
		if len(args) == 0 {
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			return app.DocumentOf(cmd.Context(), a.App, c, "/v1/undo", q, func(p api.Page[api.TaskActions]) error { return a.showDeeds(p.Items) })
		}
		d, err := client.Get[api.TaskActions](cmd.Context(), c, app.PathOf(args[0], "undo"), nil)
		if err != nil {
			return err
		}
		if a.Flags.JSON {
			return app.Encode(a.Out, api.PageOf([]api.TaskActions{d}, ""), false)
		}
		return a.showDeeds([]api.TaskActions{d})
	})
}

func (a *commands) showDeeds(all []api.TaskActions) error {
	rows, lines := 0, []string(nil)
	for _, d := range all {
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
				rows++
				lines = append(lines, "  "+word+"  "+a.actionText(action, true))
			}
		}
	}
	if len(lines) > 0 {
		if err := a.Println(strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	if rows == 0 {
		a.Say("nothing can be taken back")
	} else {
		a.Say("take the first back: roost undo ID")
	}
	return nil
}

// actionText is a deed for people.
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

// tagged is how the tags differ.
func tagged(from, to []string) string {
	var out []string
	for _, t := range to {
		if !slices.Contains(from, t) {
			out = append(out, "+"+display.OneLine(t))
		}
	}
	for _, t := range from {
		if !slices.Contains(to, t) {
			out = append(out, "-"+display.OneLine(t))
		}
	}
	return strings.Join(out, " ")
}

// undoable completes tasks, and those in the trash.
func (a *commands) undoable(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	out, how := a.TaskIDs(cmd, args, word)
	more, _ := a.trashNames(cmd, args, word)
	return append(out, more...), how
}
