package mention

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/terminal"
)

// Limits of the output of git or a linter.
const (
	outputLines = 500
	outputChars = 100_000
	outputBytes = 1 << 20 // bytes that are kept
)

// limitedBuffer keeps the first bytes that are written to it.
type limitedBuffer struct {
	b   strings.Builder
	max int
	cut bool
}

func (c *limitedBuffer) Write(p []byte) (int, error) {
	room := c.max - c.b.Len()
	if len(p) > room {
		c.cut = true
		c.b.Write(p[:max(0, room)])
		return len(p), nil
	}
	c.b.Write(p)
	return len(p), nil
}

// text is the output as a model is shown it.
func (c *limitedBuffer) text() string {
	text := strings.ToValidUTF8(c.b.String(), "\uFFFD")
	if c.cut {
		text += fmt.Sprintf("\n[... more than %d bytes: the rest is left out]", c.max)
	}
	return terminal.Truncate(text, outputLines, outputChars)
}

// Problems runs the linter that the person has set up.
func (g Disk) Problems(ctx context.Context) (string, bool) {
	if g.Linter == "" {
		return "There is no editor to ask, and no linter is set up. `roost config set linter COMMAND` names the one to run.", false
	}
	out := &limitedBuffer{max: outputBytes}
	ran, err := shell.Run(ctx, shell.Command{
		Line:    g.Linter,
		Dir:     g.Workspace.Root(),
		Timeout: linterTime,
		Output:  out,
		Mark:    g.Mark,
	})
	said := strings.TrimSpace(terminal.Plain(out.text()))
	switch {
	case err != nil:
		return fmt.Sprintf("The linter %q could not be run: %v", g.Linter, err), false
	case ran.Cancelled:
		return "The linter was stopped with the run.", false
	case ran.TimedOut:
		return fmt.Sprintf("The linter %q took more than %s and was ended. Its output until then:\n%s", g.Linter, linterTime, said), false
	case said == "" && ran.Exit == 0:
		return "No errors or warnings detected.", true
	case said == "":
		return fmt.Sprintf("The linter %q ended with exit code %d and printed nothing.", g.Linter, ran.Exit), true
	}
	return said, true
}
