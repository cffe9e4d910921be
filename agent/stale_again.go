package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/workspace"
)

// Bounds of what is read again for the model in one turn.
const (
	againFile = 32 << 10 // bytes of one file, as shown
	againAll  = 96 << 10 // bytes of all of them
	againFor  = 2 * time.Second
)

// again gives the model the new content of files that changed, where the setting asks for
// that. What does not fit in, is no text or may not be shown unasked is told like any
// other change.
type again struct {
	ctx   context.Context //nolint:containedctx // of one turn
	agent *Agent
	size  int
	until time.Time
}

// read shows a file as read_file does, and what is recorded of that.
func (g *again) read(f staleFile) (text string, record task.FileChanged, ok bool) {
	if g.until.IsZero() {
		g.until = time.Now().Add(againFor)
	}
	if f.now.Verdict == workspace.Missing || f.now.State.Hash == "" || f.now.State.Hash == f.known.Seen.Hash || f.path.Outside || f.path.Protected || f.path.Ignored {
		return "", record, false
	}
	ctx, cancel := context.WithDeadline(g.ctx, g.until)
	defer cancel()
	s, problem, err := filetool.Show(ctx, g.agent.Host.Workspace, f.path)
	if err != nil || problem != "" || s.Binary || s.Image != nil || len(s.Text) > againFile || g.size+len(s.Text) > againAll {
		return "", record, false
	}
	g.size += len(s.Text)
	text = fmt.Sprintf("\nRead again. File: %s\n%s", workspaceName(f.known.Path), s.Text)
	if s.Truncated {
		text += fmt.Sprintf("\n(The first %d of %d lines. Read the others with read_file.)", s.Returned, s.Lines)
	}
	record = fileChanged(s.Touch)
	record.Path, record.Source = f.known.Path, "read_tool"
	return text + "\n", record, true
}
