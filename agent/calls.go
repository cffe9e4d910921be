package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// runCalls closes every open call of the last reply and commits the user turn
// that carries the results. A call that needs a person who cannot be asked stops
// the run as waiting; the calls before it keep their outcomes.
func (a *Agent) runCalls(ctx context.Context, in *Input) (*Outcome, error) {
	b := &batch{agent: a, in: in, wrong: a.malformed}
	a.malformed = false
	var results []string
	for _, c := range a.state().OpenCalls() {
		if c.Finished == nil {
			out, err := b.close(ctx, c)
			if err != nil || out != nil {
				return out, err
			}
		}
		results = append(results, c.ID)
	}
	if b.wrong {
		a.mistakes++
	} else {
		a.mistakes = 0
	}
	blocks := b.extra
	if in.Given() {
		if in.Text != "" || len(in.Images) > 0 {
			blocks = append(blocks, userWords(in.Text))
			blocks = append(blocks, imagePieces(in.Images)...)
		}
		*in = Input{}
	}
	return nil, a.commitUserTurn(ctx, results, blocks)
}

// batch is the calls of one reply while they are being closed.
type batch struct {
	agent    *Agent
	in       *Input
	rejected bool
	wrong    bool
	rowTS    int64        // of the row that shows the call at hand
	extra    []task.Piece // images and words beside the results
}

// close brings one call to an outcome.
func (b *batch) close(ctx context.Context, c *task.Call) (*Outcome, error) {
	a := b.agent
	t := a.tools[c.Name]
	if b.rejected {
		text := fmt.Sprintf("Skipping tool [%s]: the user rejected a tool before it in the same turn.", c.Name)
		return nil, b.finish(ctx, c, verdict{outcome: "denied", text: text, isError: true})
	}
	if c.Outcome() == task.OutcomeUnknown {
		again, err := b.settle(ctx, c, t)
		if err != nil || !again {
			return nil, err
		}
	}
	if t == nil {
		b.wrong = true
		text := failure(fmt.Sprintf("there is no tool named %q", c.Name))
		return nil, b.finish(ctx, c, verdict{outcome: "error", text: text, isError: true})
	}
	plan, err := t.Plan(ctx, b.env(), c.Input)
	var wrong *tool.InputError
	switch {
	case errors.As(err, &wrong):
		b.wrong = true
		return nil, b.finish(ctx, c, verdict{outcome: "error", text: failure(wrong.Reason), isError: true})
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, b.finish(ctx, c, verdict{outcome: "error", text: failure(err.Error()), isError: true})
	}
	if t.Spec().Class == tool.Control {
		return b.control(ctx, c, plan)
	}
	return b.effect(ctx, c, t.Spec(), plan)
}

// effect runs a call that reads, writes or commands: decide, show, ask if need
// be, save the intent, run, commit the outcome.
func (b *batch) effect(ctx context.Context, c *task.Call, spec tool.Spec, plan tool.Plan) (*Outcome, error) {
	a, ask := b.agent, plan.Ask()
	decision := approval.Decide(a.Policy, spec.Class, ask)
	granted := &task.Approval{State: "allowed", By: "policy", Rule: decision.Rule}
	var row uint64
	row, b.rowTS = b.openRow(c)
	switch decision.State {
	case approval.Deny:
		granted.State = "denied"
		if err := b.show(ctx, &row, &b.rowTS, ask, false); err != nil {
			return nil, err
		}
		return nil, b.finish(ctx, c, verdict{
			outcome: "denied", text: denial(decision.Reason), isError: true, approval: granted,
		})
	case approval.Ask:
		if err := b.show(ctx, &row, &b.rowTS, ask, false); err != nil {
			return nil, err
		}
		answer, out, err := b.ask(ctx, task.QuestionOpened{
			Question: questionID(row), Kind: "approval", Message: row, Call: c.ID, Text: ask.Title, Diff: ask.Diff,
		})
		if err != nil || out != nil {
			return out, err
		}
		granted = &task.Approval{State: "allowed", By: "user", Feedback: answer.Text}
		if yes := answer.Approve; yes == nil || !*yes {
			granted.State, b.rejected = "denied", true
			return nil, b.finish(ctx, c, verdict{
				outcome: "denied", text: denial(answer.Text), isError: true, approval: granted,
			})
		}
		if answer.Always {
			if err := a.remember(ctx, spec, ask); err != nil {
				return nil, err
			}
		}
	}
	if err := b.show(ctx, &row, &b.rowTS, ask, true); err != nil {
		return nil, err
	}
	err := a.commit(ctx, task.ToolStarted{
		Call: c.ID, Name: spec.Name, Replay: string(spec.Replay), Message: row, Approval: granted,
		Before: ask.Before,
	})
	if err != nil {
		return nil, err
	}
	if err := a.save(ctx); err != nil {
		return nil, err
	}
	failpoint.Hit("tool.started")
	out := &output{agent: a, ctx: ctx, call: c.ID, command: spec.Class == tool.Command}
	result, err := plan.Run(ctx, out)
	failpoint.Hit("tool.ran")
	return nil, b.conclude(ctx, c, result, err, out, granted)
}

// conclude commits what a tool's body did.
func (b *batch) conclude(ctx context.Context, c *task.Call, r tool.Result, err error, out *output, granted *task.Approval) error {
	a := b.agent
	v := verdict{outcome: "ok", text: a.mask(r.Text), images: r.Images, isError: r.IsError, approval: granted, exit: r.Exit}
	var wrong *tool.InputError
	switch {
	case errors.As(err, &wrong):
		b.wrong = true
		v.outcome, v.text, v.isError = "error", failure(wrong.Reason), true
	case ctx.Err() != nil:
		v.outcome, v.isError = "cancelled", true
		v.text = "The user cancelled this tool while it ran. It may have done part of its work.\n" + v.text
	case err != nil:
		v.outcome, v.text, v.isError = "error", failure(err.Error()), true
	case r.IsError:
		v.outcome = "error"
	}
	if granted.Feedback != "" {
		v.text = approved(granted.Feedback) + v.text
	}
	if out.err != nil {
		return out.err
	}
	v.before = out.finish()
	if out.err != nil {
		return out.err
	}
	if r.Full != nil {
		hash, size, err := a.Task.PutBlobFile(context.WithoutCancel(ctx), r.Full.Path)
		if err != nil {
			return fmt.Errorf("keep the output of %s: %w", c.Name, err)
		}
		v.output, v.size, v.artifact = hash, size, artifactName(b.rowTS)
	}
	for _, f := range r.Files {
		v.after = append(v.after, task.FileChanged{
			Path: f.Path, Source: f.Source, Hash: f.Hash, Size: f.Size,
			MTime: f.MTime, CTime: f.CTime, Inode: f.Inode, Device: f.Device,
		})
	}
	if err := b.finish(ctx, c, v); err != nil {
		return err
	}
	failpoint.Hit("tool.finished")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// verdict is a call's outcome on its way into the log.
type verdict struct {
	outcome  string
	text     string
	images   []json.RawMessage
	isError  bool
	approval *task.Approval
	exit     *int
	output   string
	size     int64
	artifact string
	before   []task.Event // rows that belong before the outcome
	after    []task.Event
}

func (b *batch) finish(ctx context.Context, c *task.Call, v verdict) error {
	if v.text == "" {
		v.text = "(tool did not return anything)"
	}
	events := append(slices.Clone(v.before), task.ToolFinished{
		Call: c.ID, Name: c.Name, Outcome: v.outcome, Exit: v.exit, Approval: v.approval,
		Output: v.output, Size: v.size, Artifact: v.artifact,
		Result: resultBlock(c.ID, v.text, v.images, v.isError),
	})
	for _, q := range b.agent.state().Questions {
		if q.Call == c.ID { // left open by a run that ended while it asked
			events = append(events, task.QuestionClosed{Question: q.Question, By: "roost", Reason: "superseded"})
		}
	}
	return b.agent.commit(ctx, append(events, v.after...)...)
}

// openRow finds the row that an earlier run already showed for this call.
func (b *batch) openRow(c *task.Call) (row uint64, ts int64) {
	id := c.UI
	for _, q := range b.agent.state().Questions {
		if q.Call == c.ID {
			id = q.Message
		}
	}
	for _, q := range b.agent.state().Answered {
		if q.Call == c.ID {
			id = q.Message
		}
	}
	if m := b.agent.state().Message(id); m != nil && m.Hidden == "" {
		return id, m.TS()
	}
	return 0, 0
}

// show writes the call's row for the person, or marks it as answered.
func (b *batch) show(ctx context.Context, row *uint64, ts *int64, ask tool.Ask, answered bool) error {
	a := b.agent
	if *row == 0 {
		*ts = a.stamp()
		add := a.add(task.UI, 0, askRow(*ts, ask.Kind, ask.Text, ask.Protected, answered && ask.Kind == "tool"))
		*row = add.Message
		return a.commit(ctx, add)
	}
	if !answered || ask.Kind != "tool" {
		return nil
	}
	return a.commit(ctx, task.MessageChanged{
		Message: *row, Body: task.Body{Raw: askRow(*ts, ask.Kind, ask.Text, ask.Protected, true)},
	})
}

// remember keeps "always" for the rest of the task.
func (a *Agent) remember(ctx context.Context, spec tool.Spec, ask tool.Ask) error {
	if spec.Class == tool.Command {
		if p := approval.Pattern(ask.Command); p != "" {
			a.Settings.Allow = append(slices.Clone(a.Settings.Allow), p)
		}
	} else {
		a.Settings.Tools = append(slices.Clone(a.Settings.Tools), spec.Name)
	}
	a.Policy.Allow, a.Policy.AllowTools = a.Settings.Allow, a.Settings.Tools
	settings := a.Settings
	return a.commit(ctx, task.Changed{Settings: &settings})
}

func (a *Agent) mask(text string) string {
	if a.Masks == nil {
		return text
	}
	return a.Masks(text)
}
