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

// speakers are the names of the authors of messages, by their kinds.
var speakers = map[string]string{
	"say:text": "model", "say:user_feedback": "you", "say:user_feedback_diff": "you", "say:task": "you", "ask:followup": "question",
	"say:completion_result": "result", "ask:completion_result": "result", "say:reasoning": "thinking", "ask:command": "command",
	"say:command": "command", "say:command_output": "output", "ask:command_output": "output", "say:error": "error",
	"say:condense_context": "summary", "say:api_req_started": "request", "user": "you", "assistant": "model",
	"thinking": "thinking", "reasoning": "thinking", "tool_result": "output", "say:mcp_server_response": "output",
	"say:browser_action_result": "output", "say:codebase_search_result": "output", "say:diff_error": "error",
}

// Speaker names the author of the message of a kind with a number in its history, or else the kind in words. It does not
// clean a kind that another program made up; the caller does.
func Speaker(kind string, number int) string {
	if kind == "say:text" && number == 1 {
		return "you"
	}
	if name := speakers[kind]; name != "" {
		return name
	}
	_, name, found := strings.Cut(kind, ":")
	if !found {
		name = kind
	}
	return strings.ReplaceAll(name, "_", " ")
}
