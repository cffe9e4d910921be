package running

import (
	"context"
	"errors"
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

// newestRun is the newest run of a task, or the run of that very name.
func newestRun(ctx context.Context, c *client.Client, id string) (api.Run, error) {
	runs, err := c.RunsOf(ctx, id)
	var p *client.Problem
	if errors.As(err, &p) && p.Status/100 == 4 {
		if r, other := c.Run(ctx, id); other == nil {
			return r, nil
		}
	}
	if err != nil {
		return api.Run{}, err
	}
	if len(runs.Items) == 0 {
		return api.Run{}, &failure.Failure{
			Exit:   failure.ExitNotFound,
			Code:   "run_not_found",
			Status: http.StatusNotFound,
			Task:   id,
			What:   "find a run of task " + id,
			Why:    "roost never ran it",
			Try:    "roost resume " + failure.ShellWord(id),
		}
	}
	return runs.Items[0], nil
}

// runsHere reports whether this process itself works on a task, or did.
func runsHere(e *engine.Engine) bool {
	if e == nil {
		return false
	}
	running, waiting, queued := e.Load()
	return e.Began() || running+waiting+queued > 0 // it may have ended by now
}
