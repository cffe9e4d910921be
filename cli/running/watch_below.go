package running

import (
	"context"
	"slices"
	"time"

	"github.com/roost-dev/roost/api"
)

// A subtask may already work when a client begins to follow its task. Then no shown event
// names it: it started in an earlier run, or before the words that were sent. The subtask
// works and asks, so the watcher looks for it when its task sends no event.

const (
	soonBelow = 300 * time.Millisecond // of silence until the first look
	mostBelow = 4                      // of a task's subtasks, the newest: it waits for one at a time
)

// Running is the run of a subtask that works, or waits for a person, and is not followed
// yet; nil when there is none.
func (w *Watcher) Running(ctx context.Context, id string) *api.Run {
	t, err := w.C.Task(ctx, id)
	if err != nil {
		return nil // if the failure lasts, the events report it
	}
	for _, child := range slices.Backward(t.ChildIDs[max(0, len(t.ChildIDs)-mostBelow):]) {
		runs, err := w.C.RunsOf(ctx, child)
		if err != nil || len(runs.Items) == 0 || w.Followed[runs.Items[0].ID] {
			continue
		}
		if r := runs.Items[0]; r.State == "queued" || r.State == "running" || r.State == "waiting" {
			return &r
		}
	}
	return nil
}

// below follows a subtask that already works, if there is one: from the start of its run, or,
// if its task is followed from now on only, from now on. When its start was shown here and its
// run came late, it is shown from the start of the run.
func (w *Watcher) below(ctx context.Context, id string, depth int) error {
	r := w.Running(ctx, id)
	if r == nil {
		return nil
	}
	after, since := "0", ""
	if !w.here && w.after != "0" && !w.began[r.Task] {
		mark, err := w.C.Mark(ctx, r.Task)
		if err != nil {
			return err
		}
		after = mark
	} else if r.StartedAt != nil {
		since = *r.StartedAt
	}
	w.Followed[r.ID] = true
	_, err := w.one(ctx, r.Task, r.ID, after, since, depth+1)
	return err
}
