package running

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/view"
)

// screen is the display of an event's task: each subtask has its own, because
// message numbers and call ids are unique in one task only.
func (f *follower) screen(e shownEvent) *display.Display {
	d := f.d
	if e.depth > 0 {
		if d = f.screens[e.task]; d == nil {
			if f.screens == nil {
				f.screens = map[string]*display.Display{}
			}
			d = f.d
			for i := range e.depth {
				if i == e.depth-1 && !f.named[e.task] { // its start was shown in an earlier run
					d.Line(view.Head, "· subtask "+e.task)
				}
				d = d.Below()
			}
			f.screens[e.task] = d
		}
	}
	if e.Type == "subtask.started" {
		child, _ := esjson.GetString(e.Data, "child")
		if f.named == nil {
			f.named = map[string]bool{}
		}
		f.named[child] = true
	}
	if f.last != nil && f.last != d {
		f.last.Flush()
	}
	f.last = d
	return d
}

// used is what the run and its subtasks used.
func (f *follower) used() display.Totals {
	u := f.d.Usage
	for _, d := range f.screens {
		u.Turns += d.Usage.Turns
		u.In += d.Usage.In
		u.Out += d.Usage.Out
		u.Cost += d.Usage.Cost
		u.Unknown = u.Unknown || d.Usage.Unknown
	}
	return u
}

// followRun follows a run of this process, and then the run that starts when it ends: that of the task that waited for
// it, or one of the same task for words that came at the last moment. The outcome is that of the last run.
func (a *commands) followRun(ctx context.Context, c *client.Client, run *engine.Run, ask bool, stop *app.Stopper) (*Watcher, engine.Outcome, error) {
	for {
		in, outcome, err := a.watchUntil(ctx, c, watched{
			task:  run.TaskID,
			run:   run.ID,
			after: run.Start(),
			ask:   ask,
			here:  true,
		}, stop, run)
		if err != nil {
			return in, outcome, fmt.Errorf("follow the run of task %s: %w", run.TaskID, err)
		}
		next, err := run.Next(ctx)
		if err != nil {
			a.Warn(err.Error())
		}
		said := ""
		if next == nil {
			next, said = run.After(ctx), "it continues with words from another client"
		}
		if next == nil {
			return in, outcome, nil
		}
		if said == "" && next.TaskID == run.TaskID {
			said = "it continues with words that came at the last moment"
		}
		switch {
		case a.Flags.JSON:
		case said != "":
			a.Say("%s", said)
		default:
			a.Say("subtask %s is completed; task %s, which waited for it, continues", run.TaskID, next.TaskID)
		}
		run = next
	}
}
