package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// commit is a journal line as --json shows it.
type commit struct {
	Seq    uint64          `json:"seq"`
	Epoch  uint64          `json:"epoch"`
	At     string          `json:"at,omitempty"` // RFC 3339 in UTC, milliseconds
	By     string          `json:"by,omitempty"`
	Events []journal.Event `json:"events,omitempty"`
	Damage string          `json:"damage,omitempty"`
}

func (a *App) showJournal(ctx context.Context, v *store.View, f showFlags) error {
	if v.Log == nil {
		return &Failure{Exit: ExitNotFound, Code: "no_journal", Task: v.Ref.ID, What: "show the journal of task " + v.Ref.ID,
			Why: "it has none yet: no program with a journal has changed it", Try: "roost show " + v.Ref.ID + " --ui"}
	}
	var all []commit
	for c, err := range v.Log.Read(ctx, 1) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			all = append(all, commit{Seq: lost.Seq, Damage: lost.Reason})
		case err != nil:
			return fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, err)
		default:
			all = append(all, commit{Seq: c.Seq, Epoch: c.Epoch, At: report.Stamp(c.At), By: c.By, Events: c.Events})
		}
	}
	from, to := window(len(all), f)
	out := bufio.NewWriter(a.Out)
	if a.flags.json {
		if err := encode(out, append([]commit{}, all[from:to]...), false); err != nil {
			return err
		}
		return flushed(out)
	}
	width := 200
	if a.flags.verbose {
		width = 0
	}
	for _, c := range all[from:to] {
		if c.Damage != "" {
			fmt.Fprintf(out, "%6d damaged: %s\n", c.Seq, c.Damage)
		}
		for _, raw := range c.Events {
			fmt.Fprintf(out, "%6d %3d %s\n", c.Seq, c.Epoch, display.Cut(display.OneLine(string(raw)), width))
		}
	}
	return flushed(out)
}
