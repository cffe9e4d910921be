package cli

import (
	"bufio"
	"context"
	"fmt"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

func (a *App) showJournal(ctx context.Context, v *store.View, f showFlags) error {
	if v.Log == nil {
		return &Failure{Exit: ExitNotFound, Code: "no_journal", Task: v.Ref.ID, What: "show the journal of task " + v.Ref.ID,
			Why: "it has none yet: no program with a journal has changed it", Try: "roost show " + v.Ref.ID + " --ui"}
	}
	all, err := report.CommitsOf(ctx, v)
	if err != nil {
		return err
	}
	from, to := window(len(all), f)
	return a.printCommits(all[from:to])
}

func (a *App) printCommits(all []report.Commit) error {
	out := bufio.NewWriter(a.Out)
	if a.flags.json {
		if err := encode(out, append([]report.Commit{}, all...), false); err != nil {
			return err
		}
		return flushed(out)
	}
	width := 200
	if a.flags.verbose {
		width = 0
	}
	for _, c := range all {
		if c.Damage != "" {
			fmt.Fprintf(out, "%6d damaged: %s\n", c.Seq, c.Damage)
		}
		for _, raw := range c.Events {
			fmt.Fprintf(out, "%6d %3d %s\n", c.Seq, c.Epoch, display.Cut(display.OneLine(string(raw)), width))
		}
	}
	return flushed(out)
}
