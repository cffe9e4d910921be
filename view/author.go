package view

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/api"
)

// Author names the author of a change of a file. It does not clean names of tools and tasks; the caller does.
func Author(a api.Author) string {
	call := a.Tool
	if a.Row > 0 {
		call = strings.TrimSpace(fmt.Sprintf("%s #%d", call, a.Row))
	}
	switch {
	case a.By == api.ByAgent && call != "":
		return "agent: " + call
	case a.By == api.ByAgent:
		return "agent"
	case a.By == api.ByCommand && call != "":
		return "command: " + call
	case a.By == api.ByCommand:
		return "command"
	case a.By == api.BySubtask:
		return "a subtask"
	case a.By == api.ByRestore:
		return "a restore"
	case a.By == api.ByOther && a.Task != "":
		return "another task: " + a.Task
	case a.By == api.ByOther:
		return "you, or another program"
	case call != "":
		return "unknown, while " + call + " ran"
	}
	return "unknown"
}
