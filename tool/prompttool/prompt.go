// Package prompttool holds the tools that hand the model a text which the user wrote down: skill, for a skill whose
// name and description the model knows from the system prompt, and run_slash_command, for a prompt that has a name.
//
// Nothing runs. What the text asks for, the model does with its other tools, and with the files in a skill's folder. A
// slash command that is for another mode leads there: the call asks for what switch_mode would.
package prompttool

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// fact is something about a text, in the row of the call and in what the model reads.
type fact struct{ key, name, value string }

// row is the row that Roo writes for a call. lead stands before the text's name in the title.
func row(in tool.Input, kind, key, lead, name string, facts []fact) tool.Ask {
	var o esjson.Object
	o.String("tool", kind)
	o.String(key, name)
	args := ""
	for _, f := range facts {
		if f.key == "args" {
			args = f.value
		}
		if f.key != "" && f.value != "" {
			o.String(f.key, f.value)
		}
	}
	title := in.Tool + " " + lead + tool.OneLine(strings.TrimSpace(name+" "+args))
	return tool.Ask{Tool: in.Tool, Kind: "tool", Text: string(o.Bytes()), Title: title}
}

// described is what the model reads.
func described(head string, facts []fact, title, text string) tool.Result {
	for _, f := range facts {
		if f.name != "" && f.value != "" {
			head += fmt.Sprintf("\n%s: %s", f.name, f.value)
		}
	}
	return tool.Result{Text: head + "\n\n--- " + title + " ---\n\n" + text}
}

// missing is the answer when there is no text of that name.
func missing(what, name string, there []string) tool.Result {
	list := strings.Join(there, ", ")
	if list == "" {
		list = "(none)"
	}
	return failed(fmt.Sprintf("%s '%s' not found. Available %ss: %s", what, tool.OneLine(name), strings.ToLower(what), list))
}

func failed(why string) tool.Result { return tool.Result{IsError: true, Text: "Error: " + why} }
