package editing

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func (a *commands) renameCommand() *cobra.Command {
	var reset bool
	cmd := help.Command("rename", func(cmd *cobra.Command, args []string) error {
		want, try := 2, `roost rename ID "new title"`
		if reset {
			want, try = 1, "roost rename ID --reset"
		}
		if err := failure.Arguments(want, want, try)(cmd, args); err != nil {
			return err
		}
		title := any(nil) // the one that the task has by itself
		if !reset {
			title = strings.TrimSpace(args[1])
		}
		return a.label(cmd.Context(), args[:1], map[string]any{"title": title},
			func(t api.Summary) string { return t.Title })
	})
	cmd.Flags().BoolVar(&reset, "reset", false, "back to the title that the task has by itself")
	return cmd
}

// label changes the labels of tasks and prints each; an empty patch only prints. All tasks are found before one
// changes. show returns the text of a task's line.
func (a *commands) label(ctx context.Context, ids []string, patch map[string]any, show func(api.Summary) string) error {
	return a.Connect(ctx, func(c *client.Client) error {
		found := make([]api.Summary, len(ids))
		for i, id := range ids {
			t, err := c.Task(ctx, id)
			if err != nil {
				return err
			}
			found[i] = t
		}
		seen := map[string]bool{}
		for _, t := range found {
			if seen[t.Path] {
				continue
			}
			seen[t.Path] = true
			if len(patch) > 0 {
				path := app.PathOf(t.Source + ":" + t.ID)
				r := client.Request{Method: http.MethodPatch, Path: path, Body: patch, Repeatable: true}
				if _, err := c.Ask(ctx, r, &t); err != nil {
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
	cmd := help.Command("tag", nil)
	cmd.DisableFlagParsing = true // -later is no row of flags
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "remove this `tag`; for those that look like a flag")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.DisableFlagParsing = false
		if err := cmd.ParseFlags(removals(args)); errors.Is(err, pflag.ErrHelp) {
			return cmd.Help()
		} else if err != nil {
			return failure.FlagError(cmd, err)
		}
		if wanted, _ := cmd.Flags().GetBool("help"); wanted {
			return cmd.Help()
		}
		args = cmd.Flags().Args()
		if err := failure.Arguments(1, -1, "roost tag ID +work")(cmd, args); err != nil {
			return err
		}
		var add []string
		for _, word := range args[1:] {
			if tag, ok := strings.CutPrefix(word, "-"); ok { // behind --
				remove = append(remove, tag)
				continue
			}
			add = append(add, strings.TrimPrefix(word, "+"))
		}
		patch := map[string]any{}
		if len(add) > 0 {
			patch["add_tags"] = add
		}
		if len(remove) > 0 {
			patch["remove_tags"] = remove
		}
		return a.label(cmd.Context(), args[:1], patch,
			func(t api.Summary) string { return cmp.Or(strings.Join(t.Tags, " "), "-") })
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

// pinCommand is pin or unpin.
func (a *commands) pinCommand(name, done string, pinned bool) *cobra.Command {
	return help.Command(name, func(cmd *cobra.Command, args []string) error {
		return a.label(cmd.Context(), args, map[string]any{"pinned": pinned}, func(api.Summary) string { return done })
	})
}
