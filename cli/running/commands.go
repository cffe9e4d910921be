// Package running holds the commands that start, continue, follow, answer, stop and await runs,
// and the chat. A follower's end never ends a run of another process; without a terminal no
// question is asked, and the exit code tells that one is open.
package running

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
)

// Parts are what runs need of other packages of the command line.
type Parts struct {
	Pick func(ctx context.Context, a *app.App, s *local.Roost, purpose string) (id string, err error) // a person chooses a task
	Run  func(ctx context.Context, a *app.App, args []string) (exit int)                              // a whole command line
}

// commands are the commands of this package with the invocation that they belong to.
type commands struct {
	*app.App
	parts Parts
}

// Commands are the commands of this package.
func Commands(app *app.App, parts Parts) []*cobra.Command {
	a := &commands{app, parts}
	return []*cobra.Command{
		a.runCommand(),
		a.resumeCommand(),
		a.continueCommand(),
		a.answerCommand(),
		a.attachCommand(),
		a.sendCommand(),
		a.cancelCommand(),
		a.waitCommand(),
		a.chatCommand(),
	}
}

// Attach follows what a task does now, over the connection c. ask allows questions to the user.
func Attach(ctx context.Context, a *app.App, c *client.Client, id string, ask bool) error {
	return (&commands{App: a}).attach(ctx, c, id, ask)
}

func (a *commands) attachCommand() *cobra.Command {
	var readOnly bool
	cmd := help.Command("attach", func(cmd *cobra.Command, args []string) error {
		return a.WithClient(cmd.Context(), func(c *client.Client, e *engine.Engine) error {
			return a.attach(cmd.Context(), c, args[0], a.Interactive() && !readOnly)
		})
	})
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
	return a.watchOn(ctx, c, fromStart(r, ask))
}

// fromStart follows a run from its start. What led to the run may be of the same millisecond.
func fromStart(r api.Run, ask bool) watched {
	w := watched{task: r.Task, run: r.ID, after: "0", ask: ask, fresh: true}
	if r.StartedAt != nil {
		w.since = *r.StartedAt
	}
	return w
}

func (a *commands) cancelCommand() *cobra.Command {
	return help.Command("cancel", func(cmd *cobra.Command, args []string) error {
		return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
			return app.Exchange(cmd.Context(), a.App, c, client.Request{
				Method: http.MethodPost,
				Path:   app.PathOf(args[0], "cancel"),
			}, func(r api.Run) error {
				if err := a.Println(display.OneLine(r.Task + "  " + r.State)); err != nil {
					return err
				}
				a.Say("  go on with it: roost resume %s", failure.ShellWord(r.Task))
				return nil
			})
		})
	})
}

func (a *commands) waitCommand() *cobra.Command {
	var most time.Duration
	cmd := help.Command("wait", func(cmd *cobra.Command, args []string) error {
		if most < 0 {
			return failure.Usage("roost wait --timeout", "a time cannot be negative", "roost wait ID --timeout 10m")
		}
		return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
			return a.wait(cmd.Context(), c, args, most)
		})
	})
	cmd.Flags().DurationVar(&most, "timeout", 0, "wait no longer than this (0 = as long as it takes)")
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
		return failure.New(failure.ExitTimeout, "timeout", "wait for task "+id,
			"it did not end within the given time", "roost attach "+failure.ShellWord(id)).OfTask(id)
	case stop.Exit() != 0:
		return failure.New(stop.Exit(), "cancelled", "wait for task "+id,
			"it was interrupted; the task continues where it runs",
			"roost wait "+failure.ShellWord(id)).OfTask(id)
	}
	return err
}

// newestRun is the newest run of a task, or the run of that very name.
func newestRun(ctx context.Context, c *client.Client, id string) (api.Run, error) {
	runs, err := c.RunsOf(ctx, id)
	if p, is := errors.AsType[*client.Problem](err); is && p.Status/100 == 4 {
		if r, other := c.Run(ctx, id); other == nil {
			return r, nil
		}
	}
	if err != nil {
		return api.Run{}, err
	}
	if len(runs.Items) == 0 {
		return api.Run{}, failure.New(failure.ExitNotFound, "run_not_found", "find a run of task "+id,
			"roost never ran it", "roost resume "+failure.ShellWord(id)).OfTask(id)
	}
	return runs.Items[0], nil
}
