package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/controltool"
)

// A task goes on in another mode for four reasons: the model asked for it, the person
// chose an answer that leads there, or a slash command that the person or the model
// gave names it. What made it go and that it went are one commit.

// enter puts the task into a mode. The events belong into the commit of what led there.
func (a *Agent) enter(m mode.Mode) []task.Event {
	a.Task.Settings.Mode = m.Slug
	a.serve()
	settings := a.Task.Settings
	return []task.Event{task.Changed{Settings: &settings}}
}

// elsewhere is the mode that something leads to, when there are modes and it is not
// the one that the task is in. The error says that there is no such mode.
func (a *Agent) elsewhere(slug string) (m mode.Mode, moves bool, err error) {
	if slug == "" || a.User.Modes == nil {
		return m, false, nil
	}
	if m, err = a.User.Modes.Lookup(slug); err != nil {
		return m, false, err
	}
	now, _ := a.inMode()
	return m, m.Slug != now.Slug, nil
}

// maySwitch decides whether the model may change the mode by a call. A mode is a right,
// so a person is asked unless everything is allowed.
func (a *Agent) maySwitch(ask tool.Ask) approval.Decision {
	ask.Tool = controltool.SwitchModeName
	d := approval.Decide(a.Task.Policy, tool.Control, ask)
	if d.State == approval.Allow && a.Task.Policy.Mode != approval.ModeAll && !slices.Contains(a.Task.Policy.AllowTools, ask.Tool) {
		d.State = approval.Ask
	}
	return d
}

// leading is the decision on a call that has an effect, and what a person is asked about
// it, when the call also leads into another mode: the stricter one of both.
func (a *Agent) leading(decision approval.Decision, ask tool.Ask) (approval.Decision, tool.Ask) {
	m, moves, err := a.elsewhere(ask.Mode)
	if err != nil || !moves {
		return decision, ask
	}
	also := a.maySwitch(ask)
	ask.Title += fmt.Sprintf(" (and go on in %s mode)", m.Name)
	if decision.State == approval.Deny || also.State == approval.Allow || decision.State == approval.Ask && also.State == approval.Ask {
		return decision, ask
	}
	return also, ask
}

// chosen goes on in the mode of the suggested answer that the person gave. Nobody is
// asked: the mode stood beside the answer.
func (d *draft) chosen(choices []tool.Choice, answer string) {
	i := slices.IndexFunc(choices, func(c tool.Choice) bool {
		return strings.TrimSpace(c.Answer) == strings.TrimSpace(answer)
	})
	if i >= 0 {
		d.goTo(choices[i].Mode, "the answer")
	}
}

// goTo goes on in the mode that something of the person's leads to, and tells them.
func (d *draft) goTo(slug, what string) {
	m, moves, err := d.agent.elsewhere(slug)
	switch {
	case err != nil:
		d.agent.notice(fmt.Sprintf("%s asks for a mode that does not exist: %v", what, err))
	case moves:
		d.Put(d.agent.enter(m)...)
		d.agent.notice(fmt.Sprintf("%s goes on in %s mode", what, m.Name))
	}
}

// leadsTo is the slug of a mode that a choice leads to, "" when it leads nowhere else.
func (a *Agent) leadsTo(slug string) string {
	if m, moves, err := a.elsewhere(slug); err == nil && moves {
		return m.Slug
	}
	return ""
}

// lead goes on in the mode that a call which succeeded leads to, as was agreed.
func (b *batch) lead(slug string, v *verdict) {
	if v.outcome != "ok" {
		return
	}
	m, moves, err := b.agent.elsewhere(slug)
	switch {
	case err != nil:
		v.text += fmt.Sprintf("\n\n[The mode stays as it is: %v.]", err)
	case moves:
		v.after = append(v.after, b.agent.enter(m)...)
	}
}
