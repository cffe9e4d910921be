package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/store"
)

// cascade says what becomes of the subtasks of a deleted task.
type cascade struct {
	with, keep bool
}

func (c *cascade) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.with, "children", false, "and their subtasks, to the last one")
	cmd.Flags().BoolVar(&c.keep, "keep-children", false, "and leave their subtasks where they are")
}

// widen adds the subtasks of tasks that are to be deleted, behind their parents, if the
// person wants that. Without a word about it, and without a terminal to ask on, nothing
// is deleted: a subtask holds work of its own.
func (c cascade) widen(cmd *cobra.Command, a *App, s *store.Store, refs []store.Ref) ([]doomed, error) {
	if err := c.check(cmd); err != nil {
		return nil, err
	}
	named := make([]doomed, len(refs))
	ids := make([]string, len(refs))
	for i, r := range refs {
		named[i].ref, ids[i] = r, r.ID
	}
	if c.keep {
		return named, nil
	}
	subtasks, err := subtasksOf(cmd.Context(), s, refs)
	if err != nil {
		return nil, err
	}
	more := make([]string, len(subtasks))
	for i, d := range subtasks {
		more[i] = d.ref.ID
	}
	with, err := c.decide(cmd, a, ids, more)
	if err != nil || !with {
		return named, err
	}
	return append(named, subtasks...), nil
}

// doomed is a task that is to be deleted, and the named one whose subtask it is.
type doomed struct {
	ref  store.Ref
	with *store.Ref // nil: it was named itself
}

func (d doomed) delete(ctx context.Context, s *store.Store) (store.Trashed, error) {
	if d.with != nil {
		return s.DeleteSubtask(ctx, d.ref, *d.with)
	}
	return s.Delete(ctx, d.ref)
}

func (c cascade) check(cmd *cobra.Command) error {
	if c.with && c.keep {
		return usage(cmd.CommandPath()+" --children --keep-children", "the subtasks can go or stay", cmd.CommandPath()+" ID --children")
	}
	return nil
}

// decide reports whether subtasks go with the tasks that are to be deleted.
func (c cascade) decide(cmd *cobra.Command, a *App, ids, more []string) (bool, error) {
	if len(more) == 0 || c.with {
		return true, nil
	}
	what := fmt.Sprintf("delete %d task%s", len(ids), plural(len(ids)))
	if len(ids) == 1 {
		what = "delete task " + ids[0]
	}
	why := fmt.Sprintf("%d subtask%s belong%s to it: %s", len(more), plural(len(more)), map[bool]string{true: "s"}[len(more) == 1], strings.Join(more[:min(len(more), 3)], ", "))
	if len(more) > 3 {
		why += ", ..."
	}
	if !a.interactive() {
		return false, &Failure{
			Exit: ExitInput, Code: "input_needed", What: what, Why: why + "; nothing was deleted",
			Try:         cmd.CommandPath() + " --children " + ids[0],
			Suggestions: []string{cmd.CommandPath() + " --children " + ids[0], cmd.CommandPath() + " --keep-children " + ids[0]},
		}
	}
	a.say("%s", why)
	for {
		answer, err := a.prompter().Read(cmd.Context(), "  y delete them too, k keep them, q delete nothing > ")
		word := strings.ToLower(strings.TrimSpace(answer))
		switch {
		case err != nil || word == "q":
			return false, &Failure{Exit: ExitCancelled, Code: "cancelled", What: what, Why: "it was not confirmed; nothing was deleted", Try: cmd.CommandPath() + " --keep-children " + ids[0]}
		case word == "y" || word == "yes":
			return true, nil
		case word == "k" || word == "keep":
			return false, nil
		}
	}
}

// subtasksOf is all that come from some tasks, each once, parents first.
func subtasksOf(ctx context.Context, s *store.Store, refs []store.Ref) (out []doomed, err error) {
	got, err := s.List(ctx, store.Filter{Tree: true, Empty: true})
	if err != nil {
		return nil, err
	}
	var top *store.Ref
	depth := -1 // of top, the task that is deleted with what is below it
	for i, t := range got.Items {
		if depth >= 0 && got.Depths[i] <= depth {
			depth = -1
		}
		at := slices.IndexFunc(refs, func(r store.Ref) bool { return r.Dir == t.Path })
		switch {
		case at >= 0:
			if depth < 0 {
				top, depth = &refs[at], got.Depths[i]
			}
		case depth >= 0:
			ref, err := s.Find(ctx, t.Source+":"+t.ID)
			if err != nil {
				return nil, err
			}
			out = append(out, doomed{ref, top})
		}
	}
	return out, nil
}
