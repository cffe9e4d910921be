package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/tool/mcptool"
)

// equip gives a run its servers. Their processes carry the same mark in every run of
// the task, so that the next one ends what a killed one left behind.
func (r *Run) equip(p setup.Environment, t *store.Task) {
	c := r.engine.opt.Config
	servers, problems := c.MCPServers(p.Workspace.Root())
	r.found = append(r.found, problems...)
	usable := 0
	for _, s := range servers {
		switch {
		case s.State == mcp.Allowed:
			usable++
		case s.State == mcp.Invalid:
			r.found = append(r.found, fmt.Sprintf("%s: the MCP server %s is left out: %s", s.File, s.Name, s.Problem))
		case s.State == mcp.NotAllowed && s.Scope == mcp.Workspace:
			r.found = append(r.found, fmt.Sprintf("the MCP server %s of this workspace is not used: nobody has agreed to what it runs (%s); roost mcp allow %s", s.Name, s.Line(), s.Name))
		}
	}
	if usable == 0 {
		return
	}
	sum := sha256.Sum256([]byte(r.engine.store.Root() + "\x00" + t.Ref.Source + "\x00" + t.Ref.ID))
	r.hub = c.Connect(servers, p.Workspace.Root(), "mcp-"+hex.EncodeToString(sum[:16]), p.Provider.Masks)
	r.agent.Tools.Servers = mcptool.NewBox(r.hub)
}

// unequip ends what equip began, and closes the connections to the model: the next run has
// its own, and a server of many short runs would keep one of each for a minute and a half.
func (r *Run) unequip() {
	if r.hub != nil {
		r.hub.Close()
	}
	if p, ok := r.agent.Model.Provider.(interface{ CloseIdle() }); ok {
		p.CloseIdle()
	}
}
