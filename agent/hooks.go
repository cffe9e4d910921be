package agent

import "github.com/roost-dev/roost/task"

// hooks is the agent as the packages below it see it, each through a small interface of its own.
type hooks struct{ agent *Agent }

// State is the state of the task.
func (h hooks) State() *task.State { return h.agent.state() }

// Now is the time in Unix milliseconds.
func (h hooks) Now() int64 { return h.agent.Host.Now() }

// Mask hides the secrets in a text for the model.
func (h hooks) Mask(text string) string { return h.agent.mask(text) }

// Notice shows the person a text.
func (h hooks) Notice(text string) { h.agent.notice(text) }
