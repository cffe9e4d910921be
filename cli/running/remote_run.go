package running

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

// farFlags refuses flags that a run on a server cannot have; see refuseLocalFlags.
func (a *commands) farFlags(cmd *cobra.Command, r *app.RunFlags) error {
	base, err := a.Global(a.Flags.Server, "server")
	if err != nil {
		return err
	}
	r.Far = base != ""
	return r.RefuseLocalFlags(cmd)
}

// farRun starts a task on a server, or continues one there, and follows it. Ctrl-C
// only stops following.
func (a *commands) farRun(ctx context.Context, c *client.Client, req engine.Request) error {
	w := watched{task: req.Task, after: "0", ask: req.Interactive}
	var run api.Run
	var err error
	if req.Task == "" {
		if req.Workspace == "" {
			req.Workspace = a.Dir
		}
		if req, err = a.AsNew(req); err != nil {
			return err
		}
		body := newTaskOf(req)
		body.Unattended = !req.Interactive
		w.fresh = true
		run, err = c.Start(ctx, body)
	} else {
		if w.after, err = c.Mark(ctx, req.Task); err != nil {
			return err
		}
		body := newRunOf(req)
		body.Unattended = !req.Interactive
		run, err = c.Resume(ctx, req.Task, body)
	}
	if err != nil {
		return err
	}
	w.task, w.run = run.Task, run.ID
	return a.watchOn(ctx, c, w)
}
