package prompttool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/slash"
)

// SlashCommand returns run_slash_command. home is the folder with the user's own .roo folder,
// "" for none.
func SlashCommand(home string) tool.Tool {
	return tool.Make(slashSpec, func(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		name, _ := in.Text("command")
		name = strings.TrimPrefix(strings.TrimSpace(name), "/")
		if name == "" {
			return nil, in.Wrong(`"command" is missing: give the name of a command as a string`)
		}
		args, _ := in.Text("args")
		set := slash.Set{Workspace: env.Workspace, Home: home}
		c, err := set.Find(ctx, name)
		facts := []fact{{"", "Description", c.Description}, {"", "Argument hint", c.Hint}, {"", "Mode", c.Mode},
			{"args", "Provided arguments", args}, {"source", "Source", c.Source},
			{"description", "", c.Description}, {"mode", "", c.Mode}}
		p := tool.Known{Of: row(in, "runSlashCommand", "command", "/", name, facts)}
		switch {
		case errors.Is(err, slash.ErrNone):
			p.Result = missing("Command", name, set.Names())
		case err != nil:
			p.Result = failed(err.Error())
		default:
			p.Of.Mode, p.Result = c.Mode, described("Command: /"+c.Name, facts, "Command Content", c.Content)
			p.Result.Mode = c.Mode
		}
		return p, nil
	})
}

// slashSpec is built once: every turn needs it.
var slashSpec = tool.Spec{
	Name: "run_slash_command",
	Description: "Get the instructions of a slash command that the user has written down, e.g. to follow a procedure of this project. " +
		"A name that does not exist is answered with those that do.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"command":{"type":"string","description":"The command's name, without the slash"},` +
		`"args":{"type":["string","null"],"description":"What to give to the command"}` +
		`},"required":["command","args"],"additionalProperties":false}`),
	Class:  tool.Read,
	Replay: tool.Again,
}
