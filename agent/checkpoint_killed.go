package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/task"
)

// What a command changed that was killed together with the program is found by comparing
// with the look at the workspace before it, which outlives a kill.

// outlived notes that a call's command ran on after the run that had begun it.
func (a *Agent) outlived(call string) {
	if a.keeping.outlived == nil {
		a.keeping.outlived = map[string]bool{}
	}
	a.keeping.outlived[call] = true
}

// interrupted adds to a verdict what a command changed whose outcome is not known, and
// apart from that what became different later: a person may have worked since. Where
// there was no look before the command, or it is lost, what became of known files is all
// that can be told, and not by whom.
func (b *batch) interrupted(ctx context.Context, c *task.Call, v *verdict) (g guard) {
	a := b.agent
	if !a.keeps() {
		return g
	}
	s, err := a.Host.Checkpoints.Interrupted(ctx, c.ID)
	if s == nil || err != nil {
		if err != nil && !a.trouble(err) && ctx.Err() == nil {
			a.notice(fmt.Sprintf("what %s changed before it was interrupted could not be looked at: %v", c.Name, err))
		}
		v.since = b.looked(ctx)
		if n := len(v.since); n > 0 {
			a.notice(fmt.Sprintf("the look at the workspace before %s is lost: what it changed is not known. %s not as last recorded, and a restore asks about them: %s", c.Name, countFiles(n), someFiles(v.since)))
			v.text += a.mask(fmt.Sprintf(" Changed before or since it was interrupted, by whom is not known: %s.", someFiles(v.since)))
		}
		return g
	}
	g.survey = s
	b.attribute(ctx, c, g, a.keeping.outlived[c.ID], v)
	if n := len(v.changes); n > 0 {
		names := someFiles(v.changes)
		a.notice(fmt.Sprintf("%s changed by %s before it was interrupted: %s", countFiles(n), c.Name, names))
		v.text += a.mask(fmt.Sprintf(" %s changed while it ran: %s.", countFiles(n), names))
	}
	if n := len(v.doubt); n > 0 {
		names := someFiles(v.doubt)
		a.notice(fmt.Sprintf("%s changed while %s ran before it was interrupted, by it or by somebody else; a restore asks about them: %s", countFiles(n), c.Name, names))
		v.text += a.mask(fmt.Sprintf(" %s changed while it ran, by it or by somebody else: %s.", countFiles(n), names))
	}
	if n := len(v.since); n > 0 {
		a.notice(fmt.Sprintf("%s changed since %s was interrupted, by whom is not known, and a restore asks about them: %s", countFiles(n), c.Name, someFiles(v.since)))
	}
	return g
}

// someFiles names the first few files.
func someFiles(files []task.CheckpointFile) string {
	var names []string
	for _, f := range files[:min(len(files), 5)] {
		names = append(names, cut(f.Path, 80))
	}
	if len(files) > len(names) {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}
