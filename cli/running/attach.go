package running

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

func (a *commands) attachCommand() *cobra.Command {
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "attach ID",
		Short: "Follow a task that runs, in another terminal or on a server",
		Long: "Follow the run that works on a task, in whichever process: what it did so far, and what it\n" +
			"does. On a terminal its questions can be answered here, too: the first answer wins.\n" +
			"Ctrl-C only stops following; roost cancel stops the task.\n\n" +
			"The exit code is that of the run; 14 when the process that works on it is there and does not\n" +
			"answer. With --json the events are printed, as by roost run.",
		Args: failure.Arguments(1, 1, "roost attach ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), func(c *client.Client, e *engine.Engine) error {
				return a.attach(cmd.Context(), c, args[0], a.Interactive() && !readOnly)
			})
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "answer nothing")
	return cmd
}

// attach follows the newest run of a task.
func (a *commands) attach(ctx context.Context, c *client.Client, id string, ask bool) error {
	r, err := newestRun(ctx, c, id)
	if err != nil {
		return err
	}
	switch r.State {
	case "queued", "running", "waiting":
	default:
		a.Say("nothing works on task %s now: its newest run is %s; go on with it: roost resume %s", r.Task, outcomeOf(r).State,
			failure.ShellWord(r.Task))
		return nil
	}
	// What led to the run may be of the same millisecond as its start.
	w := watched{task: r.Task, run: r.ID, after: "0", ask: ask, fresh: true}
	if r.StartedAt != nil {
		w.since = *r.StartedAt
	}
	return a.watchOn(ctx, c, w)
}
