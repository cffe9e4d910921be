package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/mcp"
)

// newServer holds the flags of `mcp add`.
type newServer struct {
	dir, url, cwd string
	env, headers  []string
	project, sse  bool
	force         bool
}

// mcpAddCommand is `mcp add`; at adds the flag for the workspace.
func (a *commands) mcpAddCommand(dir *string, at func(*cobra.Command) *cobra.Command) *cobra.Command {
	var n newServer
	cmd := at(help.Command("mcp add", func(cmd *cobra.Command, args []string) error {
		n.dir = *dir
		return a.mcpAdd(cmd.Context(), n, args[0], args[1:])
	}))
	f := cmd.Flags()
	f.StringVar(&n.url, "url", "", "the address of a server on the web, instead of a command")
	f.StringArrayVar(&n.headers, "header", nil, "a header for it, `NAME=VALUE` (again for more); ${env:VARIABLE} in the value stands for a variable")
	f.BoolVar(&n.sse, "sse", false, "the server at --url speaks the older transport, SSE")
	f.StringArrayVar(&n.env, "env", nil, "a variable for the command, `NAME=VALUE` (again for more)")
	f.StringVar(&n.cwd, "cwd", "", "the `folder` that the command runs in (default: the workspace)")
	f.BoolVar(&n.project, "project", false, "write .roo/mcp.json of the workspace, for everybody who works in it (default: only for you)")
	f.BoolVar(&n.force, "force", false, "replace a server of this name")
	return cmd
}

func (a *commands) mcpRemoveCommand(dir *string, at func(*cobra.Command) *cobra.Command) *cobra.Command {
	var project bool
	cmd := at(help.CommandFor("mcp remove", a.serverNames, func(cmd *cobra.Command, args []string) error {
		return a.mcpRemove(cmd.Context(), *dir, args[0], project)
	}))
	cmd.Flags().BoolVar(&project, "project", false, "from .roo/mcp.json of the workspace (default: from your own file)")
	return cmd
}

// pairs reads NAME=VALUE words.
func pairs(flag string, words []string) (map[string]string, error) {
	out := map[string]string{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || strings.TrimSpace(name) == "" { // the error does not repeat the word, which may hold a key
			return nil, failure.Usage("roost mcp add --"+flag, "want NAME=VALUE", "roost mcp add NAME --"+flag+" 'NAME=${env:VARIABLE}' ...")
		}
		out[strings.TrimSpace(name)] = value
	}
	return out, nil
}

// place returns an empty definition in the file that the flags choose: that of the workspace, or the user's own.
func place(root string, c setup.Config, project bool) mcp.Server {
	if project {
		return mcp.Server{Scope: mcp.Workspace, File: mcp.WorkspaceFile(root)}
	}
	return mcp.Server{Scope: mcp.Own, File: c.Servers.Own}
}

func (a *commands) mcpAdd(ctx context.Context, n newServer, name string, line []string) error {
	root, _, _, c, err := a.servers(n.dir)
	if err != nil {
		return err
	}
	def := api.NewMCPServer{Name: name, URL: n.url, SSE: n.sse, Dir: n.cwd, Replace: n.force}
	if len(line) > 0 {
		def.Command, def.Args = line[0], line[1:]
	}
	if def.Env, err = pairs("env", n.env); err != nil {
		return err
	}
	if def.Headers, err = pairs("header", n.headers); err != nil {
		return err
	}
	s, err := a.Place().AddServer(ctx, place(root, c, n.project), def)
	if err != nil {
		return err
	}
	for key, value := range s.Headers {
		if n.project && strings.EqualFold(key, "Authorization") && !strings.Contains(value, "${env:") {
			a.Warn("the key of " + key + " is now in " + s.File + ", which others may get; write ${env:VARIABLE} instead")
		}
	}
	return a.mcpAdded(root, s)
}

// mcpAdded prints where a definition is, and what is missing before tasks use it.
func (a *commands) mcpAdded(root string, s mcp.Server) error {
	_, servers, _, _, err := a.servers(root)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(servers, func(o mcp.Server) bool { return o.Name == s.Name })
	if i < 0 {
		return failure.Config("add the MCP server "+s.Name, "it cannot be read back from "+s.File, "roost mcp list")
	}
	now := servers[i]
	if a.Flags.JSON {
		return a.PrintJSON(config.Server(now))
	}
	err = a.Println("added: " + display.OneLine(s.Name) + " in " + display.OneLine(s.File))
	at := api.ShellWord(now.Name) + " -C " + api.ShellWord(root)
	switch {
	case now.File != s.File:
		a.Say("in %s another definition of this name counts: that of %s", root, now.File)
	case now.State == mcp.NotAllowed:
		a.Say("tasks use it once you allow it: roost mcp allow %s", at)
	case now.State != mcp.Allowed:
		a.Say("it is %s, so tasks do not use it: roost mcp allow %s", now.State, at)
	default:
		a.Say("tasks use it from their next run on; to see what it offers: roost mcp list --check")
	}
	if now.Kind != mcp.Stdio && now.File == s.File {
		a.Say("if it wants a log-in: roost mcp login %s", api.ShellWord(now.Name))
	}
	return err
}

func (a *commands) mcpRemove(ctx context.Context, dir, name string, project bool) error {
	root, servers, _, c, err := a.servers(dir)
	if err != nil {
		return err
	}
	s := place(root, c, project)
	s.Name = name
	if err := a.Place().RemoveServer(ctx, s, c.Servers.Logins, root, servers); err != nil {
		return err
	}
	return a.Outcome(map[string]any{"name": name, "file": s.File, "removed": true},
		"removed: "+display.OneLine(name)+" from "+display.OneLine(s.File))
}

// server finds the definition that counts for a name in a workspace.
func (a *commands) server(dir, verb, name string) (root string, s mcp.Server, l mcp.Logins, err error) {
	root, servers, _, c, err := a.servers(dir)
	if err == nil {
		s, err = named(servers, root, verb, name)
	}
	return root, s, c.Servers.Logins, err
}

// mcpLogin logs a person in to a server. The browser is opened only on a terminal, after a yes.
func (a *commands) mcpLogin(ctx context.Context, dir, name string) error {
	root, s, logins, err := a.server(dir, "log in to", name)
	if err != nil {
		return err
	}
	what := "log in to the MCP server " + name
	if s.State != mcp.Allowed {
		f := failure.New(failure.ExitDenied, "not_allowed", what, fmt.Sprintf("it is %s; %s defines it", s.State, s.File),
			"roost mcp allow "+api.ShellWord(name)+" -C "+api.ShellWord(root))
		if s.State == mcp.Invalid {
			f.Why, f.Try = s.Problem, "mend it in "+s.File
		}
		return f
	}
	stop := a.StopperWith(ctx, func() {})
	err = logins.Login(stop.Ctx, s, root, a.Env, func(ctx context.Context, p mcp.LoginPage) error {
		return a.openLogin(ctx, name, p)
	})
	stop.Undo()
	switch {
	case err != nil && stop.Exit() != 0:
		return failure.New(stop.Exit(), "cancelled", what, "it was stopped; nothing was kept",
			"roost mcp login "+api.ShellWord(name))
	case errors.Is(err, mcp.ErrNoLogin):
		a.Say("%s answers without a log-in", display.OneLine(name))
		return nil
	case err != nil:
		return failure.Config(what, err.Error(), "roost mcp list --check -C "+api.ShellWord(root))
	}
	return a.Outcome(map[string]any{"name": name, "server": s.Line(), "logged_in": true},
		"logged in: "+display.OneLine(name)+" ("+display.OneLine(s.Line())+")")
}

// openLogin prints the log-in page, and opens it in the browser after a yes.
func (a *commands) openLogin(ctx context.Context, name string, p mcp.LoginPage) error {
	if a.Flags.JSON {
		a.Warn("log in to " + name + " here: " + p.URL)
		return nil
	}
	lines := []string{"The MCP server " + name + " (" + p.Server + ") wants you to log in at " + p.Issuer + "."}
	if len(p.Scopes) > 0 {
		lines = append(lines, "Roost would get access to: "+strings.Join(p.Scopes, ", "))
	}
	lines = append(lines, "The page: "+p.URL)
	for _, line := range lines {
		fmt.Fprintln(a.Err, display.OneLine(line)) // also with -q: without the page there is no log-in
	}
	if a.Interactive() {
		agreed, err := a.Agree(ctx, "open it in your browser?")
		if err != nil {
			return err
		}
		if agreed {
			if err := app.OpenBrowser(ctx, p.URL); err != nil {
				a.Warn("no browser could be opened (" + err.Error() + "): open the page yourself")
			}
		}
	}
	a.Say("waiting for the browser to come back, for at most %d minutes; Ctrl-C stops", int(mcp.LoginTime.Minutes()))
	return nil
}

func (a *commands) mcpLogout(ctx context.Context, dir, name string) error {
	root, s, logins, err := a.server(dir, "log out of", name)
	if err != nil {
		return err
	}
	switch err := logins.Forget(ctx, s); {
	case errors.Is(err, fs.ErrNotExist):
		return failure.NotFound("not_set", "log out of the MCP server "+name, "you are not logged in to it", "roost mcp list -C "+api.ShellWord(root))
	case err != nil:
		return failure.Config("log out of the MCP server "+name, err.Error(), "roost mcp list")
	}
	if a.Flags.JSON {
		return a.PrintJSON(map[string]any{"name": name, "logged_in": false})
	}
	a.Say("the tokens are deleted on this machine; if the server lists connected programs, remove Roost there too")
	return a.Println("logged out: " + display.OneLine(name))
}
