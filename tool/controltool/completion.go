package controltool

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// CompletionName is the name of the tool that ends a task.
const CompletionName = "attempt_completion"

// NewCompletion returns attempt_completion.
func NewCompletion() tool.Tool { return completion{} }

type completion struct{}

// completionSpec is built once: every turn needs it.
var completionSpec = tool.Spec{
	Name: CompletionName,
	Description: "End the task: give the final result to the user. Use it when the work is done and checked. Do not end the " +
		"result with a question.",
	Schema: json.RawMessage(`{"type":"object","properties":{"result":{"type":"string","description":"What was done, for the user"}},"required":["result"],"additionalProperties":false}`),
	Class:  tool.Control,
	Replay: tool.Again,
}

func (completion) Spec() tool.Spec { return completionSpec }

func (completion) Plan(_ context.Context, _ tool.Env, input json.RawMessage) (tool.Plan, error) {
	if !esjson.Valid(input) || esjson.TypeOf(input) != esjson.TypeObject {
		return nil, &tool.InputError{Tool: CompletionName, Reason: `the input must be a JSON object with the key "result"`}
	}
	text, ok := esjson.GetString(input, "result")
	if !ok || strings.TrimSpace(text) == "" {
		return nil, &tool.InputError{Tool: CompletionName, Reason: `"result" is missing: give the final result as a string`}
	}
	// Roo's ask has no text: a row of its own before it holds the result.
	ask := tool.Ask{Tool: CompletionName, Kind: "completion_result", Title: CompletionName}
	return plan{ask, tool.Result{Text: text, Completed: true}}, nil
}

// plan is a call whose result is known beforehand.
type plan struct {
	ask    tool.Ask
	result tool.Result
}

func (p plan) Ask() tool.Ask { return p.ask }

func (p plan) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	return p.result, context.Cause(ctx)
}
