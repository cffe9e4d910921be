package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// settle decides what becomes of a call whose outcome a crash left unknown. It
// returns true when the call may simply run (again).
func (b *batch) settle(ctx context.Context, c *task.Call, t tool.Tool) (bool, error) {
	a := b.agent
	if c.Foreign {
		switch {
		case t != nil && t.Spec().Class == tool.Control:
			return true, nil // it has no effects: show it again
		default:
			text := "Task was interrupted before this tool call could be completed."
			return false, b.finish(ctx, c, verdict{outcome: "unknown", text: text})
		}
	}
	if t == nil {
		text := rows.Failure(fmt.Sprintf("there is no tool named %q any more", c.Name))
		return false, b.finish(ctx, c, verdict{outcome: "unknown", text: text, isError: true})
	}
	switch replay := t.Spec().Replay; {
	case replay == tool.Again:
		return true, nil
	case c.Rewound:
		return false, b.rewound(ctx, c, t)
	case replay == tool.Inspect:
		return b.inspect(ctx, c, t)
	}
	text := "The program was killed while this tool ran. It is not known whether, or how far, it took effect. " +
		"It was not run again. Check the state of things before you decide to repeat it."
	a.notice(fmt.Sprintf("%s was interrupted: its outcome is unknown, and it is not run again", c.Name))
	v := verdict{outcome: "unknown", text: text, isError: true}
	var guard checkpoints.Guard
	if checkpoints.ChangesUnnamed(t.Spec().Class) {
		var changed string
		guard, v.changes, changed = a.checkpoints.Interrupted(ctx, c)
		defer guard.Close()
		v.text += changed
	}
	if err := b.finish(ctx, c, v); err != nil {
		return false, err
	}
	a.checkpoints.Concluded(guard)
	return false, nil
}

// inspect looks at the files to see whether a write took place.
func (b *batch) inspect(ctx context.Context, c *task.Call, t tool.Tool) (bool, error) {
	looker, ok := t.(tool.Inspector)
	if !ok {
		return false, b.finish(ctx, c, verdict{outcome: "unknown", text: unclearWrite, isError: true})
	}
	input := c.Input()
	found, err := bounded(ctx, c.Name, true, func(ctx context.Context) (tool.Finding, error) {
		return looker.Inspect(ctx, b.env(""), input, c.Before)
	})
	if ctx.Err() != nil {
		return false, context.Cause(ctx) // nothing was decided: the next run looks again
	}
	if err != nil {
		return false, b.finish(ctx, c, verdict{outcome: "unknown", text: unclearWrite + " " + err.Error(), isError: true, after: b.wrote(ctx, c)})
	}
	switch found {
	case tool.NotDone:
		return true, nil
	case tool.Done:
		text := "The program was killed while this tool ran. The file shows that the change was made; it was not made again."
		return false, b.finish(ctx, c, verdict{outcome: "ok", text: text, after: b.wrote(ctx, c)})
	}
	return false, b.finish(ctx, c, verdict{outcome: "unknown", text: unclearWrite, isError: true})
}

const unclearWrite = "The program was killed while this tool ran, and the file does not show whether the change was made. " +
	"It was not made again. Read the file before you go on."

// wrote returns the records of the files that a call changed, where only a look at the files shows that: the
// program was killed before the call could record it.
func (b *batch) wrote(ctx context.Context, c *task.Call) []task.Event {
	var out []task.Event
	for _, path := range slices.Sorted(maps.Keys(c.Before)) {
		_, want, planned := strings.Cut(c.Before[path], " ")
		if !planned || b.agent.Host.Workspace == nil {
			continue
		}
		s, err := b.agent.Host.Workspace.Stat(ctx, path)
		if err != nil || s.Hash != want {
			continue
		}
		out = append(out, task.FileChanged{
			Path: path, Source: "roo_edited",
			Hash: s.Hash, Size: s.Size, MTime: s.MTime, CTime: s.CTime, Inode: s.Inode, Device: s.Device,
		})
	}
	return out
}
