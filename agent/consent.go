package agent

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// getConsent shows a call and finds out whether it may run: by the policy's decision, or by asking the person. The
// returned draft holds what belongs to the commit that begins the call. A refused call is closed; an outcome means that
// no person can be asked now.
func (b *batch) getConsent(
	ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, decision approval.Decision,
) (granted *task.Approval, d *draft, row uint64, out *Outcome, err error) {
	a := b.agent
	granted = &task.Approval{
		State: "allowed",
		By:    "policy",
		Kind:  ruleKind(decision),
		Rule:  decision.Rule,
	}
	refused := b.openRefusal(c)
	d = a.draft()
	row = b.callRow(d, c, ask, decision.State == approval.Allow && refused == nil)
	switch {
	case decision.State == approval.Deny:
		granted.State = "denied"
		err = b.finishCall(ctx, c, callOutcome{
			state:    "denied",
			text:     rows.Denial(decision.Reason),
			isError:  true,
			approval: granted,
			before:   d.events,
		})
	case refused != nil, decision.State == approval.Ask:
		var answer Answer
		answer, out, err = b.askPerson(ctx, d, api.QuestionOpened{
			Question: questionID(row),
			Kind:     "approval",
			Message:  row,
			Call:     c.ID,
			Text:     ask.Title,
			Diff:     ask.Diff,
			Command:  ask.Command,
			Dir:      ask.Dir,
			Always:   a.lastingRuleText(spec, ask),
		}, func() []task.Event { return a.addLastingRule(spec, ask) })
		if err != nil || out != nil {
			return granted, nil, row, out, err
		}
		granted.By, granted.Via, granted.Feedback = "user", answer.By, answer.Text
		if yes := answer.Approve; yes == nil || !*yes {
			granted.State = "denied"
			err = b.finishCall(ctx, c, callOutcome{
				state:    "denied",
				text:     rows.Denial(answer.Text),
				isError:  true,
				approval: granted,
			})
			return granted, nil, row, nil, err
		}
		d = a.draft()
		b.markAnswered(d, row, ask)
	}
	return granted, d, row, nil, err
}

// ruleKind is the kind of a decision's rule, as the journal names it.
func ruleKind(d approval.Decision) string {
	if d.By == "policy" {
		return "mode"
	}
	return d.By
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

// markAnswered marks the row of a tool as answered, as Roo does.
func (b *batch) markAnswered(d *draft, row uint64, ask tool.Ask) {
	if ask.Kind == "tool" {
		d.changeMessage(row, rows.Ask(b.rowTS, ask.Kind, ask.Text, ask.Protected, true))
	}
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

// openRefusal is an unused "no" to this call. It holds for every policy and for every effect that the call may have by
// now: consent is for one change, a refusal is not.
func (b *batch) openRefusal(c *task.Call) *task.Answered {
	for i := range b.agent.state().Answered {
		a := &b.agent.state().Answered[i]
		if a.Call == c.ID && a.Kind == "approval" && (a.Answer.Approve == nil || !*a.Answer.Approve) {
			return a
		}
	}
	return nil
}

// lastingRule is what "always" adds to the settings for a call: a pattern for commands, a rule for tools. "" when the
// person would be asked about the call all the same.
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

// lastingRuleText describes what "always" allows for the rest of the task.
func (a *Agent) lastingRuleText(spec tool.Spec, ask tool.Ask) string {
	rule := a.lastingRule(spec, ask)
	switch {
	case rule == "":
		return ""
	case spec.Class == tool.Command:
		return "commands that begin with: " + rule
	case spec.Class == tool.Read, spec.Class == tool.Write:
		return "all calls of " + rule + " inside the workspace"
	}
	return "all calls of " + rule
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
	settings := a.Task.Settings
	return []task.Event{task.Changed{Settings: &settings}}
}
