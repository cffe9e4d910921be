package app

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/config"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/llm/catalogue"
)

// CompletionTime bounds how long a shell waits for ids with their titles. After
// it, ids come without.
const CompletionTime = 700 * time.Millisecond

// Providers and policies are what their flags take.
var (
	Providers = []string{"anthropic", "openai", "openai-compatible", "google", "script"}
	Policies  = []string{"ask", "read", "edits", "all"}
	Sorts     = []string{"newest", "oldest", "cost", "tokens"}
)

// Completer completes an argument or the value of a flag.
type Completer = cobra.CompletionFunc

// Words completes one word of a list.
func Words(list ...string) Completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// First completes the first argument only.
func First(c Completer) Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c(cmd, args, begun)
	}
}

// Folders completes names of folders.
func Folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// TaskIDs completes the ids of tasks, newest first, with their titles. What fails
// completes nothing: a completion has no place for an error.
func (a *App) TaskIDs(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	a.Muted = true
	s, err := a.Open()
	if err != nil {
		return nil, how
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTime)
	defer cancel()
	var out []string
	add := func(source, id, title string) {
		if !api.ValidTaskID(id) { // the shell would run or split it
			return
		}
		if strings.Contains(begun, ":") {
			id = source + ":" + id
		}
		if !strings.HasPrefix(id, begun) {
			return
		}
		if title = display.Cut(display.OneLine(title), 50); title != "" {
			id += "\t" + title
		}
		out = append(out, id)
	}
	all := s.Service()
	defer all.Close()
	if found, _, err := all.List(ctx, api.TaskFilter{}); err == nil {
		for _, t := range found.Items {
			add(t.Source, t.ID, t.Title)
		}
		return out, how
	}
	names, err := all.Names(cmd.Context())
	if err != nil {
		return nil, how
	}
	for _, r := range names {
		add(r.Source, r.ID, "")
	}
	return out, how
}

// SourceNames completes the names of storages and of tools.
func (a *App) SourceNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.Muted = true
	s, err := a.Open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all := s.Service()
	defer all.Close()
	sources, err := all.Sources(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, src := range sources {
		out = append(out, src.Name+"\t"+display.OneLine(src.Path))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// Models completes the known models of the provider; for provider script, files.
func Models(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	provider, _ := cmd.Flags().GetString("provider")
	if provider == "script" {
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	var out []string
	for _, m := range catalogue.Models() {
		if provider == "" || m.Provider == provider {
			out = append(out, m.IDs...)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// SettingKeys completes a setting's name, then its value.
func SettingKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		var out []string
		for _, k := range config.Keys {
			out = append(out, k.Name+"\t"+k.Doc)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	values := map[string][]string{"approve": Policies, "provider": Providers, "sources": {"auto", "none"}}
	return values[args[0]], cobra.ShellCompDirectiveNoFileComp
}

// Complete sets how a flag's value is completed. Cobra fails for unknown flags only, and
// this package defines the flag, so the error is impossible.
func Complete(cmd *cobra.Command, flag string, c Completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, c); err != nil {
		panic("complete --" + flag + ": " + err.Error())
	}
}

// NoFiles are the flags of a command that take no file and have nothing to complete.
func NoFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		Complete(cmd, flag, cobra.NoFileCompletions)
	}
}

// ModeNames completes the modes of the workspace that the command line names.
func (a *App) ModeNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.Muted = true
	dir, _ := cmd.Flags().GetString("workspace")
	c, err := a.EngineConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	set, _ := c.Modes(a.Abs(dir))
	var out []string
	for _, m := range set.All() {
		out = append(out, m.Slug+"\t"+display.Cut(display.OneLine(m.Description), 60))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// ProfileNames completes the profiles of the settings file.
func (a *App) ProfileNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	a.Muted = true
	s, err := a.Settings()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := config.Profiles(s.Values, s.File)
	return names, cobra.ShellCompDirectiveNoFileComp
}
