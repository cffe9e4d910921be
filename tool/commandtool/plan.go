package commandtool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/usergit"
)

type plan struct {
	options Options
	env     tool.Env
	line    string
	where   workspace.Path
	limit   time.Duration
	git     usergit.Standing
}

func (p *plan) Ask() tool.Ask {
	return tool.Ask{
		Tool: Name, Kind: "command", Text: p.line, Command: p.line, Dir: p.where.Real, Title: p.title(),
		Paths: []string{p.where.Abs}, Outside: p.where.Outside, Ignored: p.where.Ignored,
		Protected: p.env.Workspace.ProtectedWord(p.line, p.where.Real) != "",
		Git:       p.git.Any, GitHooks: p.git.Hooks,
	}
}

// longLine is the longest command of one line, in characters, that is shown after the tool's name.
const longLine = 400

// title shows the whole command, and the folder where it is not the workspace. A command of several lines is shown
// below the tool's name, indented: none of its lines can pass for one of Roost's.
func (p *plan) title() string {
	title := Name
	if root, err := p.env.Workspace.Resolve("."); err != nil || root.Real != p.where.Real {
		title += " «in " + tool.OneLine(p.where.Real) + "»"
	}
	shown := strings.TrimRight(tool.Visible(p.line), "\n")
	if len(shown) <= longLine && !strings.Contains(shown, "\n") {
		return title + " " + shown
	}
	const indent = "\n    "
	return title + indent + strings.ReplaceAll(shown, "\n", indent)
}

// Run runs the command. A command that fails, or that the time limit ends, is a result; so is a folder that has
// disappeared, since the model can repair that.
func (p *plan) Run(ctx context.Context, out tool.Output) (tool.Result, error) {
	now, err := p.env.Workspace.Resolve(p.where.Given)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", Name, err)
	}
	why := notFolder(now)
	if now.Real != p.where.Real {
		why = fmt.Sprintf("\"cwd\" %s leads elsewhere than when the command was asked for", p.where.Readable)
	}
	if why != "" {
		return tool.Result{Text: "Error: nothing was run: " + why + ".", IsError: true}, nil
	}
	kept := &capture{dir: p.env.SpoolDir, limit: p.options.PreviewBytes}
	ran, err := shell.Run(ctx, shell.Command{
		Line: p.line, Dir: p.where.Real, Timeout: p.limit, Mark: p.env.Mark,
		Output: both{kept, out},
		Started: func(proc shell.Process) {
			out.Started(proc)
			failpoint.Hit("tool.command.started")
		},
	})
	full, spoolErr := kept.close(err != nil)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", Name, err)
	}
	if spoolErr != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", Name, spoolErr)
	}
	exit := ran.Exit
	res := tool.Result{Text: p.text(ran, kept, full), Full: full, Exit: &exit, TimedOut: ran.TimedOut}
	if ran.Cancelled {
		return res, context.Cause(ctx)
	}
	return res, nil
}

// both keeps first and shows second.
type both struct {
	keep *capture
	show tool.Output
}

func (b both) Write(p []byte) (int, error) {
	if _, err := b.keep.Write(p); err != nil {
		return 0, err
	}
	return b.show.Write(p)
}
