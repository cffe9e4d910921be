package view

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/api"
)

// authors are the names of api.Author.By.
var authors = map[string]string{
	api.ByAgent: "agent", api.ByCommand: "command", api.BySubtask: "a subtask", api.ByRestore: "a restore",
	api.ByOther: "you, or another program",
}

// Author names the author of a change of a file. It does not clean names of tools and tasks; the caller does.
func Author(a api.Author) string {
	call := a.Tool
	if a.Row > 0 {
		call = strings.TrimSpace(fmt.Sprintf("%s #%d", call, a.Row))
	}
	name, known := authors[a.By]
	switch {
	case a.By == api.ByOther && a.Task != "":
		return "another task: " + a.Task
	case !known && call != "":
		return "unknown, while " + call + " ran"
	case !known:
		return "unknown"
	case call != "" && (a.By == api.ByAgent || a.By == api.ByCommand):
		return name + ": " + call
	}
	return name
}
