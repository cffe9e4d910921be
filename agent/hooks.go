package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/agent/hook"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// runHooks runs the hooks of an event and shows which of them failed.
func (a *Agent) runHooks(ctx context.Context, in hook.Input) (hook.Answer, error) {
	answer, err := a.Host.Hooks.Run(ctx, in, a.mask)
	for _, w := range answer.Warnings {
		a.notice(w)
	}
	return answer, err
}

// hookInput returns a call as a hook gets it. A tool of an MCP server has the name under which it is offered, even
// when the call used the name that all of them share.
func (a *Agent) hookInput(event string, c *task.Call, spec tool.Spec, ask tool.Ask) hook.Input {
	in := hook.Input{Event: event, Tool: spec.Name, Kind: string(spec.Class), Call: c.ID}
	if spec.Class == tool.MCP {
		in.Tool = lastingToolRule(spec, ask)
	}
	if masked := a.mask(string(c.Input())); json.Valid([]byte(masked)) {
		in.Input = json.RawMessage(masked)
	} else {
		in.Input, _ = json.Marshal(masked) // a mask that broke the JSON: still all that may be shown
	}
	return in
}

// askHooks returns the decision on a call after its hooks have answered: their decision where it is stricter. The
// reply with the call is on disk before a hook runs.
func (a *Agent) askHooks(
	ctx context.Context, c *task.Call, spec tool.Spec, ask *tool.Ask, decision approval.Decision,
) (approval.Decision, error) {
	in := a.hookInput(hook.BeforeTool, c, spec, *ask)
	if decision.State == approval.Deny || !a.Host.Hooks.Covers(in) {
		return decision, nil
	}
	if err := a.saveJournal(ctx); err != nil {
		return decision, err
	}
	answer, err := a.runHooks(ctx, in)
	if err != nil {
		return decision, err
	}
	by := approval.Decision{By: "hook", Rule: answer.Hook, Reason: fmt.Sprintf("the user's hook %s: %s", answer.Hook, answer.Reason)}
	switch answer.Decision {
	case hook.Deny:
		a.notice(tool.OneLine(fmt.Sprintf("the hook %s denied %s: %s", answer.Hook, in.Tool, answer.Reason)))
		by.State = approval.Deny
		return by, nil
	case hook.Ask:
		ask.Title += "\n" + tool.OneLine(by.Reason)
		by.State = approval.Ask
		return by, nil
	}
	return decision, nil
}

// hooksAfter gives a call that ran to the hooks. What they write for the model follows the result. The call has its
// result, so it succeeds also when its hooks are cancelled.
func (a *Agent) hooksAfter(ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, r *tool.Result) {
	in := a.hookInput(hook.AfterTool, c, spec, ask)
	if !a.Host.Hooks.Covers(in) {
		return
	}
	in.Result, in.IsError = new(a.mask(r.Text)), &r.IsError
	answer, err := a.runHooks(ctx, in)
	for _, words := range answer.Feedback {
		r.Text += "\n\n" + words
	}
	if err != nil && ctx.Err() == nil {
		a.notice(err.Error())
	}
}

// startHooks asks the hooks whether the run may begin. An outcome means that it may not.
func (a *Agent) startHooks(ctx context.Context) (*Outcome, error) {
	answer, err := a.runHooks(ctx, hook.Input{Event: hook.RunStart})
	if err != nil || answer.Decision != hook.Deny {
		return nil, err
	}
	return &Outcome{State: "denied", Code: "hook", Reason: fmt.Sprintf("the hook %s: %s", answer.Hook, answer.Reason)}, nil
}

// Ended runs the hooks of the run's end. The outcome is on disk by now; it stays as it is.
func (a *Agent) Ended(ctx context.Context, out Outcome) {
	if _, err := a.runHooks(ctx, hook.Input{Event: hook.RunEnd, Outcome: out.State, Reason: a.mask(out.Reason)}); err != nil {
		a.notice(err.Error())
	}
}
