package controltool

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// TodoListName is the name of the tool that keeps the task's checklist.
const TodoListName = "update_todo_list"

// NewTodoList returns update_todo_list. The list belongs to the task, so its plan
// gives the checklist as text, and the agent reads, shows and keeps it.
func NewTodoList() tool.Tool { return tool.Make(todoListSpec, planTodoList) }

// todoListSpec is built once: every turn needs it.
var todoListSpec = tool.Spec{
	Name: TodoListName,
	Description: "Replace the task's checklist by a new one, in order of work: \"[ ] step\" for what is to be done, \"[-] " +
		"step\" for what is being done, \"[x] step\" for what is done. " +
		"Always give the whole list. Use it for tasks of several steps: mark a step when it begins and when it is done, add " +
		"what turns up, and never drop an open step unless it has become pointless.",
	Schema: json.RawMessage(`{"type":"object","properties":{"todos":{"type":"string",` +
		`"description":"The whole checklist as Markdown, one step a line"}},"required":["todos"],"additionalProperties":false}`),
	Class:  tool.Control,
	Replay: tool.Again,
}

func planTodoList(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	text, given, ok := checklist(in)
	switch {
	case !given:
		return nil, in.Wrong(`"todos" is missing: give the whole checklist as text, such as "[ ] first\n[x] second"`)
	case !ok:
		return nil, in.Wrong(`"todos" must be text with one step a line, such as "[ ] first\n[x] second"`)
	}
	ask := tool.Ask{Tool: TodoListName, Kind: "tool", Title: TodoListName}
	return tool.Known{Of: ask, Result: tool.Result{Todos: &text}}, nil
}

// checklist reads the steps of a call, as text or as a list.
func checklist(in tool.Input) (text string, given, ok bool) {
	raw, given := in.Raw("todos")
	switch {
	case !given:
	case esjson.TypeOf(raw) == esjson.TypeString:
		text, ok = in.Text("todos")
	case esjson.TypeOf(raw) == esjson.TypeArray:
		text, ok = fromList(raw)
	}
	return text, given, ok
}

// fromList reads a list where text is wanted: of lines, or of Roo's own items.
func fromList(raw []byte) (string, bool) {
	boxes := map[string]string{"completed": "[x] ", "in_progress": "[-] ", "pending": "[ ] ", "": "[ ] "}
	var lines []string
	for el := range esjson.Array(raw) {
		switch esjson.TypeOf(el) {
		case esjson.TypeString:
			line, err := esjson.Unquote(el)
			if err != nil {
				return "", false
			}
			lines = append(lines, line)
		case esjson.TypeObject:
			content, _ := esjson.GetString(el, "content")
			status, _ := esjson.GetString(el, "status")
			box, known := boxes[status]
			if content = strings.Join(strings.Fields(content), " "); content == "" || !known {
				return "", false
			}
			lines = append(lines, box+content)
		default:
			return "", false
		}
	}
	return strings.Join(lines, "\n"), true
}
