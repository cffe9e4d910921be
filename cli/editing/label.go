package editing

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func (a *commands) renameCommand() *cobra.Command {
	var reset bool
	cmd := &cobra.Command{
		Use:   "rename ID TITLE|--reset",
		Short: "Give a task another title",
		Long: "Give a task another title. That of another tool's task is kept in Roost's own root:\n" +
			"the tool's folder is not touched. --reset goes back to the title that the task has by\n" +
			"itself; roost undo ID goes back to the one before.",
		Example: "  roost rename 0199 \"paint the fence\"\n  roost rename 0199 --reset", ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			l := labels{untitled: reset}
			if reset {
				if err := failure.Arguments(1, 1, "roost rename ID --reset")(cmd, args); err != nil {
					return err
				}
			} else {
				if err := failure.Arguments(2, 2, `roost rename ID "new title"`)(cmd, args); err != nil {
					return err
				}
				title := strings.TrimSpace(args[1])
				l.title = &title
			}
			return a.label(cmd.Context(), args[:1], l, func(t api.Summary) string { return t.Title })
		},
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "back to the title that the task has by itself")
	return cmd
}

// labels are titles, tags and pins to change.
type labels struct {
	title       *string
	untitled    bool // back to the title that the task has by itself
	add, remove []string
	pinned      *bool
}

func (l labels) patch() map[string]any {
	body := map[string]any{}
	if l.untitled {
		body["title"] = nil
	}
	if l.title != nil {
		body["title"] = *l.title
	}
	if l.pinned != nil {
		body["pinned"] = *l.pinned
	}
	if len(l.add) > 0 {
		body["add_tags"] = l.add
	}
	if len(l.remove) > 0 {
		body["remove_tags"] = l.remove
	}
	return body
}

// label changes the labels of tasks and prints each. All tasks are found before one changes. show returns the
// text of a task's line.
func (a *commands) label(ctx context.Context, ids []string, l labels, show func(api.Summary) string) error {
	return a.Connect(ctx, func(c *client.Client) error {
		found := make([]api.Summary, len(ids))
		for i, id := range ids {
			t, err := c.Task(ctx, id)
			if err != nil {
				return err
			}
			found[i] = t
		}
		body := l.patch()
		seen := map[string]bool{}
		for _, t := range found {
			if seen[t.Path] {
				continue
			}
			seen[t.Path] = true
			if len(body) > 0 {
				patch := client.Request{Method: http.MethodPatch, Path: app.PathOf(t.Source + ":" + t.ID), Body: body, Repeatable: true}
				if _, err := c.Ask(ctx, patch, &t); err != nil {
					return err
				}
			}
			if a.Flags.JSON {
				if err := app.Encode(a.Out, t, false); err != nil {
					return err
				}
				continue
			}
			if err := a.Println(display.OneLine(t.ID) + "  " + display.OneLine(show(t))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *commands) tagCommand() *cobra.Command {
	var remove []string
	cmd := &cobra.Command{
		Use:   "tag ID [+TAG|-TAG]...",
		Short: "Add and remove tags of a task; without any, print them",
		Long: "Add and remove tags of a task. +TAG or TAG adds, -TAG or --remove TAG removes; without\n" +
			"any, the tags are printed. Those of another tool's task are kept in Roost's own root.\n" +
			"roost list --tag TAG shows what has a tag.",
		Example: "  roost tag 0199 +work -later\n  roost tag 0199 --remove q",
		// -later is no row of flags.
		DisableFlagParsing: true,
		ValidArgsFunction:  app.First(a.TaskIDs),
	}
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "remove this `tag`; for those that look like a flag")
	app.Complete(cmd, "remove", cobra.NoFileCompletions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.DisableFlagParsing = false
		if err := cmd.ParseFlags(removals(args)); errors.Is(err, pflag.ErrHelp) {
			return cmd.Help()
		} else if err != nil {
			return failure.FlagError(cmd, err)
		}
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		args = cmd.Flags().Args()
		if err := failure.Arguments(1, -1, "roost tag ID +work")(cmd, args); err != nil {
			return err
		}
		l := labels{remove: remove}
		for _, word := range args[1:] {
			if tag, ok := strings.CutPrefix(word, "-"); ok { // behind --
				l.remove = append(l.remove, tag)
				continue
			}
			l.add = append(l.add, strings.TrimPrefix(word, "+"))
		}
		return a.label(cmd.Context(), args[:1], l, func(t api.Summary) string { return orDash(strings.Join(t.Tags, " ")) })
	}
	return cmd
}

// removals spells -TAG as the flag that it is short for. -q, -v and -h stay what
// they are everywhere.
func removals(args []string) []string {
	var out []string
	for i, word := range args {
		if word == "--" {
			return append(out, args[i:]...)
		}
		tag, ok := strings.CutPrefix(word, "-")
		if ok && tag != "" && tag[0] != '-' && strings.Trim(tag, "qvh") != "" {
			word = "--remove=" + tag
		}
		out = append(out, word)
	}
	return out
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// pinCommand is pin or unpin.
func (a *commands) pinCommand(name, short, done string, pinned bool) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID...", Short: short,
		Args: failure.Arguments(1, -1, "roost "+name+" ID"), ValidArgsFunction: a.TaskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.label(cmd.Context(), args, labels{pinned: &pinned}, func(api.Summary) string { return done })
		},
	}
}
