package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/controltool"
)

// currentMode returns the mode that the task is in; false when there are no modes. A mode that does not exist has
// only the tools of every mode.
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
	return m.Permits(spec.Name, cmp.Or(classGroups[spec.Class], "mcp"))
}

// classGroups are the groups of Roo that permission classes belong to.
var classGroups = map[tool.Class]string{
	tool.Read: "read", tool.Write: "edit", tool.Command: "command", tool.Control: "always",
	tool.Web: "mcp", // Roo has no such tool: like a server's tools, it reaches what is outside of this machine
}

// forbidsCall returns why the user's settings or the task's mode forbid a call, as far as its input shows: nil when they
// do not.
func (a *Agent) forbidsCall(spec tool.Spec, c *task.Call) error {
	if a.Tools.Offer.Excludes(spec) { // an error of the call and not a rule of the policy: it needs no question
		//nolint:staticcheck // a sentence for the model
		return fmt.Errorf("Tool %q is switched off in the user's settings (tools.exclude).", spec.Name)
	}
	if err := a.modeLacks(spec); err != nil {
		return err
	}
	return a.mayEdit(spec, mode.Names(spec.Name, func(key string) string {
		return esjson.TextOf(c.Input(), key)
	}))
}

// mayEdit compares the paths that a writing call touches with the pattern of the task's mode, under their own name and
// under the name that links lead to: a link with a harmless name must not open a file that the mode closes.
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
				return err //nolint:wrapcheck // it names the path
			}
			names = p.RulePaths()
		}
		for _, name := range names {
			if err := m.PermitsFile(spec.Name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Agent) unknownModeText(slug string) string {
	return fmt.Sprintf("Invalid mode: %s. There are %s", slug, strings.Join(a.User.Modes.Slugs(), ", "))
}

// A task switches to another mode for four reasons: the model asked for it, the person chose an answer that leads
// there, or a slash command that the person or the model gave names it. The reason and the switch are one commit.

// enterMode puts the task into a mode. The events belong into the commit of the reason.
func (a *Agent) enterMode(m mode.Mode) []task.Event {
	a.Task.Settings.Mode = m.Slug
	a.useModeModel()
	return []task.Event{task.Changed{Settings: new(a.Task.Settings)}}
}

// otherMode looks up a mode and reports whether it differs from the task's mode. Without modes no mode does. The
// error means that there is no such mode.
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
	return a.decideStrictly(tool.Control, ask)
}

// decideStrictly decides about a call that needs a consent of its own, unless the policy allows everything or allows
// this tool by name.
func (a *Agent) decideStrictly(class tool.Class, ask tool.Ask) approval.Decision {
	p := a.Task.Policy
	d := approval.Decide(p, class, ask)
	if d.State == approval.Allow && p.Mode != approval.ModeAll && !slices.Contains(p.AllowTools, ask.Tool) {
		d.State = approval.Ask
	}
	return d
}

// withModeSwitch returns the stricter of two decisions, with what a person is asked: about a call's effect, and about
// the mode that the call also leads into.
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

// useModeModel lets the mode's own model answer, where the person has set one up and the task follows the profiles of its
// modes. A notice informs the person. The histories stay as they are, and the new provider gets them in its own form.
func (a *Agent) useModeModel() {
	if a.User.Setup == nil {
		return
	}
	s, moves, err := a.User.Setup.ModelFor(a.Task.Settings)
	if err != nil {
		a.notice("the mode's own profile is not used: " + err.Error())
		return
	}
	if moves {
		a.Task.Settings, a.Model = s.Settings, s.Model
		a.sending.window, a.sending.trial, a.sending.unthinking = window{}, nil, false
	}
	if s.Note != "" {
		a.notice(s.Note)
	}
}

// connectServers connects to the run's MCP servers, once, when the task's mode allows their use. Their tools stay the
// same until the run ends: each change of them would cost every cached request. A mode that does not allow them leaves
// them out of what is sent, like any other tool.
func (a *Agent) connectServers(ctx context.Context) {
	if a.Tools.Servers == nil || a.loop.extended || a.modeLacks(tool.Spec{Name: "use_mcp_tool", Class: tool.MCP}) != nil {
		return
	}
	a.loop.extended = true
	tools, notes := a.Tools.Servers.Open(ctx)
	for _, t := range tools {
		if a.indexTool(t) { // a server's tool never replaces a tool of ours
			a.Tools.List = append(a.Tools.List[:len(a.Tools.List):len(a.Tools.List)], t)
		}
	}
	for _, note := range notes {
		a.notice(a.mask(note))
	}
}

// findTool returns the tool that a call names, nil when there is none.
func (a *Agent) findTool(name string) tool.Tool {
	if t := a.tools[name]; t != nil || a.Tools.Servers == nil {
		return t
	}
	return a.Tools.Servers.Find(name)
}

// offers reports whether the current model is offered a tool.
func (a *Agent) offers(spec tool.Spec) bool {
	o := a.Tools.Offer
	if a.Model.Provider != nil {
		o.Wants, o.Spares = catalogue.Tools(a.Model.Provider.Name(), a.Task.Settings.Model)
	}
	return o.Offers(spec)
}
