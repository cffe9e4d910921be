package spend

import (
	"cmp"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// addTools adds each tool call to the request whose reply made it: the last one before it. Tasks from before native tool
// calls have no calls in the API history; there the UI rows name the tools.
func addTools(v *store.View, list []Expense) {
	give := func(ts int64, tool string) {
		i, _ := slices.BinarySearchFunc(list, ts+1, func(e Expense, ts int64) int { return cmp.Compare(e.At, ts) })
		if i > 0 && tool != "" {
			list[i-1].Tools = append(list[i-1].Tools, tool)
		}
	}
	if len(list) == 0 {
		return
	}
	if calls := v.State.Calls(); len(calls) > 0 {
		for _, c := range calls {
			if m := v.State.Message(c.Message); m != nil && m.TS() > 0 {
				give(m.TS(), c.Name)
			}
		}
		return
	}
	for _, m := range v.State.UI() {
		tool, known := toolOfKind[m.Kind()]
		if !known || m.TS() <= 0 {
			continue
		}
		if tool == "" {
			raws, err := v.State.Raws([]*task.Message{m})
			if err != nil {
				continue // its bytes are gone
			}
			tool = toolOfRow(raws[0])
		}
		give(m.TS(), tool)
	}
}

// toolOfKind is the tool that a row of a kind shows; "" = the row's text names it.
var toolOfKind = map[string]string{
	"ask:tool": "", "say:tool": "",
	"ask:command": "execute_command", "say:command": "execute_command",
	"ask:use_mcp_server": "use_mcp_tool", "say:use_mcp_server": "use_mcp_tool",
	"ask:followup": "ask_followup_question", "ask:plan_mode_respond": "plan_mode_respond",
	"say:completion_result":     "attempt_completion",
	"ask:browser_action_launch": "browser_action", "say:browser_action_launch": "browser_action",
}

// toolOfText translates the names in tool rows. Other names stay as they are.
var toolOfText = map[string]string{
	"editedExistingFile": "write_to_file", "newFileCreated": "write_to_file", "appliedDiff": "apply_diff",
	"readFile": "read_file", "listFilesTopLevel": "list_files", "listFilesRecursive": "list_files", "listFiles": "list_files",
	"searchFiles": "search_files", "codebaseSearch": "codebase_search", "listCodeDefinitionNames": "list_code_definition_names",
	"fetchInstructions": "fetch_instructions", "insertContent": "insert_content", "searchAndReplace": "search_and_replace",
	"switchMode": "switch_mode", "newTask": "new_task", "updateTodoList": "update_todo_list", "runSlashCommand": "run_slash_command",
	"generateImage": "generate_image", "readCommandOutput": "read_command_output", "webFetch": "web_fetch", "webSearch": "web_search",
	"finishTask": "", "imageGenerated": "", // rows about a call that has its own
}

func toolOfRow(raw []byte) string {
	text, _ := esjson.GetString(raw, "text")
	inner := []byte(text)
	if esjson.TypeOf(inner) != esjson.TypeObject || !esjson.Valid(inner) {
		return ""
	}
	name, _ := esjson.GetString(inner, "tool")
	if tool, ok := toolOfText[name]; ok {
		return tool
	}
	return name
}
