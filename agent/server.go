package agent

import (
	"context"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// Servers are the MCP servers of a run.
type Servers interface {
	// Open connects to them and gives the tools that the run has of them until its end,
	// and what a person should know. It takes a bounded time.
	Open(ctx context.Context) (tools []tool.Tool, notes []string)
	// Find gives the tool that a history calls by a name which is not offered now, as
	// when its server did not answer; nil when it is no name of a server's tool.
	Find(name string) tool.Tool
}

// extend connects to the run's MCP servers, once, when the task's mode lets them be used.
// The tools stay as they are then: each change of them would cost every cached request.
// A switch to a mode without them leaves them out of what is sent, as it does all others.
func (a *Agent) extend(ctx context.Context) {
	if a.Tools.Servers == nil || a.loop.extended || a.lacks(tool.Spec{Name: "use_mcp_tool", Class: tool.MCP}) != nil {
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
func (a *Agent) find(name string) tool.Tool {
	if t := a.tools[name]; t != nil || a.Tools.Servers == nil {
		return t
	}
	return a.Tools.Servers.Find(name)
}

// ruleFor is what "always" allows: of a server's tool that one, by the name that it is
// offered by, also when it was called by the name that all of them share.
func ruleFor(spec tool.Spec, ask tool.Ask) string {
	if spec.Class != tool.MCP {
		return spec.Name
	}
	name, _, _ := strings.Cut(ask.Title, " ")
	return name
}

// asking adds Roo's row that says that a server is being asked.
func (d *draft) asking(spec tool.Spec) {
	if spec.Class != tool.MCP {
		return
	}
	var o esjson.Object
	o.Int("ts", d.agent.stamp())
	o.String("type", "say")
	o.String("say", "mcp_server_request_started")
	d.row(o.Bytes())
}

// response puts Roo's row with a server's answer before the outcome.
func (v *verdict) response(a *Agent) {
	d := a.draft(v.before...)
	var images []string
	for _, block := range v.images {
		source, _ := esjson.Get(block, "source")
		media, _ := esjson.GetString(source, "media_type")
		if data, ok := esjson.GetString(source, "data"); ok {
			images = append(images, "data:"+media+";base64,"+data)
		}
	}
	d.row(rows.Say(a.stamp(), "mcp_server_response", v.text, images))
	v.before = d.events
}
