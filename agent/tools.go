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

// connectServers connects to the run's MCP servers, once, when the task's mode allows their use. Their tools stay the
// same until the run ends: each change of them would cost every cached request. A mode that does not allow them leaves
// them out of what is sent, like any other tool.
func (a *Agent) connectServers(ctx context.Context) {
	if a.Tools.Servers == nil || a.loop.extended || a.modeLacks(tool.Spec{Name: "use_mcp_tool", Class: tool.MCP}) != nil {
		return
	}
	a.loop.extended = true
	tools, notes := a.Tools.Servers.Open(ctx)
	for _, t := range tools {
		spec := t.Spec()
		if _, taken := a.tools[spec.Name]; taken {
			continue // a server's tool never replaces a tool of ours
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

// findTool is the tool that a call names, nil when there is none.
func (a *Agent) findTool(name string) tool.Tool {
	if t := a.tools[name]; t != nil || a.Tools.Servers == nil {
		return t
	}
	return a.Tools.Servers.Find(name)
}

// lastingToolRule is what "always" allows. Of a server's tool it allows that one, by the name under which it is
// offered, even when the call used the name that all of them share.
func lastingToolRule(spec tool.Spec, ask tool.Ask) string {
	if spec.Class != tool.MCP {
		return spec.Name
	}
	name, _, _ := strings.Cut(ask.Title, " ")
	return name
}

// addServerRow adds Roo's row for a request to a server.
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

// offers reports whether the current model is offered a tool.
func (a *Agent) offers(spec tool.Spec) bool {
	o := a.Tools.Offer
	if a.Model.Provider != nil {
		o.Wants, o.Spares = catalogue.Tools(a.Model.Provider.Name(), a.Task.Settings.Model)
	}
	return o.Offers(spec)
}

// switchedOff is the error for a tool that the user switched off, nil for any other. It is an error of the call and not
// a rule of the policy: it needs no question.
func (a *Agent) switchedOff(spec tool.Spec) error {
	if !a.Tools.Offer.Excludes(spec) {
		return nil
	}
	//nolint:staticcheck // a sentence for the model
	return fmt.Errorf("Tool %q is switched off in the user's settings (tools.exclude).", spec.Name)
}

// replacements name what does the work of tools that histories of other programs use and Roost does not have: tools
// that need a service of theirs, and tools of older versions.
var replacements = map[string]string{
	"codebase_search":            "it needs an index that there is none of here; use search_files, list_files and read_file",
	"generate_image":             "it needs a service that is not available here; no tool makes images, so let the user know",
	"browser_action":             "there is no browser here; use execute_command where a command line can do it",
	"list_code_definition_names": "use search_files with a pattern for definitions, or read_file",
	"search_and_replace":         "use apply_diff or apply_patch",
	"insert_content":             "use apply_diff or apply_patch",
	"fetch_instructions":         "what can be done is in the system prompt",
	"fetch":                      "use execute_command where a command line can do it",
}

// unknownToolText is the result of a call to a tool that does not exist.
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
