package mcptool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/tool"
)

// Box is the tools of a run's servers.
type Box struct {
	hub     *mcp.Hub
	offers  map[string]mcp.Offer // by name
	natural map[[2]string]string // the name of a server's tool
}

// NewBox makes the tools of a hub, which its caller closes.
func NewBox(hub *mcp.Hub) *Box {
	return &Box{hub: hub, offers: map[string]mcp.Offer{}, natural: map[[2]string]string{}}
}

// tooMany is the number of tools beyond which models are known to choose worse; it is
// Roo's.
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
			notes = append(notes, m.Err.Error()+"\nits tools are not there in this run")
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
			b.offers[o.Name], b.natural[[2]string{o.Server, o.Tool}] = o, o.Name
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

// known is a tool by the names that its server has.
func (b *Box) known(server, name string) (mcp.Offer, error) {
	if offered, ok := b.natural[[2]string{server, name}]; ok {
		return b.offers[offered], nil
	}
	o := mcp.Offer{Server: server, Tool: name, Name: mcp.ToolName(server, name)}
	s, _ := b.hub.Server(server)
	if slices.Contains(s.Off, name) {
		return o, fmt.Errorf("the tool %s of the MCP server %s is switched off in the user's settings", name, server)
	}
	o.Always = slices.Contains(s.Always, name)
	return o, nil
}

// Find returns the tool that a name means and that is not offered: of a server that is allowed here and did not
// answer when the run began, or that has got the tool since. The server is taken from the name as far as possible.
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
		for _, off := range s.Off {
			if mcp.Sanitise(off) == rest {
				return nil
			}
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
