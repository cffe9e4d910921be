package cli

import (
	"bufio"
	"fmt"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
)

func (a *App) printCommits(all []api.Commit) error {
	out := bufio.NewWriter(a.Out)
	if a.flags.json {
		if err := encode(out, append([]api.Commit{}, all...), false); err != nil {
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
