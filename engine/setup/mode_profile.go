package setup

import (
	"cmp"
	"fmt"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace/skill"
)

// A mode may have a profile of its own, which answers while a task is in that mode. It is for tasks whose caller names
// no provider: those follow the profiles of their modes from their beginning on, and one whose caller names a provider
// later keeps that one. The rights and limits of a task are its own in every mode: of the profile only provider, model,
// address, effort, length and key are used.

// EnterMode lets the profile of the mode answer where the task has just changed to that mode. The notes are for the
// user, before any request is sent.
func (r Resolver) EnterMode(before, s task.Settings, c Choice, isNew bool) (task.Settings, []string) {
	if !c.Preset && (c.Provider != "" || c.Profile != "" || c.Model != "" || c.BaseURL != "") {
		s.ByMode = false
		return s, nil
	}
	if isNew {
		s.ByMode = len(r.Config.ModeProfiles) > 0
	}
	if !s.ByMode || before.Mode == s.Mode {
		return s, nil
	}
	out, note, _ := r.Config.applyModeProfile(s)
	out.Effort = cmp.Or(c.Effort, out.Effort)
	if c.MaxTokens != 0 {
		out.MaxTokens = max(c.MaxTokens, 0)
	}
	if note == "" {
		return out, nil
	}
	return out, []string{note}
}

// EnterSubtaskMode lets the profile of a new subtask's mode answer there, if its parent follows those of its modes. The
// notes report that.
func (r Resolver) EnterSubtaskMode(s *task.Settings) []string {
	if !s.ByMode {
		return nil
	}
	out, note, _ := r.Config.applyModeProfile(*s)
	if *s = out; note == "" {
		return nil
	}
	return []string{note}
}

// applyModeProfile gives the settings with the profile of their mode, a note about it, and whether that profile differs
// from what the settings have. A mode without a profile changes nothing.
func (c Config) applyModeProfile(s task.Settings) (out task.Settings, note string, changed bool) {
	name := c.ModeProfiles[s.Mode]
	if name == "" {
		return s, "", false
	}
	p := c.Profiles[name]
	if p.Provider == "" {
		return s, fmt.Sprintf("mode_profiles.%s names the profile %s, which does not exist or names no provider: it is not "+
			"used", s.Mode, name), false
	}
	out = s
	out.Profile = cmp.Or(p.Foreign, name)
	out.Provider, out.BaseURL, out.Effort, out.MaxTokens, out.Account = p.Provider, p.BaseURL, p.Effort, p.MaxTokens, ""
	out.Model = cmp.Or(p.Model, providers[p.Provider].model)
	if p.Key != "" {
		out.Account = name
	}
	if out.Provider == s.Provider && out.Model == s.Model && out.BaseURL == s.BaseURL &&
		out.Effort == s.Effort && out.MaxTokens == s.MaxTokens && out.Account == s.Account {
		return out, "", false
	}
	return out, fmt.Sprintf("mode %s has a profile of its own: from now on %s %s answers (profile %s)", s.Mode,
		out.Provider, out.Model, name), true
}

// ModeSetup is an agent.ModeSetup for runs in one workspace.
type ModeSetup struct {
	Resolver  Resolver
	Workspace string // the folder
	Choice    Choice
}

// Rules loads the user's rules for a mode.
func (m ModeSetup) Rules(slug string) mode.Rules { return m.Resolver.Config.rules(m.Workspace, slug) }

// Skills lists the skills of a mode.
func (m ModeSetup) Skills(slug string) ([]skill.Skill, []string) {
	return m.Resolver.Config.Skills(m.Workspace).In(slug)
}

// ModelFor opens the model that answers in the mode of the settings, where that is another one than now.
func (m ModeSetup) ModelFor(s task.Settings) (agent.ModeModel, bool, error) {
	if !s.ByMode {
		return agent.ModeModel{}, false, nil
	}
	now, note, changed := m.Resolver.Config.applyModeProfile(s)
	if !changed {
		return agent.ModeModel{Settings: s, Note: note}, false, nil
	}
	provider, err := m.Resolver.Provider(now)
	if err != nil {
		return agent.ModeModel{}, false, err
	}
	model, _ := catalogue.Find(now.Provider, now.Model)
	for _, warning := range m.Resolver.UnknownPrice(now, model, m.Choice) {
		note += "; " + warning
	}
	return agent.ModeModel{Settings: now, Model: agent.Model{Provider: provider.LLM, Entry: model}, Note: note}, true, nil
}
