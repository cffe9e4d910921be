package controltool

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// SwitchModeName is the name of the tool that changes the task's mode.
const SwitchModeName = "switch_mode"

// NewSwitchMode returns switch_mode. Which modes there are, the agent knows.
func NewSwitchMode() tool.Tool { return tool.Make(switchModeSpec, planSwitchMode) }

// switchModeSpec is built once: every turn needs it.
var switchModeSpec = tool.Spec{
	Name: SwitchModeName,
	Description: "Ask to go on in another mode, when the present one does not have the tools or the role that the next step needs. " +
		"The user must agree. The modes are listed in the system prompt.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"mode_slug":{"type":"string","description":"The slug of the mode, e.g. code, ask or architect"},` +
		`"reason":{"type":"string","description":"Why, for the user"}},"required":["mode_slug","reason"],"additionalProperties":false}`),
	Class:  tool.Control,
	Replay: tool.Again,
}

func planSwitchMode(_ context.Context, _ tool.Env, in tool.Input) (tool.Plan, error) {
	slug, _ := in.Text("mode_slug")
	if slug = strings.TrimSpace(slug); slug == "" {
		return nil, in.Wrong(`"mode_slug" is missing: give the slug of a mode as a string`)
	}
	reason, _ := in.Text("reason")
	var o esjson.Object
	o.String("tool", "switchMode")
	o.String("mode", slug)
	o.String("reason", reason)
	title := SwitchModeName + " " + tool.OneLine(slug)
	if reason := tool.OneLine(strings.TrimSpace(reason)); reason != "" {
		title += ": " + reason
	}
	ask := tool.Ask{Tool: SwitchModeName, Kind: "tool", Text: string(o.Bytes()), Title: title}
	return tool.Known{Of: ask, Result: tool.Result{Mode: slug, Text: reason}}, nil
}
