package agent

import (
	"slices"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// row is the call's row for the person: the one that an earlier run showed, with
// what the call is now, or a new one in the draft.
func (b *batch) row(d *draft, c *task.Call, ask tool.Ask, answered bool) uint64 {
	answered = answered && ask.Kind == "tool"
	if m := b.shown(c); m != nil {
		b.rowTS = m.TS()
		if answered || m.Text() != ask.Text {
			d.change(m.ID, askRow(b.rowTS, ask.Kind, ask.Text, ask.Protected, answered))
		}
		return m.ID
	}
	b.rowTS = b.agent.stamp()
	return d.row(askRow(b.rowTS, ask.Kind, ask.Text, ask.Protected, answered))
}

// answered marks the row of a tool as answered, as Roo does.
func (b *batch) answered(d *draft, row uint64, ask tool.Ask) {
	if ask.Kind == "tool" {
		d.change(row, askRow(b.rowTS, ask.Kind, ask.Text, ask.Protected, true))
	}
}

// shown finds the row that an earlier run showed for this call.
func (b *batch) shown(c *task.Call) *task.Message {
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

// refusal is an unused "no" to this call. It counts whatever the policy says now
// and whatever the call would do now: consent is for one change, a no is not.
func (b *batch) refusal(c *task.Call) *task.Answered {
	for i := range b.agent.state().Answered {
		a := &b.agent.state().Answered[i]
		if a.Call == c.ID && a.Kind == "approval" && (a.Answer.Approve == nil || !*a.Answer.Approve) {
			return a
		}
	}
	return nil
}

// remember keeps "always" for the rest of the task.
func (a *Agent) remember(spec tool.Spec, ask tool.Ask) []task.Event {
	if spec.Class == tool.Command {
		p := approval.Pattern(ask.Command)
		if p == "" {
			a.notice("no pattern stands for a line like this one: it runs now, and is asked about again next time")
			return nil
		}
		a.Settings.Allow = append(slices.Clone(a.Settings.Allow), p)
	} else {
		a.Settings.Tools = append(slices.Clone(a.Settings.Tools), spec.Name)
	}
	a.Policy.Allow, a.Policy.AllowTools = a.Settings.Allow, a.Settings.Tools
	settings := a.Settings
	return []task.Event{task.Changed{Settings: &settings}}
}
