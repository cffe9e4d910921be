package tasks

import (
	"bufio"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
)

func (a *commands) printCommits(all []api.Commit) error {
	out := bufio.NewWriter(a.Out)
	if a.Flags.JSON {
		if err := app.Encode(out, append([]api.Commit{}, all...), false); err != nil {
			return err
		}
		return app.Flushed(out)
	}
	width := 200
	if a.Flags.Verbose {
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
	return app.Flushed(out)
}
