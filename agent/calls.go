package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/shell"
)

// runCalls closes every open call of the last reply and commits the user turn
// that carries the results. A call that needs a person who cannot be asked stops
// the run as waiting; the calls before it keep their outcomes.
func (a *Agent) runCalls(ctx context.Context) (*Outcome, error) {
	b := &batch{agent: a, wrong: a.loop.malformed}
	a.loop.malformed = false
	open := a.state().OpenCalls()
	for i, c := range open {
		b.last = i == len(open)-1
		if c.Finished == nil {
			out, err := b.closeCall(ctx, c)
			if err != nil || out != nil {
				return out, err
			}
		}
		b.noteOutcome(c.Finished)
		b.delegated = b.delegated || c.Name == task.SubtaskTool
		b.results = append(b.results, c.ID)
	}
	a.loop.mistakes++
	if !b.wrong {
		a.loop.mistakes = 0
	}
	a.loop.refusals++
	if b.refused < len(b.results) {
		a.loop.refusals = 0
	}
	a.loop.yes = false
	if b.turnCommitted {
		return nil, nil
	}
	d := a.draft()
	d.addUserTurn(b.results, d.takeInputs(ctx, a.queuedInputs()))
	return nil, d.commit(ctx)
}

// closeCall brings one call to an outcome.
func (b *batch) closeCall(ctx context.Context, c *task.Call) (*Outcome, error) {
	a := b.agent
	t := a.findTool(c.Name)
	if b.rejected {
		text := fmt.Sprintf("Skipping tool [%s]: the user rejected a tool before it in the same turn.", c.Name)
		return nil, b.finishCall(ctx, c, callOutcome{state: "denied", text: text, isError: true})
	}
	if b.delegated {
		return nil, b.refuseAfterSubtask(ctx, c)
	}
	if c.Outcome() == task.OutcomeUnknown {
		again, err := b.settleUnknown(ctx, c, t)
		if err != nil || !again {
			return nil, err
		}
	}
	if t == nil {
		b.wrong = true
		text := rows.Failure(a.unknownToolText(c.Name))
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: text, isError: true})
	}
	if err := a.forbidsCall(t.Spec(), c); err != nil {
		b.wrong = true
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: rows.Failure(err.Error()), isError: true})
	}
	mark := ""
	if t.Spec().Class == tool.Command {
		mark = shell.NewMark()
	}
	plan, err := a.planCall(ctx, t, b.toolEnv(mark), c.Input())
	var wrong *tool.InputError
	var outdated *tool.StaleError
	switch {
	case errors.As(err, &wrong):
		b.wrong = true
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: a.mask(rows.Failure(wrong.Reason)), isError: true})
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &outdated):
		return nil, b.refuseStale(ctx, c, outdated)
	case err != nil:
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: a.mask(rows.Failure(err.Error())), isError: true})
	}
	if t.Spec().Class == tool.Control {
		return b.runControl(ctx, c, t.Spec(), plan)
	}
	if err := a.mayEdit(t.Spec(), plan.Ask().Paths); err != nil {
		b.wrong = true
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: rows.Failure(err.Error()), isError: true})
	}
	return b.runEffect(ctx, c, t.Spec(), plan, mark)
}

// refuseStale closes a call that would have overwritten what something else changed.
func (b *batch) refuseStale(ctx context.Context, c *task.Call, outdated *tool.StaleError) error {
	b.agent.notice(fmt.Sprintf("%s: %s changed since the model saw it and was not overwritten; the model gets to know it now",
		c.Name, tool.SafeName(outdated.Now.Path)))
	return b.finishCall(ctx, c, callOutcome{
		state:   "error",
		text:    b.agent.mask("Error: " + outdated.Error()),
		isError: true,
		after:   b.agent.stale.Refused(ctx, outdated),
	})
}

// runEffect runs a call that reads, writes or commands: decide, show, ask if need be, save the intent, run, commit the
// outcome.
func (b *batch) runEffect(ctx context.Context, c *task.Call, spec tool.Spec, plan tool.Plan, mark string) (*Outcome, error) {
	a, ask := b.agent, b.agent.maskAsk(plan.Ask())
	decision, ask := a.withModeSwitch(approval.Decide(a.Task.Policy, spec.Class, ask), ask)
	if decision.State != approval.Deny { // refused calls have a limit of their own
		if done, err := b.stopRepetition(ctx, c, spec); done || err != nil {
			return nil, err
		}
	}
	if decision.State == approval.Ask {
		a.checkpoints.Warn(ctx, c.ID, spec, &ask)
	}
	granted, d, row, out, err := b.getConsent(ctx, c, spec, ask, decision)
	if out != nil || err != nil || granted.State == "denied" {
		return out, err
	}
	guard, refused := a.checkpoints.Before(ctx, d, c, spec, ask)
	defer guard.Close()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case refused != "":
		return nil, b.finishCall(ctx, c, callOutcome{
			state:    "error",
			text:     a.mask(rows.Failure(refused)),
			isError:  true,
			approval: granted,
			before:   d.events,
		})
	}
	d.Put(task.ToolStarted{
		Call:     c.ID,
		Name:     spec.Name,
		Replay:   string(spec.Replay),
		Message:  row,
		Approval: granted,
		Before:   ask.Before,
	})
	d.addServerRow(spec)
	if mark != "" {
		// The mark is in the journal before any process carries it: a kill before the process itself is recorded leaves
		// something to find it by.
		d.Put(task.ToolProcess{Call: c.ID, Mark: mark})
	}
	if err := d.commit(ctx); err != nil {
		return nil, err
	}
	if err := a.saveJournal(ctx); err != nil {
		return nil, err
	}
	failpoint.Hit("tool.started")
	if checkpoints.ChangesUnnamed(spec.Class) {
		a.stale.BeforeCommand(ctx)
	}
	shown := &output{
		agent:   a,
		ctx:     ctx,
		call:    c.ID,
		command: spec.Class == tool.Command,
		server:  spec.Class == tool.MCP,
	}
	result, err := a.runPlan(ctx, spec, plan, shown)
	failpoint.Hit("tool.ran")
	return nil, b.commitResult(ctx, c, result, err, shown, granted, guard)
}

// commitResult commits what a call did.
func (b *batch) commitResult(
	ctx context.Context, c *task.Call, r tool.Result, err error, out *output, granted *task.Approval, guard checkpoints.Guard,
) error {
	a := b.agent
	v := callOutcome{
		state:    "ok",
		text:     a.mask(r.Text),
		images:   r.Images,
		isError:  r.IsError,
		approval: granted,
		exit:     r.Exit,
	}
	var wrong *tool.InputError
	switch {
	case errors.As(err, &wrong):
		b.wrong = true
		v.state, v.text, v.isError = "error", a.mask(rows.Failure(wrong.Reason)), true
	case err != nil && ctx.Err() != nil:
		v.state, v.isError = "cancelled", true
		v.text = "The user cancelled this tool while it ran. It may have done part of its work.\n" + v.text
	case err != nil:
		v.state, v.text, v.isError = "error", a.mask(rows.Failure(err.Error())), true
	case r.IsError:
		v.state = "error"
	}
	if granted.Feedback != "" {
		v.text = rows.Approved(granted.Feedback) + v.text
	}
	if out.err != nil {
		return out.err
	}
	v.before = out.finish()
	if out.err != nil {
		return out.err
	}
	if r.Full != nil {
		b.keepOutput(ctx, c, r.Full, &v)
	}
	if out.server {
		v.addServerRow(a)
	}
	for _, f := range r.Files {
		v.after = append(v.after, stale.Record(f))
	}
	b.enterCallMode(r.Mode, &v)
	v.changes = a.checkpoints.After(ctx, c, guard)
	if err := b.finishCall(ctx, c, v); err != nil {
		return err
	}
	a.checkpoints.Concluded(guard)
	failpoint.Hit("tool.finished")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// keepOutput puts a command's whole output into a blob. The command ran, so its outcome is not given up for its output:
// when the output cannot be kept for another reason than a disk that refuses for now, the result informs the model.
func (b *batch) keepOutput(ctx context.Context, c *task.Call, full *tool.Spool, v *callOutcome) {
	a := b.agent
	path, err := a.maskFile(full.Path)
	if err == nil {
		err = a.retryUntilSaved(ctx, func() (err error) {
			v.output, v.size, err = a.Task.Journal.PutBlobFile(context.WithoutCancel(ctx), path)
			return err
		})
	}
	if err == nil {
		v.artifact = artifactName(b.rowTS)
		return
	}
	v.output, v.size = "", 0
	switch {
	case ctx.Err() != nil:
		v.text += "\n[The whole output could not be kept: the disk refused, and the run was cancelled.]"
	default:
		a.notice(fmt.Sprintf("the whole output of %s could not be kept: %v", c.Name, err))
		v.text += "\n[The whole output could not be kept.]"
	}
}
