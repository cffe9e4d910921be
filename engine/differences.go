package engine

import (
	"fmt"

	"github.com/roost-dev/roost/task"
)

// differences says what has changed for a task since it ran last: a model that
// answers in another's place, or files that moved on, must not be a surprise.
func differences(s *task.State, now task.Settings, head string) []string {
	was := s.Settings
	var notes []string
	say := func(what, from, to string) {
		if from != "" && from != to {
			notes = append(notes, fmt.Sprintf("%s: %s -> %s", what, from, to))
		}
	}
	say("workspace", was.Workspace, now.Workspace)
	say("provider", was.Provider, now.Provider)
	say("model", was.Model, now.Model)
	say("base URL", was.BaseURL, now.BaseURL)
	say("mode", was.Mode, now.Mode)
	if s.Run != nil && was.Workspace == now.Workspace && s.Run.Head != head {
		notes = append(notes, fmt.Sprintf("the workspace's HEAD has changed since the last run: %s -> %s", orNone(s.Run.Head), orNone(head)))
	}
	return notes
}

func orNone(head string) string {
	if head == "" {
		return "none"
	}
	return head
}
