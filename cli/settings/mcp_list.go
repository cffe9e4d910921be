package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace/shell"
)

// mcpItem is a server as --json shows it. It holds no values of variables and headers,
// and masks what looks like a secret in a command line.
type mcpItem struct {
	Name     string   `json:"name"`
	State    string   `json:"state"` // allowed, not_allowed, denied, disabled, invalid
	Problem  string   `json:"problem,omitempty"`
	Scope    string   `json:"scope"` // workspace, own, editor
	File     string   `json:"file"`
	Kind     string   `json:"kind"`
	Line     string   `json:"runs"` // the command line, or the address
	Env      []string `json:"env"`  // names
	Headers  []string `json:"headers"`
	Always   []string `json:"always_allow"`
	Disabled []string `json:"disabled_tools"`
	Timeout  float64  `json:"timeout_seconds"`

	Check *mcpCheck `json:"check,omitempty"`
}

// mcpCheck is what a server offered when it was asked.
type mcpCheck struct {
	OK        bool          `json:"ok"`
	Error     string        `json:"error,omitempty"`
	Tools     []mcpTool     `json:"tools"`
	Resources []mcpResource `json:"resources"`
	Notes     []string      `json:"notes"`
}

type mcpTool struct {
	Name        string `json:"name"`
	Offered     string `json:"offered_as"`
	Description string `json:"description"`
	ReadOnly    bool   `json:"read_only"`
}

type mcpResource struct {
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Template bool   `json:"template"`
}

func itemOf(s mcp.Server) mcpItem {
	return mcpItem{
		Name:     s.Name,
		State:    strings.ReplaceAll(string(s.State), " ", "_"),
		Problem:  s.Problem,
		Scope:    string(s.Scope),
		File:     s.File,
		Kind:     string(s.Kind),
		Line:     s.Line(),
		Env:      sortedKeys(s.Env),
		Headers:  sortedKeys(s.Headers),
		Always:   notNil(s.Always),
		Disabled: notNil(s.Off),
		Timeout:  s.Timeout.Seconds(),
	}
}

func sortedKeys(m map[string]string) []string { return notNil(slices.Sorted(maps.Keys(m))) }

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (a *commands) mcpList(cmd *cobra.Command, dir string, check bool) error {
	root, servers, problems, c, err := a.servers(dir)
	if err != nil {
		return err
	}
	checks := map[string]*mcpCheck{}
	if check {
		hub := c.Connect(servers, root, "mcp-check-"+shell.NewMark(), redact.New(mcp.Secrets(servers, root, a.Env)...))
		for _, m := range hub.Open(cmd.Context()) {
			checks[m.Server.Name] = checkOf(m)
		}
		hub.Close()
	}
	items := []mcpItem{}
	for _, s := range servers {
		item := itemOf(s)
		item.Check = checks[s.Name]
		items = append(items, item)
	}
	if a.Flags.JSON {
		return app.Encode(a.Out, struct {
			Items    []mcpItem `json:"items"`
			Problems []string  `json:"problems"`
		}{items, notNil(problems)}, false)
	}
	for _, p := range problems {
		a.Warn(p)
	}
	if len(items) == 0 {
		a.Say("no MCP servers; looked in %s/.roo/mcp.json, %s and editors' storages", root, c.Servers.Own)
		return nil
	}
	rows := [][]string{{"SERVER", "STATE", "FROM", "RUNS"}}
	for _, i := range items {
		runs := i.Line
		if i.Problem != "" {
			runs = i.Problem
		}
		rows = append(rows, []string{i.Name, strings.ReplaceAll(i.State, "_", " "), i.Scope + " " + i.File, runs})
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
		for _, n := range i.Check.Notes {
			rows = append(rows, []string{"", "note", "", n})
		}
	}
	if err := a.serverTable(rows); err != nil {
		return err
	}
	for _, i := range items {
		if i.State == "not_allowed" {
			a.Say("%s is not used until you agree: roost mcp allow %s -C %s", i.Name, failure.ShellWord(i.Name), failure.ShellWord(root))
		}
	}
	return nil
}

func checkOf(m mcp.Menu) *mcpCheck {
	c := &mcpCheck{OK: m.Err == nil, Tools: []mcpTool{}, Resources: []mcpResource{}, Notes: notNil(m.Notes)}
	if m.Err != nil {
		c.Error = m.Err.Error()
	}
	for _, t := range m.Tools {
		c.Tools = append(c.Tools, mcpTool{Name: t.Tool, Offered: t.Name, Description: t.Description, ReadOnly: t.ReadOnly})
	}
	for _, r := range m.Resources {
		c.Resources = append(c.Resources, mcpResource{URI: r.URI, Name: r.Name, Template: r.Template})
	}
	return c
}
