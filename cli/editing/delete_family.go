package editing

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
)

// cascade is the decision about the subtasks of a deleted task.
type cascade struct {
	with, keep bool
}

func (c *cascade) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.with, "children", false, "and their subtasks, to the last one")
	cmd.Flags().BoolVar(&c.keep, "keep-children", false, "and leave their subtasks where they are")
}

func (c cascade) check(cmd *cobra.Command) error {
	if c.with && c.keep {
		return failure.Usage(cmd.CommandPath()+" --children --keep-children", "the flags exclude each other", cmd.CommandPath()+" ID --children")
	}
	return nil
}

// decide reports whether subtasks go with the tasks that are to be deleted.
func (c cascade) decide(cmd *cobra.Command, a *commands, ids, more []string) (bool, error) {
	if len(more) == 0 || c.with {
		return true, nil
	}
	what := fmt.Sprintf("delete %d task%s", len(ids), app.Plural(len(ids)))
	if len(ids) == 1 {
		what = "delete task " + ids[0]
	}
	why := fmt.Sprintf("%d subtask%s belong%s to it: %s", len(more), app.Plural(len(more)),
		map[bool]string{true: "s"}[len(more) == 1], strings.Join(more[:min(len(more), 3)], ", "))
	if len(more) > 3 {
		why += ", ..."
	}
	if !a.Interactive() {
		return false, &failure.Failure{
			Exit: failure.ExitInput, Code: "input_needed", What: what, Why: why + "; nothing was deleted",
			Try:         cmd.CommandPath() + " --children " + ids[0],
			Suggestions: []string{cmd.CommandPath() + " --children " + ids[0], cmd.CommandPath() + " --keep-children " + ids[0]},
		}
	}
	a.Say("%s", why)
	for {
		answer, err := a.Prompter().Read(cmd.Context(), "  y delete them too, k keep them, q delete nothing > ")
		word := strings.ToLower(strings.TrimSpace(answer))
		switch {
		case err != nil || word == "q":
			return false, &failure.Failure{
				Exit: failure.ExitCancelled,
				Code: "cancelled",
				What: what,
				Why:  "it was not confirmed; nothing was deleted",
				Try:  cmd.CommandPath() + " --keep-children " + ids[0],
			}
		case word == "y" || word == "yes":
			return true, nil
		case word == "k" || word == "keep":
			return false, nil
		}
	}
}
