package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/tool"
)

// The names that are not a server's.
const (
	UseName    = "use_mcp_tool"
	AccessName = "access_mcp_resource"
)

// offered is a server's tool.
type offered struct {
	caller Caller
	offer  mcp.Offer
	silent bool // it is known to histories and not offered now
}

// New makes a tool of what a server offers.
func New(c Caller, o mcp.Offer) tool.Tool { return offered{c, o, false} }

// Spec describes the tool as its server does.
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

// Plan checks that the input is an object; what is in it is the server's to judge.
func (t offered) Plan(_ context.Context, env tool.Env, input json.RawMessage) (tool.Plan, error) {
	arguments, err := object(t.offer.Name, input)
	if err != nil {
		return nil, err
	}
	return &plan{
		env: env, ask: askTool(t.offer, arguments),
		do: func(ctx context.Context) (mcp.Result, error) {
			return t.caller.Call(ctx, t.offer.Server, t.offer.Tool, arguments)
		},
	}, nil
}

// object is the input as a compact object; none at all is an empty one.
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

// use is use_mcp_tool: any server's tool, by the names that the server has.
type use struct {
	caller Caller
	find   func(server, name string) (mcp.Offer, error)
}

// Use makes use_mcp_tool. find returns what is known of a tool, which may be nothing but the names, or the reason why
// it may not be called.
func Use(c Caller, find func(server, name string) (mcp.Offer, error)) tool.Tool { return use{c, find} }

func (use) Spec() tool.Spec {
	return tool.Spec{
		Name: UseName, Class: tool.MCP, Replay: tool.Never, OptIn: true,
		Description: "Calls a tool of an MCP server.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"server_name":{"type":"string","description":"The server"},"tool_name":{"type":"string","description":"Its tool"},"arguments":{"type":"object","description":"What the tool is given"}},"required":["server_name","tool_name"],"additionalProperties":false}`),
	}
}

func (t use) Plan(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Plan, error) {
	server, _ := esjson.GetString(input, "server_name")
	name, _ := esjson.GetString(input, "tool_name")
	if server == "" || name == "" {
		return nil, &tool.InputError{Tool: UseName, Reason: "server_name and tool_name are needed"}
	}
	arguments, _ := esjson.Get(input, "arguments")
	if esjson.TypeOf(arguments) == esjson.TypeString { // as histories of the XML time have it
		text, _ := esjson.Unquote(arguments)
		arguments = []byte(text)
	}
	o, err := t.find(server, name)
	if err != nil {
		return nil, &tool.InputError{Tool: UseName, Reason: err.Error()}
	}
	return offered{t.caller, o, true}.Plan(ctx, env, arguments)
}

// access is access_mcp_resource.
type access struct {
	caller Caller
	menus  []mcp.Menu
	silent bool
}

// Access makes access_mcp_resource for the resources that the servers list; without any
// it is not offered.
func Access(c Caller, menus []mcp.Menu) tool.Tool {
	silent := true
	for _, m := range menus {
		silent = silent && len(m.Resources) == 0
	}
	return access{c, menus, silent}
}

// maxListed bounds the list of resources in the tool's description, in bytes.
const maxListed = 4 << 10

func (t access) Spec() tool.Spec {
	var b strings.Builder
	b.WriteString("Reads a resource of an MCP server, such as a file, a record or a document that it keeps. These are there:")
	for _, m := range t.menus {
		for _, r := range m.Resources {
			line := "\n- server_name " + m.Server.Name + ", uri " + r.URI
			if r.Name != "" || r.Description != "" {
				line += ": " + strings.Join(strings.Fields(r.Name+" "+r.Description), " ")
			}
			if b.Len()+len(line) > maxListed {
				b.WriteString("\n- and more")
				return t.spec(b.String())
			}
			b.WriteString(line)
		}
	}
	return t.spec(b.String())
}

func (t access) spec(description string) tool.Spec {
	return tool.Spec{
		Name: AccessName, Class: tool.MCP, Replay: tool.Again, OptIn: t.silent, Description: description,
		Schema: json.RawMessage(`{"type":"object","properties":{"server_name":{"type":"string","description":"The server that has the resource"},"uri":{"type":"string","description":"The resource's URI"}},"required":["server_name","uri"],"additionalProperties":false}`),
	}
}

func (t access) Plan(_ context.Context, env tool.Env, input json.RawMessage) (tool.Plan, error) {
	server, _ := esjson.GetString(input, "server_name")
	uri, _ := esjson.GetString(input, "uri")
	if server == "" || uri == "" || !utf8.ValidString(uri) {
		return nil, &tool.InputError{Tool: AccessName, Reason: "server_name and uri are needed"}
	}
	return &plan{
		env: env, ask: askResource(server, uri),
		do: func(ctx context.Context) (mcp.Result, error) { return t.caller.Read(ctx, server, uri) },
	}, nil
}
