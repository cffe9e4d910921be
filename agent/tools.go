package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/tool"
)

// extend connects to the run's MCP servers, once, when the task's mode lets them be used.
// The tools stay as they are then: each change of them would cost every cached request.
// A switch to a mode without them leaves them out of what is sent, as it does all others.
func (a *Agent) connectServers(ctx context.Context) {
	if a.Tools.Servers == nil || a.loop.extended || a.modeLacks(tool.Spec{Name: "use_mcp_tool", Class: tool.MCP}) != nil {
		return
	}
	a.loop.extended = true
	tools, notes := a.Tools.Servers.Open(ctx)
	for _, t := range tools {
		spec := t.Spec()
		if _, taken := a.tools[spec.Name]; taken {
			continue // nobody takes the place of a tool of ours
		}
		a.Tools.List = append(a.Tools.List[:len(a.Tools.List):len(a.Tools.List)], t)
		a.tools[spec.Name] = t
		for _, alias := range spec.Aliases {
			if _, taken := a.tools[alias]; !taken {
				a.tools[alias] = t
			}
		}
	}
	for _, note := range notes {
		a.notice(a.mask(note))
	}
}

// find is the tool that a call names, nil when there is none.
func (a *Agent) findTool(name string) tool.Tool {
	if t := a.tools[name]; t != nil || a.Tools.Servers == nil {
		return t
	}
	return a.Tools.Servers.Find(name)
}

// ruleFor is what "always" allows: of a server's tool that one, by the name that it is
// offered by, also when it was called by the name that all of them share.
func lastingToolRule(spec tool.Spec, ask tool.Ask) string {
	if spec.Class != tool.MCP {
		return spec.Name
	}
	name, _, _ := strings.Cut(ask.Title, " ")
	return name
}

// asking adds Roo's row that says that a server is being asked.
func (d *draft) addServerRow(spec tool.Spec) {
	if spec.Class != tool.MCP {
		return
	}
	var o esjson.Object
	o.Int("ts", d.agent.stamp())
	o.String("type", "say")
	o.String("say", "mcp_server_request_started")
	d.addRow(o.Bytes())
}

// offers reports whether the model that is asked now is told of a tool.
func (a *Agent) offers(spec tool.Spec) bool {
	o := a.Tools.Offer
	if a.Model.Provider != nil {
		o.Wants, o.Spares = catalogue.Tools(a.Model.Provider.Name(), a.Task.Settings.Model)
	}
	return o.Offers(spec)
}

// switchedOff says that the user does not want a tool to be used, nil when that is
// not so. It is an error of the call and not a rule of the policy: nobody is asked.
func (a *Agent) switchedOff(spec tool.Spec) error {
	if !a.Tools.Offer.Excludes(spec) {
		return nil
	}
	return fmt.Errorf("Tool %q is switched off in the user's settings (tools.exclude).", spec.Name) //nolint:staticcheck // a sentence for the model
}

// instead says what does the work of tools that histories of other programs hold and
// that are not here: those that need a service of theirs, and those of older times.
var replacements = map[string]string{
	"codebase_search":            "it needs an index that there is none of here; use search_files, list_files and read_file",
	"generate_image":             "it needs a service that there is none of here; no tool makes images, so tell the user",
	"browser_action":             "there is no browser here; use execute_command where a command line can do it",
	"list_code_definition_names": "use search_files with a pattern for definitions, or read_file",
	"search_and_replace":         "use apply_diff or apply_patch",
	"insert_content":             "use apply_diff or apply_patch",
	"fetch_instructions":         "what can be done is in the system prompt",
	"fetch":                      "use execute_command where a command line can do it",
}

// unknown is what the model is told of a call to a tool that is not here.
func (a *Agent) unknownToolText(name string) string {
	if why, known := replacements[name]; known {
		return fmt.Sprintf("there is no tool named %q here: %s", name, why)
	}
	var names []string
	for _, s := range a.toolSpecs() {
		names = append(names, s.Name)
	}
	if mode.GroupOf(name) == "mcp" {
		return fmt.Sprintf("there is no tool named %q: its server is not set up here. There are %s", name, strings.Join(names, ", "))
	}
	return fmt.Sprintf("there is no tool named %q. There are %s", name, strings.Join(names, ", "))
}
