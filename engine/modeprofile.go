package engine

import (
	"cmp"
	"fmt"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace/skill"
)

// A mode may have a profile of its own: who answers while a task is in that mode. It is
// for tasks that were not told whom to ask; those follow the profiles of their modes from
// their beginning on, and one that is told later keeps what it was told. The rights and
// limits of a task are its own whatever the mode: of the profile only provider, model,
// address, effort, length and key are taken.

// byMode lets the profile of the mode answer where the task has just come into it. The
// note is for the person, before anything is asked.
func (e *Engine) byMode(was, s task.Settings, r Request) (task.Settings, []string) {
	if !r.Preset && (r.Provider != "" || r.Profile != "" || r.Model != "" || r.BaseURL != "") {
		s.ByMode = false
		return s, nil
	}
	if r.Task == "" {
		s.ByMode = len(e.opt.Config.ModeProfiles) > 0
	}
	if !s.ByMode || was.Mode == s.Mode {
		return s, nil
	}
	served, note, _ := e.modeProfile(s)
	served.Effort = cmp.Or(r.Effort, served.Effort)
	if r.MaxTokens != 0 {
		served.MaxTokens = max(r.MaxTokens, 0)
	}
	if note == "" {
		return served, nil
	}
	return served, []string{note}
}

// modeProfile gives the settings with the profile of their mode, whether that is another
// one than they have, and a word on it. A mode without a profile changes nothing.
func (e *Engine) modeProfile(s task.Settings) (out task.Settings, note string, other bool) {
	name := e.opt.Config.ModeProfiles[s.Mode]
	if name == "" {
		return s, "", false
	}
	p := e.opt.Config.Profiles[name]
	if p.Provider == "" {
		return s, fmt.Sprintf("mode_profiles.%s names the profile %s, which there is none of, or which names no provider: it is not used", s.Mode, name), false
	}
	out = s
	out.Profile = cmp.Or(p.Foreign, name)
	out.Provider, out.BaseURL, out.Effort, out.MaxTokens, out.Account = p.Provider, p.BaseURL, p.Effort, p.MaxTokens, ""
	out.Model = cmp.Or(p.Model, providers[p.Provider].model)
	if p.Key != "" {
		out.Account = name
	}
	if out.Provider == s.Provider && out.Model == s.Model && out.BaseURL == s.BaseURL && out.Effort == s.Effort && out.MaxTokens == s.MaxTokens && out.Account == s.Account {
		return out, "", false
	}
	return out, fmt.Sprintf("mode %s has a profile of its own: from now on %s %s answers (profile %s)", s.Mode, out.Provider, out.Model, name), true
}

// modeSetup is a run's agent.ModeSetup.
type modeSetup struct {
	engine    *Engine
	workspace string // the folder
	request   Request
}

// Rules loads the user's rules for a mode.
func (m modeSetup) Rules(slug string) mode.Rules { return m.engine.userRules(m.workspace, slug) }

// Skills lists the skills of a mode.
func (m modeSetup) Skills(slug string) ([]skill.Skill, []string) {
	return m.engine.skills(m.workspace).In(slug)
}

// ModelFor is modeProfile for a run that is under way.
func (m modeSetup) ModelFor(s task.Settings) (agent.ModeModel, bool, error) {
	if !s.ByMode {
		return agent.ModeModel{}, false, nil
	}
	e := m.engine
	now, note, other := e.modeProfile(s)
	if !other {
		return agent.ModeModel{Settings: s, Note: note}, false, nil
	}
	choice, err := e.provider(now)
	if err != nil {
		return agent.ModeModel{}, false, err
	}
	model, _ := catalogue.Find(now.Provider, now.Model)
	for _, word := range e.priceless(now, parts{model: model}, m.request) {
		note += "; " + word
	}
	return agent.ModeModel{Settings: now, Model: agent.Model{Provider: choice.llm, Entry: model}, Note: note}, true, nil
}

// follow lets the profile of a new subtask's mode answer there, if its parent follows
// those of its modes, and says so.
func (e *Engine) follow(s *task.Settings) []string {
	if !s.ByMode {
		return nil
	}
	served, note, _ := e.modeProfile(*s)
	if *s = served; note == "" {
		return nil
	}
	return []string{note}
}
