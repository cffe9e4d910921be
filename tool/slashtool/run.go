// Package slashtool holds run_slash_command: the model asks for a prompt that the
// user has written down under a name, and gets its text. Nothing runs; what the text
// asks for, the model does with its other tools. A command that is for another mode
// leads there: the call asks for what switch_mode would.
package slashtool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/slash"
)

// Name is the name of the tool.
const Name = "run_slash_command"

// New returns run_slash_command. home is the folder with the user's own .roo folder,
// "" for none.
func New(home string) tool.Tool { return run{home} }

type run struct{ home string }

// spec is built once: every turn needs it.
var spec = tool.Spec{
	Name: Name,
	Description: "Get the instructions of a slash command that the user has written down, e.g. to follow a procedure of this project. " +
		"A name that does not exist is answered with those that do.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"command":{"type":"string","description":"The command's name, without the slash"},` +
		`"args":{"type":["string","null"],"description":"What to give to the command"}` +
		`},"required":["command","args"],"additionalProperties":false}`),
	Class:  tool.Read,
	Replay: tool.Again,
}

func (run) Spec() tool.Spec { return spec }

func (t run) Plan(ctx context.Context, env tool.Env, raw json.RawMessage) (tool.Plan, error) {
	wrong := func(reason string) error { return &tool.InputError{Tool: Name, Reason: reason} }
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return nil, wrong(`the input must be a JSON object with the key "command"`)
	}
	name, _ := esjson.GetString(raw, "command")
	name = strings.TrimPrefix(strings.TrimSpace(name), "/")
	if name == "" {
		return nil, wrong(`"command" is missing: give the name of a command as a string`)
	}
	args, _ := esjson.GetString(raw, "args")
	set := slash.Set{Workspace: env.Workspace, Home: t.home}
	c, err := set.Find(ctx, name)
	p := plan{ask: ask(name, args, c)}
	switch {
	case errors.Is(err, slash.ErrNone):
		names := strings.Join(set.Names(), ", ")
		if names == "" {
			names = "(none)"
		}
		p.result = tool.Result{IsError: true, Text: fmt.Sprintf("Error: Command '%s' not found. Available commands: %s",
			tool.OneLine(name), names)}
	case err != nil:
		p.result = tool.Result{IsError: true, Text: "Error: " + err.Error()}
	default:
		p.ask.Mode, p.result = c.Mode, tool.Result{Text: text(c, args), Mode: c.Mode}
	}
	return p, nil
}

// ask is the row that Roo writes.
func ask(name, args string, c slash.Command) tool.Ask {
	var o esjson.Object
	o.String("tool", "runSlashCommand")
	o.String("command", name)
	for _, f := range []struct{ key, value string }{{"args", args}, {"source", c.Source}, {"description", c.Description},
		{"mode", c.Mode}} {
		if f.value != "" {
			o.String(f.key, f.value)
		}
	}
	return tool.Ask{Tool: Name, Kind: "tool", Text: string(o.Bytes()), Title: Name + " /" + tool.OneLine(strings.TrimSpace(name+" "+args))}
}

// text is what the model reads.
func text(c slash.Command, args string) string {
	var b strings.Builder
	b.WriteString("Command: /" + c.Name)
	for _, f := range []struct{ name, value string }{
		{"Description", c.Description}, {"Argument hint", c.Hint}, {"Mode", c.Mode}, {"Provided arguments", args}, {"Source", c.Source},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, "\n%s: %s", f.name, f.value)
		}
	}
	b.WriteString("\n\n--- Command Content ---\n\n" + c.Content)
	return b.String()
}

// plan is a call whose result is known: reading a prompt has no effect.
type plan struct {
	ask    tool.Ask
	result tool.Result
}

func (p plan) Ask() tool.Ask { return p.ask }

func (p plan) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	return p.result, context.Cause(ctx)
}
