package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/tool/mcptool"
)

// Servers are the MCP servers that a task in a workspace has, with their states, and
// what could not be read, in words.
func Servers(workspace string, c Config) ([]mcp.Server, []string) {
	if workspace == "" {
		return nil, nil
	}
	return c.Servers.Load(workspace)
}

// Hub makes the connections to the servers that are allowed; the caller closes them.
// mark is what their processes are found by.
func Hub(servers []mcp.Server, workspace, mark string, c Config, masks *redact.Redactor) *mcp.Hub {
	return mcp.NewHub(mcp.Options{Servers: servers, Workspace: workspace, Env: c.getenv, Mark: mark, Version: version(), Masks: masks})
}

func (c Config) getenv(name string) string {
	if c.Env == nil {
		return os.Getenv(name)
	}
	return c.Env(name)
}

var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
})

// serverSecrets are the values in servers' definitions that nobody may be shown.
func (e *Engine) serverSecrets(workspace string) []redact.Known {
	servers, _ := Servers(workspace, e.opt.Config)
	return mcp.Secrets(servers, workspace, e.opt.Config.getenv)
}

// equip gives a run its servers. Their processes carry the same mark in every run of
// the task, so that the next one ends what a killed one left behind.
func (r *Run) equip(p parts, t *store.Task) {
	c := r.engine.opt.Config
	servers, problems := Servers(p.workspace.Root(), c)
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
	r.hub = Hub(servers, p.workspace.Root(), "mcp-"+hex.EncodeToString(sum[:16]), c, p.provider.masks)
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
