// Package mcptool makes the tools that MCP servers offer: one for each of their tools, by Roo's names
// (mcp--SERVER--TOOL), access_mcp_resource, and use_mcp_tool, which occurs in histories and is offered to no model.
//
// A call needs permission like a command does: only the server knows what it reads or changes. After a crash it is
// not made again, unless the server declares the tool read-only. A server that does not answer, or dies, is an error
// result of the call and not of the task; the result states whether the call may have taken effect. A long result
// is kept whole in the task, as the output of commands is, and the model gets both its ends (tool.KeepLong).
//
// The connections are package mcp's; here they are an interface.
package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/tool"
)

// Caller reaches servers. *mcp.Hub is one.
type Caller interface {
	Call(ctx context.Context, server, tool string, arguments json.RawMessage) (mcp.Result, error)
	Read(ctx context.Context, server, uri string) (mcp.Result, error)
}

// The names that do not belong to a server.
const (
	UseName    = "use_mcp_tool"
	AccessName = "access_mcp_resource"
)

// offered is a server's tool.
type offered struct {
	caller Caller
	offer  mcp.Offer
	silent bool // known to histories, but not offered now
}

// New makes a tool of a tool that a server offers.
func New(c Caller, o mcp.Offer) tool.Tool { return offered{c, o, false} }

// Spec describes the tool in the server's words.
func (t offered) Spec() tool.Spec {
	s := tool.Spec{
		Name: t.offer.Name, Description: t.offer.Description, Schema: t.offer.Schema,
		Class: tool.MCP, Replay: tool.Never, OptIn: t.silent,
	}
	if t.offer.ReadOnly {
		s.Replay = tool.Again
	}
	if rest, ok := strings.CutPrefix(t.offer.Name, "mcp--"); ok {
		if server, name, ok := strings.Cut(rest, "--"); ok {
			s.Aliases = []string{"mcp__" + server + "__" + name}
		}
	}
	return s
}

// Plan checks that the input is an object; only the server judges its content.
func (t offered) Plan(_ context.Context, env tool.Env, input json.RawMessage) (tool.Plan, error) {
	arguments, err := object(t.offer.Name, input)
	if err != nil {
		return nil, err
	}
	return prepared(env, askTool(t.offer, arguments), func(ctx context.Context) (mcp.Result, error) {
		return t.caller.Call(ctx, t.offer.Server, t.offer.Tool, arguments)
	}), nil
}

// object returns the input as a compact object; no input becomes an empty object.
func object(name string, input json.RawMessage) (json.RawMessage, error) {
	input = bytes.TrimSpace(input)
	if len(input) == 0 || string(input) == "null" {
		return json.RawMessage("{}"), nil
	}
	var out bytes.Buffer
	if input[0] != '{' || json.Compact(&out, input) != nil {
		return nil, &tool.InputError{Tool: name, Reason: "the arguments are no JSON object"}
	}
	return out.Bytes(), nil
}

// useSpec is that of use_mcp_tool.
var useSpec = tool.Spec{
	Name: UseName, Class: tool.MCP, Replay: tool.Never, OptIn: true,
	Description: "Calls a tool of an MCP server.",
	Schema:      json.RawMessage(`{"type":"object","properties":{"server_name":{"type":"string","description":"The server"},"tool_name":{"type":"string","description":"Its tool"},"arguments":{"type":"object","description":"What the tool is given"}},"required":["server_name","tool_name"],"additionalProperties":false}`),
}

// Use makes use_mcp_tool: it calls any server's tool, by the names that the server uses. find returns what is known of
// a tool, at least its names, or an error that states why it may not be called.
func Use(c Caller, find func(server, name string) (mcp.Offer, error)) tool.Tool {
	return tool.Make(useSpec, func(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		server, _ := in.Text("server_name")
		name, _ := in.Text("tool_name")
		if server == "" || name == "" {
			return nil, in.Wrong("server_name and tool_name are needed")
		}
		arguments, _ := in.Raw("arguments")
		if esjson.TypeOf(arguments) == esjson.TypeString { // as histories of the XML time have it
			arguments = []byte(esjson.Text(arguments))
		}
		o, err := find(server, name)
		if err != nil {
			return nil, in.Wrong("%v", err)
		}
		return offered{c, o, true}.Plan(ctx, env, arguments)
	})
}

// maxListed bounds the list of resources in the tool's description, in bytes.
const maxListed = 4 << 10

// Access makes access_mcp_resource for the resources that the servers list; without resources it is not offered.
func Access(c Caller, menus []mcp.Menu) tool.Tool {
	var b strings.Builder
	b.WriteString("Reads a resource of an MCP server, such as a file, a record or a document that it keeps. These are there:")
	listed := false
resources:
	for _, m := range menus {
		for _, r := range m.Resources {
			listed = true
			line := "\n- server_name " + m.Server.Name + ", uri " + r.URI
			if r.Name != "" || r.Description != "" {
				line += ": " + strings.Join(strings.Fields(r.Name+" "+r.Description), " ")
			}
			if b.Len()+len(line) > maxListed {
				b.WriteString("\n- and more")
				break resources
			}
			b.WriteString(line)
		}
	}
	spec := tool.Spec{
		Name: AccessName, Class: tool.MCP, Replay: tool.Again, OptIn: !listed, Description: b.String(),
		Schema: json.RawMessage(`{"type":"object","properties":{"server_name":{"type":"string","description":"The server that has the resource"},"uri":{"type":"string","description":"The resource's URI"}},"required":["server_name","uri"],"additionalProperties":false}`),
	}
	return tool.Make(spec, func(_ context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		server, _ := in.Text("server_name")
		uri, _ := in.Text("uri")
		if server == "" || uri == "" || !utf8.ValidString(uri) {
			return nil, in.Wrong("server_name and uri are needed")
		}
		row := esjson.ObjectOf("type", "access_mcp_resource", "serverName", server, "uri", uri)
		ask := tool.Ask{
			Tool: AccessName, Kind: "use_mcp_server", Text: string(row), Paths: []string{server},
			Title: tool.OneLine(AccessName + " " + server + " " + uri),
		}
		return prepared(env, ask, func(ctx context.Context) (mcp.Result, error) { return c.Read(ctx, server, uri) }), nil
	})
}

// titleLimit bounds the characters of the arguments in the line by which a user decides; longer arguments are shown
// whole below that line.
const titleLimit = 200

func askTool(o mcp.Offer, arguments json.RawMessage) tool.Ask {
	row := esjson.ObjectOf("type", "use_mcp_tool", "serverName", o.Server, "toolName", o.Tool,
		"arguments", string(arguments))
	ask := tool.Ask{
		Tool: UseName, Kind: "use_mcp_server", Text: string(row), Paths: []string{o.Server + "/" + o.Tool},
		Title: tool.OneLine(o.Name + " " + string(arguments)),
	}
	if o.Always {
		ask.Agreed = "alwaysAllow of the server " + o.Server
	}
	if len(ask.Title) > titleLimit {
		ask.Title = api.Shorten(ask.Title, titleLimit)
		var pretty bytes.Buffer
		if json.Indent(&pretty, arguments, "", "  ") == nil {
			ask.Diff = pretty.String()
		}
	}
	return ask
}

// prepared returns the plan of a call that asks a server. If the server does not answer, that is a result: the task
// continues.
func prepared(env tool.Env, ask tool.Ask, do func(context.Context) (mcp.Result, error)) tool.Plan {
	return tool.Prepared{Of: ask, Do: func(ctx context.Context, _ tool.Output) (tool.Result, error) {
		answer, err := do(ctx)
		if failed, ok := errors.AsType[*mcp.CallError](err); ok && ctx.Err() == nil {
			return tool.Result{Text: "Error: " + failed.Error(), IsError: true, TimedOut: failed.Timeout}, nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		res := tool.Result{Text: answer.Text, IsError: answer.Failed}
		for _, image := range answer.Images {
			res.Images = append(res.Images, tool.ImageBlock(image.Media, image.Data))
		}
		if answer.Failed {
			res.Text = "Error:\n" + res.Text
		}
		return res, tool.KeepLong(env, &res)
	}}
}

// Box holds the tools of a run's servers.
type Box struct {
	hub    *mcp.Hub
	offers map[string]mcp.Offer // by name
}

// NewBox makes the tools of a hub; the caller closes the hub.
func NewBox(hub *mcp.Hub) *Box { return &Box{hub: hub, offers: map[string]mcp.Offer{}} }

// tooMany is the number of tools above which models are known to choose worse; the number is Roo's.
const tooMany = 60

// Open connects to the servers and returns their tools in the order of servers and names, after the tools that reach
// any of them. The notes name what is missing and why.
func (b *Box) Open(ctx context.Context) (tools []tool.Tool, notes []string) {
	menus := b.hub.Open(ctx)
	if len(menus) == 0 {
		return nil, nil
	}
	tools = []tool.Tool{Access(b.hub, menus), Use(b.hub, b.known)}
	count, servers := 0, 0
	for _, m := range menus {
		for _, note := range m.Notes {
			notes = append(notes, "the MCP server "+m.Server.Name+": "+note)
		}
		if m.Err != nil {
			notes = append(notes, m.Err.Error()+"; its tools are not there in this run")
			continue
		}
		if len(m.Tools) > 0 {
			servers++
		}
		for _, o := range m.Tools {
			if other, taken := b.offers[o.Name]; taken {
				notes = append(notes, fmt.Sprintf("the tool %s of the MCP server %s is left out: one of %s has the same "+
					"name", o.Tool, o.Server, other.Server))
				continue
			}
			b.offers[o.Name] = o
			tools = append(tools, New(b.hub, o))
			count++
		}
	}
	if count > tooMany {
		notes = append(notes, fmt.Sprintf("%d tools of %d MCP servers are on, more than %d: models choose worse among so "+
			"many; switch some off with disabledTools, or a server with disabled", count, servers, tooMany))
	}
	return tools, notes
}

// known returns what is known of a tool, by the names that its server uses.
func (b *Box) known(server, name string) (mcp.Offer, error) {
	o := mcp.Offer{Server: server, Tool: name, Name: mcp.ToolName(server, name)}
	if offered, ok := b.offers[o.Name]; ok && offered.Server == server && offered.Tool == name {
		return offered, nil
	}
	s, _ := b.hub.Server(server)
	if slices.Contains(s.Off, name) {
		return o, fmt.Errorf("the tool %s of the MCP server %s is switched off in the user's settings", name, server)
	}
	o.Always = slices.Contains(s.Always, name)
	return o, nil
}

// Find returns a tool by its name, although it is not offered: its server is allowed here but did not answer when the
// run began, or has got the tool since. Find takes the server from the name as far as possible.
func (b *Box) Find(name string) tool.Tool {
	name, ok := mcp.Canonical(name)
	if !ok {
		return nil
	}
	if o, ok := b.offers[name]; ok {
		return New(b.hub, o)
	}
	for _, server := range b.hub.Names() {
		rest, ok := strings.CutPrefix(name, "mcp--"+mcp.Sanitise(server)+"--")
		if !ok || rest == "" {
			continue
		}
		s, _ := b.hub.Server(server)
		o := mcp.Offer{Server: server, Tool: rest, Name: name}
		if slices.ContainsFunc(s.Off, func(off string) bool { return mcp.Sanitise(off) == rest }) {
			return nil
		}
		for _, always := range s.Always {
			if mcp.Sanitise(always) == rest {
				o.Tool, o.Always = always, true
			}
		}
		return offered{b.hub, o, true}
	}
	return nil
}
