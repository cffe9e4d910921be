// Package skilltool holds skill: the model asks for the text of a skill whose name and description it knows from the
// system prompt. Nothing runs; the model does what the text asks for with its other tools, and with the files in the
// skill's folder.
package skilltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/skill"
)

// Name is the name of the tool.
const Name = "skill"

// New returns skill. home is the folder with the user's own skills, "" for none.
func New(home string) tool.Tool { return use{home} }

type use struct{ home string }

// spec is built once: every turn needs it.
var spec = tool.Spec{
	Name: Name,
	Description: "Get the instructions of a skill before you do the kind of work that it is for. " +
		"The system prompt lists the skills.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"skill":{"type":"string","description":"The skill's name"},` +
		`"args":{"type":["string","null"],"description":"What it is to be used for"}` +
		`},"required":["skill","args"],"additionalProperties":false}`),
	Class:  tool.Read,
	Replay: tool.Again,
}

func (use) Spec() tool.Spec { return spec }

func (t use) Plan(_ context.Context, env tool.Env, raw json.RawMessage) (tool.Plan, error) {
	wrong := func(reason string) error { return &tool.InputError{Tool: Name, Reason: reason} }
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return nil, wrong(`the input must be a JSON object with the key "skill"`)
	}
	name, _ := esjson.GetString(raw, "skill")
	if name = strings.TrimSpace(name); name == "" {
		return nil, wrong(`"skill" is missing: give the name of a skill as a string`)
	}
	args, _ := esjson.GetString(raw, "args")
	set := skill.Set{Home: t.home}
	if env.Workspace != nil {
		set.Workspace = env.Workspace.Root()
	}
	k, text, err := set.Find(env.Mode, name)
	p := plan{ask: ask(name, args, k)}
	switch {
	case errors.Is(err, skill.ErrNone):
		names := "(none)"
		if list, _ := set.In(env.Mode); len(list) > 0 {
			names = ""
			for i, k := range list {
				if i > 0 {
					names += ", "
				}
				names += k.Name
			}
		}
		p.result = tool.Result{IsError: true, Text: fmt.Sprintf("Error: Skill '%s' not found. Available skills: %s",
			tool.OneLine(name), names)}
	case err != nil:
		p.result = tool.Result{IsError: true, Text: "Error: " + err.Error()}
	default:
		p.result = tool.Result{Text: described(k, args, text)}
	}
	return p, nil
}

// ask is the row that Roo writes.
func ask(name, args string, k skill.Skill) tool.Ask {
	var o esjson.Object
	o.String("tool", "skill")
	o.String("skill", name)
	for _, f := range []struct{ key, value string }{{"args", args}, {"source", k.Source}, {"description", k.Description}} {
		if f.value != "" {
			o.String(f.key, f.value)
		}
	}
	return tool.Ask{Tool: Name, Kind: "tool", Text: string(o.Bytes()), Title: Name + " " + tool.OneLine(strings.TrimSpace(name+" "+args))}
}

// described is what the model reads. It includes the skill's folder, so that the model finds the files that the text
// names; Roo puts the folder into the system prompt.
func described(k skill.Skill, args, text string) string {
	var b strings.Builder
	b.WriteString("Skill: " + k.Name)
	for _, f := range []struct{ name, value string }{
		{"Description", k.Description}, {"Provided arguments", args}, {"Source", k.Source}, {"Folder", filepath.Dir(k.Path)},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, "\n%s: %s", f.name, f.value)
		}
	}
	b.WriteString("\n\n--- Skill Instructions ---\n\n" + text)
	return b.String()
}

// plan is a call whose result is known: reading a text has no effect.
type plan struct {
	ask    tool.Ask
	result tool.Result
}

func (p plan) Ask() tool.Ask { return p.ask }

func (p plan) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	return p.result, context.Cause(ctx)
}
