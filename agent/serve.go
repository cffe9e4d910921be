package agent

import (
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/task"
)

// Served is who answers from now on, and what the task keeps of that.
type Served struct {
	Settings task.Settings
	Provider llm.Provider
	Model    catalogue.Model
	Note     string // for the person
}

// serve lets the mode's own model answer, where the person has set one up and the task
// was not told whom to ask. It is said, and the next request goes there; the histories
// stay as they are, and are sent as the new provider wants them.
func (a *Agent) serve() {
	if a.Serve == nil {
		return
	}
	s, moves, err := a.Serve(a.Settings)
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
	a.Settings, a.Provider, a.Model = s.Settings, s.Provider, s.Model
	a.window, a.trial, a.unthinking = window{}, nil, false
	if s.Note != "" {
		a.notice(s.Note)
	}
}
