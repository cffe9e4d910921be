package controltool

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/tool"
)

// NewTaskName is the name of the tool that starts a subtask.
const NewTaskName = "new_task"

// NewNewTask returns new_task. It starts nothing: which modes there are, and how a
// task is run, the agent knows.
func NewNewTask() tool.Tool { return tool.Make(newTaskSpec, planNewTask) }

// newTaskSpec is built once: every turn needs it.
var newTaskSpec = tool.Spec{
	Name: NewTaskName,
	Description: "Hand a part of the work to a subtask: a task of its own, in a mode of your choice, with an empty history. " +
		"It knows only what you write in the message, " +
		"works in the same workspace, and its final result comes back as the result of this call. Call it as the last tool " +
		"of a reply: calls behind it are not run.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"mode":{"type":"string","description":"The slug of the subtask's mode, e.g. code, debug or architect"},` +
		`"message":{"type":"string","description":"What the subtask is to do, with all that it must know to do it"},` +
		`"todos":{"type":["string","null"],"description":"Its first checklist as Markdown, one step a line, such as \"[ ] step\"; null for none"}},` +
		`"required":["mode","message","todos"],"additionalProperties":false}`),
	Class:  tool.Control,
	Replay: tool.Again, // the child's id follows from the call: starting it again finds it
}

func planNewTask(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	slug, _ := in.Text("mode")
	if slug = strings.TrimSpace(slug); slug == "" {
		return nil, in.Wrong(`"mode" is missing: give the slug of a mode as a string`)
	}
	message, _ := in.Text("message")
	if strings.TrimSpace(message) == "" {
		return nil, in.Wrong(`"message" is missing: say what the subtask is to do`)
	}
	todos, given, ok := checklist(in)
	if given && !ok {
		return nil, in.Wrong(`"todos" must be text with one step a line, such as "[ ] first\n[ ] second", or null`)
	}
	ask := tool.Ask{Tool: NewTaskName, Kind: "tool", Title: NewTaskName + " " + tool.OneLine(slug) + ": " +
		tool.OneLine(strings.TrimSpace(message))}
	subtask := &tool.Subtask{Mode: slug, Message: message, Todos: todos}
	return tool.Known{Of: ask, Result: tool.Result{Subtask: subtask}}, nil
}
