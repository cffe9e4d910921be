package controltool

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/tool"
)

// CompletionName is the name of the tool that ends a task.
const CompletionName = "attempt_completion"

// NewCompletion returns attempt_completion.
func NewCompletion() tool.Tool { return tool.Make(completionSpec, planCompletion) }

// completionSpec is built once: every turn needs it.
var completionSpec = tool.Spec{
	Name: CompletionName,
	Description: "End the task: give the final result to the user. Use it when the work is done and checked. Do not end the " +
		"result with a question.",
	Schema: json.RawMessage(`{"type":"object","properties":{"result":{"type":"string","description":"What was done, for the user"}},"required":["result"],"additionalProperties":false}`),
	Class:  tool.Control,
	Replay: tool.Again,
}

func planCompletion(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	text, ok := in.Text("result")
	if !ok || strings.TrimSpace(text) == "" {
		return nil, in.Wrong(`"result" is missing: give the final result as a string`)
	}
	// Roo's ask has no text: a row of its own before it holds the result.
	ask := tool.Ask{Tool: CompletionName, Kind: "completion_result", Title: CompletionName}
	return tool.Known{Of: ask, Result: tool.Result{Text: text, Completed: true}}, nil
}
