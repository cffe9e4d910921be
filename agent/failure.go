package agent

import (
	"errors"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/llm"
)

// ErrTimeout is the cause of a context that a run's time limit ended.
var ErrTimeout = errors.New("the run's time is up")

// failureCode names what kind of failure an error is, for exit codes and events.
func failureCode(err error) string {
	var p *llm.Error
	switch {
	case errors.As(err, &p):
		switch p.Kind {
		case llm.Auth:
			return "auth"
		case llm.ContextOverflow:
			return "context"
		}
		return "provider"
	case errors.Is(err, journal.ErrNotSaved):
		return "save"
	case errors.Is(err, errNoWords):
		return "input"
	case errors.Is(err, journal.ErrFenced):
		return "fenced"
	}
	return "internal"
}
