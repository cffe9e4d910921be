package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/shell"
)

// settleUnknown decides about a call whose outcome a crash left unknown. It returns true when the call may simply run
// (again).
func (b *batch) settleUnknown(ctx context.Context, c *task.Call, t tool.Tool) (bool, error) {
	a := b.agent
	if c.Foreign {
		switch {
		case t != nil && t.Spec().Class == tool.Control:
			return true, nil // without effects it can be shown again
		default:
			text := "Task was interrupted before this tool call could be completed."
			return false, b.finishCall(ctx, c, callOutcome{state: "unknown", text: text})
		}
	}
	if t == nil {
		text := rows.Failure(fmt.Sprintf("there is no tool named %q any more", c.Name))
		return false, b.finishCall(ctx, c, callOutcome{state: "unknown", text: text, isError: true})
	}
	switch replay := t.Spec().Replay; {
	case replay == tool.Again:
		return true, nil
	case c.Rewound:
		return false, b.settleRewound(ctx, c, t)
	case replay == tool.Inspect:
		return b.inspectWrite(ctx, c, t)
	}
	text := "The program was killed while this tool ran. It is not known whether, or how far, it took effect. " +
		"It was not run again. Check the state of things before you decide to repeat it."
	a.notice(fmt.Sprintf("%s was interrupted: its outcome is unknown, and it is not run again", c.Name))
	v := callOutcome{state: "unknown", text: text, isError: true}
	var guard checkpoints.Guard
	if checkpoints.ChangesUnnamed(t.Spec().Class) {
		var changed string
		guard, v.changes, changed = a.checkpoints.Interrupted(ctx, c)
		defer guard.Close()
		v.text += changed
	}
	if err := b.finishCall(ctx, c, v); err != nil {
		return false, err
	}
	a.checkpoints.Concluded(guard)
	return false, nil
}

// inspectWrite inspects the files to find out whether a write took place.
func (b *batch) inspectWrite(ctx context.Context, c *task.Call, t tool.Tool) (bool, error) {
	looker, ok := t.(tool.Inspector)
	if !ok {
		return false, b.finishCall(ctx, c, callOutcome{state: "unknown", text: unclearWrite, isError: true})
	}
	input := c.Input()
	found, err := runBounded(ctx, c.Name, true, func(ctx context.Context) (tool.Finding, error) {
		return looker.Inspect(ctx, b.toolEnv(""), input, c.Before)
	})
	if ctx.Err() != nil {
		return false, context.Cause(ctx) // nothing was decided: the next run inspects again
	}
	if err != nil {
		return false, b.finishCall(ctx, c, callOutcome{
			state:   "unknown",
			text:    unclearWrite + " " + err.Error(),
			isError: true,
			after:   b.wroteRecords(ctx, c),
		})
	}
	switch found {
	case tool.NotDone:
		return true, nil
	case tool.Done:
		text := "The program was killed while this tool ran. The file shows that the change was made; it was not made again."
		return false, b.finishCall(ctx, c, callOutcome{state: "ok", text: text, after: b.wroteRecords(ctx, c)})
	}
	return false, b.finishCall(ctx, c, callOutcome{state: "unknown", text: unclearWrite, isError: true})
}

const unclearWrite = "The program was killed while this tool ran, and the file does not show whether the change was made. " +
	"It was not made again. Read the file before you go on."

// wroteRecords returns the records of the files that a call changed, where only the files show that: the program was
// killed before the call could record it.
func (b *batch) wroteRecords(ctx context.Context, c *task.Call) []task.Event {
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
			Path:   path,
			Source: "roo_edited",
			Hash:   s.Hash,
			Size:   s.Size,
			MTime:  s.MTime,
			CTime:  s.CTime,
			Inode:  s.Inode,
			Device: s.Device,
		})
	}
	return out
}

// settleRewound settles a call of a reply that stays, whose outcome a user undid. It does not run again, even where
// its change was undone: the user undid that as well, and the next input holds what they want now. Later changes are
// not the call's: it had ended, and its changes were recorded.
func (b *batch) settleRewound(ctx context.Context, c *task.Call, t tool.Tool) error {
	const took = "The user took the history back to before this call had ended. "
	v := callOutcome{state: "unknown", isError: true, text: took + "Its changes may still exist, or may have been undone as well. " +
		"It was not run again. Check the state of things before you decide to repeat it."}
	if looker, is := t.(tool.Inspector); is && t.Spec().Replay == tool.Inspect {
		found, err := runBounded(ctx, c.Name, true, func(ctx context.Context) (tool.Finding, error) {
			return looker.Inspect(ctx, b.toolEnv(""), c.Input(), c.Before)
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx) // nothing was decided: the next run inspects again
		case err == nil && found == tool.Done:
			v = callOutcome{state: "ok", text: took + "The file holds its change; it was not made again.", after: b.wroteRecords(ctx, c)}
		case err == nil && found == tool.NotDone:
			v.text = took + "Its change was taken back as well: the file is as it was before. It was not made again."
		default:
			v.text = took + "The file is something else by now, and the change was not made again. Read the file before you go on."
		}
	}
	b.agent.notice(fmt.Sprintf("the outcome of %s was taken back: it is not run again", c.Name))
	return b.finishCall(ctx, c, v)
}

// leftoverWait bounds the wait for the end of a command that outlived its run.
const leftoverWait = 5 * time.Second

// endLeftovers ends commands that outlived a killed run, and notifies the person. Their output is lost and their
// effects cannot be followed: left alone they would change files unknown to the model. A recorded process is found by
// its record. A process that was killed between its start and that record is found by its mark, which is in the journal
// before any process carries it.
func (a *Agent) endLeftovers(ctx context.Context) {
	for _, c := range a.state().Calls() {
		if c.Process == nil || c.Finished != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, leftoverWait)
		err := a.endLeftover(ctx, c.ID, *c.Process)
		cancel()
		if err != nil {
			a.notice(fmt.Sprintf("a command of this task from before could not be ended: %v; end it by hand", err))
		}
	}
}

func (a *Agent) endLeftover(ctx context.Context, call string, r task.ToolProcess) error {
	p := shell.Process{
		PGID:    r.PGID,
		Started: r.Started,
		Boot:    r.Boot,
		Mark:    r.Mark,
	}
	if shell.Find(p) {
		a.checkpoints.Outlived(call)
		a.notice(fmt.Sprintf("a command of this task still runs from before (process group %d): ending it", p.PGID))
		if err := shell.End(ctx, p); err != nil {
			return err
		}
	}
	found, err := shell.EndMarked(ctx, r.Mark)
	for _, m := range found {
		a.checkpoints.Outlived(call)
		a.notice(fmt.Sprintf("a process of this task still ran from before (%d, %s): it was ended", m.PID, m.Name))
	}
	return err
}
