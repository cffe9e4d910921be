package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/workspace/shell"
)

// leftoverWait is how long the end of a command that outlived us is waited for.
const leftoverWait = 5 * time.Second

// endLeftovers ends commands that outlived a killed run, and says so. What they
// print is lost to us and what they do cannot be followed: left alone they would
// work beside the model without its knowledge.
func (a *Agent) endLeftovers(ctx context.Context) {
	for _, c := range a.state().Calls() {
		if c.Process == nil || c.Finished != nil {
			continue
		}
		p := shell.Process{PGID: c.Process.PGID, Started: c.Process.Started, Boot: c.Process.Boot, Mark: c.Process.Mark}
		if !shell.Find(p) {
			continue
		}
		a.notice(fmt.Sprintf("a command of this task still runs from before (process group %d): ending it", p.PGID))
		ctx, cancel := context.WithTimeout(ctx, leftoverWait)
		if err := shell.End(ctx, p); err != nil {
			a.notice(fmt.Sprintf("it could not be ended: %v; end it by hand", err))
		}
		cancel()
	}
}
