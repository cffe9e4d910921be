// Package prompttool holds the tools that hand the model a text which the user wrote down: skill, for a skill whose
// name and description the model knows from the system prompt, and run_slash_command, for a prompt that has a name.
//
// Nothing runs. What the text asks for, the model does with its other tools, and with the files in a skill's folder.
// A slash command for another mode switches to it: the call asks for the same consent as switch_mode.
package prompttool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/skill"
	"github.com/roost-dev/roost/workspace/slash"
)

// fact is a property of a text, shown in the row of the call and to the model.
type fact struct{ key, name, value string }

// row builds the row that Roo writes for a call. lead comes before the text's name in the title.
func row(in tool.Input, kind, key, lead, name string, facts []fact) tool.Ask {
	pairs := []any{"tool", kind, key, name}
	args := ""
	for _, f := range facts {
		if f.key == "args" {
			args = f.value
		}
		if f.key != "" {
			pairs = append(pairs, f.key, esjson.Given(f.value))
		}
	}
	title := in.Tool + " " + lead + tool.OneLine(strings.TrimSpace(name+" "+args))
	return tool.Ask{Tool: in.Tool, Kind: "tool", Text: string(esjson.ObjectOf(pairs...)), Title: title}
}

// described builds the result that the model reads.
func described(head string, facts []fact, title, text string) tool.Result {
	for _, f := range facts {
		if f.name != "" && f.value != "" {
			head += fmt.Sprintf("\n%s: %s", f.name, f.value)
		}
	}
	return tool.Result{Text: head + "\n\n--- " + title + " ---\n\n" + text}
}

// missing returns the answer when no text has that name.
func missing(what, name string, there []string) tool.Result {
	list := cmp.Or(strings.Join(there, ", "), "(none)")
	return tool.Failed("%s '%s' not found. Available %ss: %s", what, tool.OneLine(name), strings.ToLower(what), list)
}

// SkillName is the name of the tool skill.
const SkillName = "skill"

// Skill returns skill. home is the folder with the user's own skills, "" for none.
func Skill(home string) tool.Tool {
	return tool.Make(skillSpec, func(_ context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		name, _ := in.Text("skill")
		if name = strings.TrimSpace(name); name == "" {
			return nil, in.Wrong(`"skill" is missing: give the name of a skill as a string`)
		}
		args, _ := in.Text("args")
		set := skill.Set{Home: home}
		if env.Workspace != nil {
			set.Workspace = env.Workspace.Root()
		}
		k, text, err := set.Find(env.Mode, name)
		facts := []fact{{"", "Description", k.Description}, {"args", "Provided arguments", args}, {"source", "Source", k.Source},
			{"description", "", k.Description}}
		p := tool.Known{Of: row(in, "skill", "skill", "", name, facts)}
		switch {
		case errors.Is(err, skill.ErrNone):
			list, _ := set.In(env.Mode)
			p.Result = missing("Skill", name, api.Each(list, func(k skill.Skill) string { return k.Name }))
		case err != nil:
			p.Result = tool.Failed("%v", err)
		default:
			// Roo puts the folder into the system prompt. Here it is how the model finds the files that the text names.
			facts = append(facts, fact{"", "Folder", filepath.Dir(k.Path)})
			p.Result = described("Skill: "+k.Name, facts, "Skill Instructions", text)
		}
		return p, nil
	})
}

// skillSpec is built once: every turn needs it.
var skillSpec = tool.Spec{
	Name: SkillName,
	Description: "Get the instructions of a skill before you do the kind of work that it is for. " +
		"The system prompt lists the skills.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"skill":{"type":"string","description":"The skill's name"},` +
		`"args":{"type":["string","null"],"description":"What it is to be used for"}` +
		`},"required":["skill","args"],"additionalProperties":false}`),
	Class: tool.Read, Replay: tool.Again,
}

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
			p.Result = tool.Failed("%v", err)
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
	Class: tool.Read, Replay: tool.Again,
}
