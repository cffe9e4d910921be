package settings

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
)

func (a *commands) mcpCommand() *cobra.Command {
	var dir string
	var check bool
	at := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVarP(&dir, "workspace", "C", "", "the workspace `folder` (default: the current one)")
		return c
	}
	list := at(help.Command("mcp list", func(cmd *cobra.Command, _ []string) error {
		return a.mcpList(cmd, dir, check)
	}))
	list.Flags().BoolVar(&check, "check", false, "connect to those that are allowed, and list their tools and resources")
	one := func(name string, act func(ctx context.Context, dir, server string) error) *cobra.Command {
		return at(help.CommandFor(name, a.serverNames, func(cmd *cobra.Command, args []string) error {
			return act(cmd.Context(), dir, args[0])
		}))
	}
	decide := func(name string, allow bool) *cobra.Command {
		return at(help.CommandFor(name, a.serverNames, func(_ *cobra.Command, args []string) error {
			return a.mcpDecide(dir, args, allow)
		}))
	}
	return help.Group("mcp", list, a.mcpAddCommand(&dir, at), a.mcpRemoveCommand(&dir, at),
		decide("mcp allow", true), decide("mcp deny", false), one("mcp login", a.mcpLogin), one("mcp logout", a.mcpLogout))
}

// servers reads the MCP servers of a workspace, and what is wrong with their files. root is the workspace in the form
// that tasks use: decisions about its servers are stored under this name.
func (a *commands) servers(dir string) (root string, servers []mcp.Server, problems []string, c setup.Config, err error) {
	ws, err := workspace.Open(a.Abs(dir))
	if err != nil {
		return "", nil, nil, c, failure.Config("look for the MCP servers of "+a.Abs(dir), err.Error(), "roost mcp list -C DIR")
	}
	if c, err = a.EngineConfig(); err == nil {
		servers, problems = c.MCPServers(ws.Root())
	}
	return ws.Root(), servers, problems, c, err
}

// named finds a workspace's server by its name. verb is what the command would do with it, for the failure.
func named(servers []mcp.Server, root, verb, name string) (mcp.Server, error) {
	i := slices.IndexFunc(servers, func(s mcp.Server) bool { return s.Name == name })
	if i < 0 {
		return mcp.Server{}, failure.NotFound("not_found", verb+" the MCP server "+name, "no file that counts for "+root+" names it",
			"roost mcp list -C "+api.ShellWord(root))
	}
	return servers[i], nil
}

// mcpDecide records the user's decision about servers, and prints it.
func (a *commands) mcpDecide(dir string, names []string, allow bool) error {
	root, servers, _, c, err := a.servers(dir)
	if err != nil {
		return err
	}
	verb := "deny"
	if allow {
		verb = "allow"
	}
	var chosen []mcp.Server
	for _, name := range names {
		s, err := named(servers, root, verb, name)
		if err != nil {
			return err
		}
		if s.State == mcp.Invalid && allow {
			return failure.Config("allow the MCP server "+name, s.Problem, "mend it in "+s.File)
		}
		chosen = append(chosen, s)
	}
	var items []api.MCPServer
	for _, s := range chosen {
		if err := c.Servers.Choices.Set(s, allow); err != nil {
			return failure.Config(verb+" the MCP server "+s.Name, err.Error(), "look at the folder of the settings: roost config path")
		}
		now, _ := c.MCPServers(root)
		items = append(items, api.Some(now, func(n mcp.Server) (api.MCPServer, bool) {
			return config.Server(n), n.Name == s.Name
		})...)
		if !a.Flags.JSON {
			if err := a.Println(agreement(s, allow)); err != nil {
				return err
			}
		}
	}
	if a.Flags.JSON {
		return a.Items(items)
	}
	return nil
}

// agreement returns text about the decision and, for an allowed server, the full definition that the user agreed to.
func agreement(s mcp.Server, allow bool) string {
	if !allow {
		return "denied: " + display.OneLine(s.Name) + " of " + display.OneLine(s.File)
	}
	item := config.Server(s)
	lines := []string{"allowed: " + display.OneLine(s.Name) + " of " + display.OneLine(s.File), "  it runs: " + display.OneLine(item.Line)}
	if s.Kind != mcp.Stdio {
		lines[1] = "  it is reached at: " + display.OneLine(item.Line)
	}
	for _, more := range []struct {
		what string
		list []string
	}{{"with the variables", item.Env}, {"with the headers", item.Headers}, {"unasked", item.Always}} {
		if len(more.list) > 0 {
			lines = append(lines, "  "+more.what+": "+display.OneLine(strings.Join(more.list, ", ")))
		}
	}
	if s.Disabled {
		lines = append(lines, "  its definition has it disabled")
	}
	return strings.Join(lines, "\n")
}

// serverNames completes names of servers.
func (a *commands) serverNames(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Completing(func() ([]string, error) {
		dir, _ := cmd.Flags().GetString("workspace")
		_, servers, _, _, err := a.servers(dir)
		return api.Some(servers, func(s mcp.Server) (string, bool) {
			return s.Name + "\t" + string(s.State), !slices.Contains(given, s.Name)
		}), err
	})
}

func (a *commands) mcpList(cmd *cobra.Command, dir string, check bool) error {
	root, servers, problems, c, err := a.servers(dir)
	if err != nil {
		return err
	}
	checks := map[string]*api.MCPCheck{}
	if check {
		hub := c.Connect(servers, root, "mcp-check-"+shell.NewMark(), redact.New(mcp.Secrets(servers, root, a.Env)...))
		for _, m := range hub.Open(cmd.Context()) {
			checks[m.Server.Name] = checkOf(m)
		}
		hub.Close()
	}
	items := []api.MCPServer{}
	for _, s := range servers {
		item := config.Server(s)
		item.Check, item.LoggedIn = checks[s.Name], c.Servers.Logins.Has(s)
		items = append(items, item)
	}
	if a.Flags.JSON {
		return a.PrintJSON(map[string]any{"items": items, "problems": notNil(problems)})
	}
	a.warnAll(problems)
	if len(items) == 0 {
		a.Say("no MCP servers in %s/.roo/mcp.json, %s and editors' storages; to add one: roost mcp add NAME -- COMMAND", root, c.Servers.Own)
		return nil
	}
	rows := [][]string{{"SERVER", "STATE", "FROM", "RUNS"}}
	for _, i := range items {
		state := strings.ReplaceAll(i.State, "_", " ")
		if i.LoggedIn {
			state += ", logged in"
		}
		rows = append(rows, []string{i.Name, state, i.Scope + " " + i.File, cmp.Or(i.Problem, i.Line)})
		if i.Check == nil {
			continue
		}
		if !i.Check.OK {
			rows = append(rows, []string{"", "failed", "", i.Check.Error})
		}
		for _, t := range i.Check.Tools {
			rows = append(rows, []string{"", "tool", t.Name, t.Description})
		}
		for _, r := range i.Check.Resources {
			rows = append(rows, []string{"", "resource", r.URI, r.Name})
		}
		rows = append(rows, api.Each(i.Check.Notes, func(n string) []string { return []string{"", "note", "", n} })...)
	}
	err = a.Grid(rows)
	for _, i := range items {
		if i.State == "not_allowed" {
			a.Say("%s is not used until you agree: roost mcp allow %s -C %s", i.Name, api.ShellWord(i.Name), api.ShellWord(root))
		}
	}
	return err
}

func checkOf(m mcp.Menu) *api.MCPCheck {
	c := &api.MCPCheck{OK: m.Err == nil, Tools: []api.MCPTool{}, Resources: []api.MCPResource{}, Notes: notNil(m.Notes)}
	if m.Err != nil {
		c.Error = m.Err.Error()
	}
	for _, t := range m.Tools {
		c.Tools = append(c.Tools, api.MCPTool{Name: t.Tool, Offered: t.Name, Description: t.Description, ReadOnly: t.ReadOnly})
	}
	for _, r := range m.Resources {
		c.Resources = append(c.Resources, api.MCPResource{URI: r.URI, Name: r.Name, Template: r.Template})
	}
	return c
}
