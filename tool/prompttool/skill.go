package prompttool

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/skill"
)

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
			var names []string
			for _, k := range list {
				names = append(names, k.Name)
			}
			p.Result = missing("Skill", name, names)
		case err != nil:
			p.Result = failed(err.Error())
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
	Class:  tool.Read,
	Replay: tool.Again,
}
