package running

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

// waiting is a task above that is about to continue, and its state before.
type waiting struct {
	task, after string
	run         api.Run
}

// mostAbove bounds how many ancestors of a task are read.
const mostAbove = 32

// above are the tasks that wait for this one, the nearest first: when a run of this process
// completes it, each may be woken. They are read before the words are sent, which may
// be enough for all of them.
func (a *commands) above(ctx context.Context, c *client.Client, id string) (out []waiting) {
	for len(out) < mostAbove {
		t, err := c.Task(ctx, id)
		if err != nil || t.ParentID == "" {
			return out // the run that continues the task reports what is wrong with it
		}
		up := waiting{task: t.ParentID}
		if up.after, err = c.Mark(ctx, up.task); err != nil {
			return out
		}
		if up.run, err = newestRun(ctx, c, up.task); err != nil {
			return out
		}
		out = append(out, up)
		id = up.task
	}
	return out
}

// woken is the run of a task above that the end of one below it has started, if it has.
func (u waiting) woken(ctx context.Context, c *client.Client) (string, bool) {
	r, err := newestRun(ctx, c, u.task)
	if err != nil {
		return "", false
	}
	return r.ID, r.Here || r.ID != u.run.ID || r.State != u.run.State || r.Question != u.run.Question
}

// watchHere watches a run that this process works on since it was answered, and then that
// of the task which its end wakes, as followAll does: it would be stopped if this process
// ended now. The last one's outcome counts.
func (a *commands) watchHere(ctx context.Context, c *client.Client, e *engine.Engine, w watched, above []waiting) error {
	w.here = true
	if !w.ask {
		w.letGo = func() {
			// Drain waits: the event of the question comes before the run waits for the answer.
			_ = e.Drain(context.WithoutCancel(ctx))
		}
	}
	for {
		in, outcome, err := a.watch(ctx, c, w)
		if err != nil || outcome.State != "completed" || len(above) == 0 {
			return a.concluded(in, outcome, err)
		}
		if err := e.Settle(ctx, w.run); err != nil {
			return fmt.Errorf("wait for what follows run %s: %w", w.run, err)
		}
		run, ok := above[0].woken(ctx, c)
		if !ok {
			return a.concluded(in, outcome, nil)
		}
		if !a.Flags.JSON {
			a.Say("subtask %s is completed; task %s, which waited for it, continues", w.task, above[0].task)
		}
		w.task, w.run, w.after, w.fresh, w.since = above[0].task, run, above[0].after, false, ""
		above = above[1:]
	}
}
