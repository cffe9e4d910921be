package agent

import "github.com/roost-dev/roost/task"

// Served is who answers from now on, and what the task keeps of that.
type Served struct {
	Settings task.Settings
	Model    Model
	Note     string // for the person
}

// serve lets the mode's own model answer, where the person has set one up and the task
// was not told whom to ask. It is said, and the next request goes there; the histories
// stay as they are, and are sent as the new provider wants them.
func (a *Agent) serve() {
	if a.User.Setup == nil {
		return
	}
	s, moves, err := a.User.Setup.Serve(a.Task.Settings)
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
