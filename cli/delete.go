package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

func (a *App) deleteCommand() *cobra.Command {
	var c cascade
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Put tasks into the trash",
		Long: "Put tasks into the trash, and say how to get them back. A task in another tool's storage\n" +
			"stays there as it is; Roost does not show it any more.\n\n" +
			"A task with subtasks asks what becomes of those; without a terminal it has to be said.",
		Args: count(1, -1, "roost delete ID"), ValidArgsFunction: a.taskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if done, err := a.remotely(func(f *client.Client) error { return a.farDelete(cmd, f, args, c) }); done {
				return err
			}
			s, err := a.open()
			if err != nil {
				return err
			}
			refs, err := findAll(cmd.Context(), s, args)
			var list []doomed
			if err == nil {
				list, err = c.widen(cmd, a, s, refs)
			}
			if err != nil {
				return err
			}
			done := []store.Trashed{}
			for _, d := range list {
				var t store.Trashed
				if t, err = d.delete(cmd.Context(), s); err != nil {
					break
				}
				done = append(done, t)
				if !a.flags.json {
					if err = a.deleted(cmd.Context(), s, t); err != nil {
						break
					}
				}
			}
			if a.flags.json {
				out := struct {
					Deleted []store.Trashed `json:"deleted"`
				}{done}
				if told := encode(a.Out, out, false); err == nil {
					err = told
				}
			}
			return err
		},
	}
	c.add(cmd)
	return cmd
}

// deleted tells of one deleted task and how to get it back.
func (a *App) deleted(ctx context.Context, s *store.Store, t store.Trashed) error {
	if err := a.tellDeleted(t); err != nil {
		return err
	}
	if ref, err := s.Find(ctx, t.ID); err == nil && ref.ID == t.ID {
		a.say("a task of that id also stands in %s, and is listed: %s", ref.Source, ref.Dir)
	}
	return nil
}

func (a *App) tellDeleted(t store.Trashed) error {
	line := "deleted " + display.OneLine(t.ID)
	if title := display.Cut(display.OneLine(t.Title), 60); title != "" {
		line += "  " + title
	}
	if err := a.println(line + "\n  get it back: roost trash restore " + shellWord(t.Name)); err != nil {
		return err
	}
	if t.Hidden {
		a.say("its folder stays as it is, and Roost does not show it any more: %s", t.Path)
	}
	return nil
}

// findAll finds every task before anything is done to one of them, each once.
func findAll(ctx context.Context, s *store.Store, ids []string) ([]store.Ref, error) {
	var out []store.Ref
	for _, id := range ids {
		ref, err := s.Find(ctx, id)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(r store.Ref) bool { return r.Dir == ref.Dir }) {
			out = append(out, ref)
		}
	}
	return out, nil
}

// shellWord spells a word so that a shell takes it as one.
func shellWord(word string) string {
	if source, id, ok := strings.Cut(word, ":"); ok && roofmt.ValidID(source) && roofmt.ValidID(id) || roofmt.ValidID(strings.Replace(word, "~", "-", 1)) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
