package agent

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/controltool"
)

// inMode is the mode that the task is in; false when this agent knows no modes. A mode
// that does not exist has no tools but those of every mode.
func (a *Agent) currentMode() (mode.Mode, bool) {
	if a.User.Modes == nil {
		return mode.Mode{}, false
	}
	slug := cmp.Or(a.Task.Settings.Mode, mode.Default)
	m, ok := a.User.Modes.Find(slug)
	if !ok {
		m = mode.Mode{Slug: slug, Name: slug}
	}
	return m, true
}

// lacks says why the task's mode does not have a tool, nil when it does. A tool that
// Roo does not know belongs to the group that its permission class comes to.
func (a *Agent) modeLacks(spec tool.Spec) error {
	m, ok := a.currentMode()
	if !ok {
		return nil
	}
	group := "mcp"
	switch spec.Class {
	case tool.Read:
		group = "read"
	case tool.Write:
		group = "edit"
	case tool.Command:
		group = "command"
	case tool.Control:
		group = "always"
	}
	return m.Permits(spec.Name, group)
}

// forbids says why the task's mode does not let a call be made, as far as its input
// tells: nil when it does.
func (a *Agent) forbidsCall(spec tool.Spec, c *task.Call) error {
	if err := a.switchedOff(spec); err != nil {
		return err
	}
	if err := a.modeLacks(spec); err != nil {
		return err
	}
	return a.mayEdit(spec, mode.Names(spec.Name, func(key string) string {
		text, _ := esjson.GetString(c.Input(), key)
		return text
	}))
}

// mayEdit holds the paths that a writing call touches against the pattern of the
// task's mode, under their own name and under the one that links lead to: a link
// with a harmless name must not open a file that the mode closes.
func (a *Agent) mayEdit(spec tool.Spec, paths []string) error {
	m, ok := a.currentMode()
	if !ok || spec.Class != tool.Write {
		return nil
	}
	for _, path := range paths {
		names := []string{path}
		if a.Host.Workspace != nil {
			p, err := a.Host.Workspace.Resolve(path)
			if err != nil {
				return fmt.Errorf("the mode's pattern for files cannot be held against it: %w", err)
			}
			names = []string{p.Readable}
			if rel, err := filepath.Rel(a.Host.Workspace.Root(), p.Real); err == nil && !p.Outside {
				names = append(names, filepath.ToSlash(rel))
			} else {
				names = append(names, filepath.ToSlash(p.Real))
			}
		}
		for _, name := range names {
			if err := m.PermitsFile(spec.Name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// switchMode goes on in another mode. A mode is a right, so a person is asked unless
// everything is allowed; that the task is in it now and that the call is done is one
// commit.
func (b *batch) switchMode(ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, r tool.Result) (*Outcome, error) {
	a := b.agent
	now, ok := a.currentMode()
	if !ok {
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: rows.Failure("there are no modes here"), isError: true})
	}
	m, err := a.User.Modes.Lookup(r.Mode)
	if err != nil {
		b.wrong = true
		text := rows.Failure(fmt.Sprintf("Invalid mode: %s. There are %s", r.Mode, strings.Join(a.User.Modes.Slugs(), ", ")))
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: text, isError: true})
	}
	if m.Slug == now.Slug {
		return nil, b.finishCall(ctx, c, callOutcome{state: "ok", text: fmt.Sprintf("Already in %s mode.", m.Name)})
	}
	granted, d, _, out, err := b.getConsent(ctx, c, spec, ask, a.maySwitch(ask))
	if out != nil || err != nil || granted.State == "denied" {
		return out, err
	}
	d.Put(a.enterMode(m)...)
	text := fmt.Sprintf("Successfully switched from %s mode to %s mode", now.Name, m.Name)
	if r.Text != "" {
		text += " because: " + r.Text
	}
	text += "."
	if granted.Feedback != "" {
		text = rows.Approved(granted.Feedback) + text
	}
	return nil, b.finishCall(ctx, c, callOutcome{state: "ok", text: text, approval: granted, before: d.events})
}

// A task goes on in another mode for four reasons: the model asked for it, the person
// chose an answer that leads there, or a slash command that the person or the model
// gave names it. What made it go and that it went are one commit.

// enter puts the task into a mode. The events belong into the commit of what led there.
func (a *Agent) enterMode(m mode.Mode) []task.Event {
	a.Task.Settings.Mode = m.Slug
	a.useModeModel()
	settings := a.Task.Settings
	return []task.Event{task.Changed{Settings: &settings}}
}

// elsewhere is the mode that something leads to, when there are modes and it is not
// the one that the task is in. The error says that there is no such mode.
func (a *Agent) otherMode(slug string) (m mode.Mode, moves bool, err error) {
	if slug == "" || a.User.Modes == nil {
		return m, false, nil
	}
	if m, err = a.User.Modes.Lookup(slug); err != nil {
		return m, false, err
	}
	now, _ := a.currentMode()
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
func (a *Agent) withModeSwitch(decision approval.Decision, ask tool.Ask) (approval.Decision, tool.Ask) {
	m, moves, err := a.otherMode(ask.Mode)
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
func (d *draft) enterChosenMode(choices []tool.Choice, answer string) {
	i := slices.IndexFunc(choices, func(c tool.Choice) bool {
		return strings.TrimSpace(c.Answer) == strings.TrimSpace(answer)
	})
	if i >= 0 {
		d.enterUserMode(choices[i].Mode, "the answer")
	}
}

// goTo goes on in the mode that something of the person's leads to, and tells them.
func (d *draft) enterUserMode(slug, what string) {
	m, moves, err := d.agent.otherMode(slug)
	switch {
	case err != nil:
		d.agent.notice(fmt.Sprintf("%s asks for a mode that does not exist: %v", what, err))
	case moves:
		d.Put(d.agent.enterMode(m)...)
		d.agent.notice(fmt.Sprintf("%s goes on in %s mode", what, m.Name))
	}
}

// leadsTo is the slug of a mode that a choice leads to, "" when it leads nowhere else.
func (a *Agent) otherModeSlug(slug string) string {
	if m, moves, err := a.otherMode(slug); err == nil && moves {
		return m.Slug
	}
	return ""
}

// lead goes on in the mode that a call which succeeded leads to, as was agreed.
func (b *batch) enterCallMode(slug string, v *callOutcome) {
	if v.state != "ok" {
		return
	}
	m, moves, err := b.agent.otherMode(slug)
	switch {
	case err != nil:
		v.text += fmt.Sprintf("\n\n[The mode stays as it is: %v.]", err)
	case moves:
		v.after = append(v.after, b.agent.enterMode(m)...)
	}
}

// serve lets the mode's own model answer, where the person has set one up and the task
// was not told whom to ask. It is said, and the next request goes there; the histories
// stay as they are, and are sent as the new provider wants them.
func (a *Agent) useModeModel() {
	if a.User.Setup == nil {
		return
	}
	s, moves, err := a.User.Setup.ModelFor(a.Task.Settings)
	if err != nil {
		a.notice("the mode's own profile is not used: " + err.Error())
		return
	}
	if !moves {
		if s.Note != "" {
			a.notice(s.Note)
		}
		return
	}
	a.Task.Settings, a.Model = s.Settings, s.Model
	a.sending.window, a.sending.trial, a.sending.unthinking = window{}, nil, false
	if s.Note != "" {
		a.notice(s.Note)
	}
}
