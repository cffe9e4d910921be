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

// currentMode is the mode that the task is in; false when there are no modes. A mode that does not exist has only the
// tools of every mode.
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

// modeLacks returns why the task's mode does not have a tool, nil when it does. A tool that Roo does not know belongs
// to the group of its permission class.
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

// forbidsCall returns why the task's mode forbids a call, as far as its input shows: nil when it does not.
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

// mayEdit compares the paths that a writing call touches with the pattern of the task's mode, under their own name and
// under the one that links lead to: a link with a harmless name must not open a file that the mode closes.
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
				return fmt.Errorf("the mode's pattern for files cannot be compared with it: %w", err)
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

// switchMode switches to another mode. A mode is a right, so it needs a consent unless everything is allowed. The new
// mode and the call's outcome are one commit.
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
	return nil, b.finishCall(ctx, c, callOutcome{
		state:    "ok",
		text:     text,
		approval: granted,
		before:   d.events,
	})
}

// A task switches to another mode for four reasons: the model asked for it, the person chose an answer that leads
// there, or a slash command that the person or the model gave names it. The reason and the switch are one commit.

// enterMode puts the task into a mode. The events belong into the commit of the reason.
func (a *Agent) enterMode(m mode.Mode) []task.Event {
	a.Task.Settings.Mode = m.Slug
	a.useModeModel()
	settings := a.Task.Settings
	return []task.Event{task.Changed{Settings: &settings}}
}

// otherMode looks up a mode and reports whether it differs from the task's mode. Without modes nothing does. The error
// means that there is no such mode.
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

// maySwitch decides whether a call of the model may change the mode. A mode is a right, so the user must agree unless
// the policy allows everything.
func (a *Agent) maySwitch(ask tool.Ask) approval.Decision {
	ask.Tool = controltool.SwitchModeName
	d := approval.Decide(a.Task.Policy, tool.Control, ask)
	if d.State == approval.Allow && a.Task.Policy.Mode != approval.ModeAll && !slices.Contains(a.Task.Policy.AllowTools, ask.Tool) {
		d.State = approval.Ask
	}
	return d
}

// withModeSwitch is the decision on a call that has an effect and also leads into another mode, and what a person is
// asked about it: the stricter decision of both.
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

// enterChosenMode switches to the mode of the suggested answer that the person chose. It needs no consent: the
// suggestion showed the mode.
func (d *draft) enterChosenMode(choices []tool.Choice, answer string) {
	i := slices.IndexFunc(choices, func(c tool.Choice) bool {
		return strings.TrimSpace(c.Answer) == strings.TrimSpace(answer)
	})
	if i >= 0 {
		d.enterUserMode(choices[i].Mode, "the answer")
	}
}

// enterUserMode switches to the mode that the person's words lead to, and notifies them.
func (d *draft) enterUserMode(slug, what string) {
	m, moves, err := d.agent.otherMode(slug)
	switch {
	case err != nil:
		d.agent.notice(fmt.Sprintf("%s asks for a mode that does not exist: %v", what, err))
	case moves:
		d.Put(d.agent.enterMode(m)...)
		d.agent.notice(fmt.Sprintf("%s switches to %s mode", what, m.Name))
	}
}

// otherModeSlug is the slug of a mode that a choice leads to, "" when it leads to no other mode.
func (a *Agent) otherModeSlug(slug string) string {
	if m, moves, err := a.otherMode(slug); err == nil && moves {
		return m.Slug
	}
	return ""
}

// enterCallMode switches to the mode that a successful call leads to, as was agreed.
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

// useModeModel lets the mode's own model answer, where the person has set one up and the task follows the
// profiles of its modes. A notice informs the person. The histories stay as they are, and the new provider gets them in its own form.
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
