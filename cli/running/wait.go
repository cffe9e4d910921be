package running

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

func (a *commands) waitCommand() *cobra.Command {
	var most time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait until the runs of tasks have ended",
		Long: "Wait until the newest run of each task has ended, in whichever process it works, and print\n" +
			"how. The exit code is that of the run: 0 when it completed, 11 when it waits for an\n" +
			"answer. Of several tasks, the first one that did not complete decides it. ID may be a\n" +
			"run's, too.\n\n" +
			"--json: {items: [run...]} as roost runs has them.",
		Example: "  roost wait 0199 && make release\n  roost wait 0199 01a2 --timeout 1h",
		Args:    failure.Arguments(1, -1, "roost wait ID"), ValidArgsFunction: a.TaskIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 0 {
				return failure.Usage("roost wait --timeout", "a time cannot be negative", "roost wait ID --timeout 10m")
			}
			return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
				return a.wait(cmd.Context(), c, args, most)
			})
		},
	}
	cmd.Flags().DurationVar(&most, "timeout", 0, "wait no longer than this (0 = as long as it takes)")
	app.Complete(cmd, "timeout", cobra.NoFileCompletions)
	return cmd
}

func (a *commands) wait(ctx context.Context, c *client.Client, ids []string, most time.Duration) error {
	stop := a.StopperWith(ctx, func() {})
	defer stop.Undo()
	ctx = stop.Ctx
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errWaited)
		defer cancel()
	}
	runs := []api.Run{} // find all before waiting for the first
	for _, id := range ids {
		r, err := newestRun(ctx, c, id)
		if err != nil {
			return a.waitFailure(ctx, stop, id, err)
		}
		runs = append(runs, r)
	}
	var failed *failure.Failure
	for i, r := range runs {
		unanswered := 0
		for wait := 200 * time.Millisecond; r.State == "queued" || r.State == "running" ||
			r.State == "waiting" && r.Here && r.Question == ""; wait = min(2*wait, 2*time.Second) {
			begun := time.Now()
			next, err := c.Await(ctx, r.ID, 20*time.Second)
			if err != nil {
				return a.waitFailure(ctx, stop, r.Task, err)
			}
			if r = next; r.Silent == "" {
				unanswered = 0
			} else if unanswered++; unanswered == mostUnanswered {
				return silentOwner("wait for task "+r.Task, r.Task, r.Silent)
			}
			if time.Since(begun) < wait { // it did not hold the request
				if waitFor(ctx, wait) != nil {
					return a.waitFailure(ctx, stop, r.Task, ctx.Err())
				}
			}
		}
		runs[i] = r
		if !a.Flags.JSON {
			if err := a.Println(display.OneLine(r.Task + "  " + outcomeOf(r).State)); err != nil {
				return err
			}
		}
		if f := failure.OfOutcome(r.Task, outcomeOf(r), 0); failed == nil && f != nil {
			failed = f
			if r.Question != "" {
				f.Why, f.Try = a.askedOf(ctx, c, r)
			}
		}
	}
	if a.Flags.JSON {
		if err := app.Encode(a.Out, struct {
			Items []api.Run `json:"items"`
		}{runs}, false); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	return nil
}

var errWaited = errors.New("the time is over")

func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitFailure is why waiting ended before the run did.
func (a *commands) waitFailure(ctx context.Context, stop *app.Stopper, id string, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errWaited):
		return &failure.Failure{
			Exit: failure.ExitTimeout,
			Code: "timeout",
			Task: id,
			What: "wait for task " + id,
			Why:  "it did not end within the given time",
			Try:  "roost attach " + failure.ShellWord(id),
		}
	case stop.Exit() != 0:
		return &failure.Failure{
			Exit: stop.Exit(),
			Code: "cancelled",
			Task: id,
			What: "wait for task " + id,
			Why:  "it was interrupted; the task continues where it runs",
			Try:  "roost wait " + failure.ShellWord(id),
		}
	}
	return err
}
