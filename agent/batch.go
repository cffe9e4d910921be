package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// batch is the calls of one reply while the agent closes them. It learns of earlier calls from their outcomes, so it knows
// the same after a restart in the middle.
type batch struct {
	agent         *Agent
	results       []string // the closed calls
	last          bool     // no call comes after the current one
	turnCommitted bool     // the user turn with the results is committed
	delegated     bool     // this reply asked for a subtask: the calls after that are not run
	rejected      bool     // the person refused a call of this reply
	failed        bool     // a call of this reply failed
	refused       int      // calls that the policy refused
	wrong         bool     // the model called wrongly
	rowTS         int64    // of the row that shows the current call
}

// callOutcome is a call's outcome on its way into the journal.
type callOutcome struct {
	state    string
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
	changes  checkpoints.Attribution // of files, by a command
}

// getConsent shows a call and finds out whether it may run: by the policy's decision, or by asking the person. The
// returned draft holds what belongs to the commit that begins the call. A refused call is closed; an outcome means that
// no person can be asked now.
func (b *batch) getConsent(
	ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, decision approval.Decision,
) (granted *task.Approval, d *draft, row uint64, out *Outcome, err error) {
	a := b.agent
	granted = &task.Approval{State: "allowed", By: "policy", Kind: decision.By, Rule: decision.Rule}
	if decision.By == "policy" {
		granted.Kind = "mode" // its name in the journal
	}
	refused := b.openRefusal(c.ID)
	d = a.draft()
	row = b.callRow(d, c, ask, decision.State == approval.Allow && refused == nil)
	switch {
	case decision.State == approval.Deny:
		granted.State = "denied"
		err = b.finishCall(ctx, c, callOutcome{
			state: "denied", text: rows.Denial(decision.Reason), isError: true, approval: granted,
			before: d.events,
		})
	case refused != nil, decision.State == approval.Ask:
		var answer Answer
		q := api.QuestionOpened{
			Question: questionID(row), Kind: KindApproval, Message: row, Call: c.ID, Text: ask.Title,
			Diff: ask.Diff, Command: ask.Command, Dir: ask.Dir,
		}
		lasting := func() []task.Event { return nil }
		if decision.By != "hook" { // no rule answers a hook
			q.Always, lasting = a.lastingRuleText(spec, ask), func() []task.Event { return a.addLastingRule(spec, ask) }
		}
		answer, out, err = b.askPerson(ctx, d, q, lasting)
		if err != nil || out != nil {
			return granted, nil, row, out, err
		}
		granted.By, granted.Via, granted.Feedback = "user", answer.By, answer.Text
		if !isYes(answer.Approve) {
			granted.State = "denied"
			err = b.finishCall(ctx, c, callOutcome{
				state: "denied", text: rows.Denial(answer.Text), isError: true, approval: granted,
			})
			return granted, nil, row, nil, err
		}
		d = a.draft()
		if ask.Kind == "tool" { // its row is marked as answered, as Roo does
			d.changeMessage(row, rows.Ask(b.rowTS, ask.Kind, ask.Text, ask.Protected, true))
		}
	}
	return granted, d, row, nil, err
}

// callRow is the call's row for the person: the row that an earlier run showed, updated to what the call is now, or a
// new one in the draft.
func (b *batch) callRow(d *draft, c *task.Call, ask tool.Ask, answered bool) uint64 {
	answered = answered && ask.Kind == "tool"
	if m := b.shownRow(c); m != nil {
		b.rowTS = m.TS()
		if answered || m.Text() != ask.Text {
			d.changeMessage(m.ID, rows.Ask(b.rowTS, ask.Kind, ask.Text, ask.Protected, answered))
		}
		return m.ID
	}
	b.rowTS = b.agent.stamp()
	return d.addRow(rows.Ask(b.rowTS, ask.Kind, ask.Text, ask.Protected, answered))
}

// shownRow finds the row with which an earlier run showed this call to the user.
func (b *batch) shownRow(c *task.Call) *task.Message {
	s := b.agent.state()
	id := c.UI
	for _, q := range s.Questions {
		if q.Call == c.ID {
			id = q.Message
		}
	}
	for _, q := range s.Answered {
		if q.Call == c.ID {
			id = q.Message
		}
	}
	if m := s.Message(id); m != nil && m.Hidden == "" && m.History == task.UI {
		return m
	}
	return nil
}

// lastingRuleText describes what "always" allows for the rest of the task.
func (a *Agent) lastingRuleText(spec tool.Spec, ask tool.Ask) string {
	rule := a.lastingRule(spec, ask)
	switch {
	case rule == "":
		return ""
	case spec.Class == tool.Command:
		return "`" + rule + "` commands in this task"
	case spec.Class == tool.Read, spec.Class == tool.Write:
		return "all calls of " + rule + " inside the workspace in this task"
	case spec.Class == tool.Web:
		return "all calls of " + spec.Name + " to " + ask.Paths[0] + " in this task"
	}
	return "all calls of " + rule + " in this task"
}

// addLastingRule keeps "always" for the rest of the task.
func (a *Agent) addLastingRule(spec tool.Spec, ask tool.Ask) []task.Event {
	rule := a.lastingRule(spec, ask)
	switch {
	case rule == "":
		a.notice("no lasting permission fits a call like this one: it runs now, and you will be asked about the next one")
		return nil
	case spec.Class == tool.Command:
		a.Task.Settings.Allow = append(slices.Clone(a.Task.Settings.Allow), rule)
	default:
		a.Task.Settings.Tools = append(slices.Clone(a.Task.Settings.Tools), rule)
	}
	a.Task.Policy.Allow, a.Task.Policy.AllowTools = a.Task.Settings.Allow, a.Task.Settings.Tools
	return []task.Event{task.Changed{Settings: new(a.Task.Settings)}}
}

// lastingRule returns what "always" adds to the settings for a call: a pattern for commands, a rule for tools. ""
// when the person would be asked about the call all the same.
func (a *Agent) lastingRule(spec tool.Spec, ask tool.Ask) string {
	p, rule := a.Task.Policy, lastingToolRule(spec, ask)
	if spec.Class == tool.Command {
		if rule = approval.Pattern(ask.Command); rule == "" {
			return ""
		}
		p.Allow = append(slices.Clone(p.Allow), rule)
	} else {
		p.AllowTools = append(slices.Clone(p.AllowTools), rule)
	}
	if approval.Decide(p, spec.Class, ask).State != approval.Allow {
		return ""
	}
	if _, moves, _ := a.otherMode(ask.Mode); moves && spec.Class != tool.Control && a.maySwitch(ask).State != approval.Allow {
		return "" // each change of the mode needs its own answer
	}
	return rule
}

// lastingToolRule returns the rule that "always" adds for a tool: its name. A server's tool goes by the name under
// which it is offered, even when the call used the name that all tools of servers share. Of a tool that fetches, the
// rule allows the calls to one site.
func lastingToolRule(spec tool.Spec, ask tool.Ask) string {
	switch {
	case spec.Class == tool.Web && len(ask.Paths) > 0:
		return spec.Name + "(" + ask.Paths[0] + ")"
	case spec.Class != tool.MCP:
		return spec.Name
	}
	name, _, _ := strings.Cut(ask.Title, " ")
	return name
}

// fail closes a call with an error for the model.
func (b *batch) fail(ctx context.Context, c *task.Call, reason string) error {
	return b.finishCall(ctx, c, callOutcome{state: "error", text: b.agent.mask(rows.Failure(reason)), isError: true})
}

// failWrong is fail for a call that the model made wrongly.
func (b *batch) failWrong(ctx context.Context, c *task.Call, reason string) error {
	b.wrong = true
	return b.fail(ctx, c, reason)
}

func (b *batch) finishCall(ctx context.Context, c *task.Call, v callOutcome) error {
	v.text = cmp.Or(v.text, "(tool did not return anything)")
	a := b.agent
	d := a.draft(slices.Clone(v.before)...)
	d.Put(task.ToolFinished{
		Call: c.ID, Name: c.Name, Outcome: v.state, Exit: v.exit, Approval: v.approval,
		Output: v.output, Size: v.size, Artifact: v.artifact,
		Result: rows.Result(c.ID, v.text, v.images, v.isError),
	})
	for _, q := range a.state().Questions {
		if q.Call == c.ID { // a run that ended while it asked left the question open
			d.Put(superseded(q.Question))
		}
	}
	d.Put(v.after...)
	for _, f := range v.changes.Doubt {
		a.stale.Doubt(f.Path)
	}
	a.checkpoints.Record(ctx, d, c.ID, v.changes)
	if queued := a.queuedInputs(); b.last && ctx.Err() == nil && (a.Host.Mentions == nil || len(queued) == 0) {
		// The turn with the results follows the last outcome at once, unless the person's words come in between:
		// resolving their mentions takes time, and an outcome does not wait for that.
		d.addUserTurn(append(b.results, c.ID), d.takeInputs(ctx, queued))
		b.turnCommitted = true
	}
	return d.commit(ctx)
}
