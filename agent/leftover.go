package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace/shell"
)

// leftoverWait is how long the end of a command that outlived us is waited for.
const leftoverWait = 5 * time.Second

// endLeftovers ends commands that outlived a killed run, and says so. What they
// print is lost to us and what they do cannot be followed: left alone they would
// work beside the model without its knowledge. A command whose process was recorded
// is found by it; one that was killed in the moment between its start and that
// record is found by its mark, which is in the log before anything carries it.
func (a *Agent) endLeftovers(ctx context.Context) {
	for _, c := range a.state().Calls() {
		if c.Process == nil || c.Finished != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, leftoverWait)
		err := a.endLeftover(ctx, c.ID, *c.Process)
		cancel()
		if err != nil {
			a.notice(fmt.Sprintf("a command of this task from before could not be ended: %v; end it by hand", err))
		}
	}
}

func (a *Agent) endLeftover(ctx context.Context, call string, r task.ToolProcess) error {
	p := shell.Process{PGID: r.PGID, Started: r.Started, Boot: r.Boot, Mark: r.Mark}
	if shell.Find(p) {
		a.checkpoints.Outlived(call)
		a.notice(fmt.Sprintf("a command of this task still runs from before (process group %d): ending it", p.PGID))
		if err := shell.End(ctx, p); err != nil {
			return err
		}
	}
	found, err := shell.EndMarked(ctx, r.Mark)
	for _, m := range found {
		a.checkpoints.Outlived(call)
		a.notice(fmt.Sprintf("a process of this task still ran from before (%d, %s): it was ended", m.PID, m.Name))
	}
	return err
}
