package cli

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

// completionTime bounds how long a shell waits for ids with their titles. After
// it, ids come without.
const completionTime = 700 * time.Millisecond

// providers and policies are what their flags take.
var (
	providers = []string{"anthropic", "openai", "openai-compatible", "google", "script"}
	policies  = []string{"ask", "read", "edits", "all"}
	sorts     = []string{"newest", "oldest", "cost", "tokens"}
)

type completer = cobra.CompletionFunc

// words completes one word of a list.
func words(list ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// first completes the first argument only.
func first(c completer) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c(cmd, args, begun)
	}
}

func folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// taskIDs completes the ids of tasks, newest first, with their titles. What fails
// completes nothing: a completion has no place for an error.
func (a *App) taskIDs(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	const how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	a.muted = true
	s, err := a.open()
	if err != nil {
		return nil, how
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
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

// sourceNames completes the names of storages and of tools.
func (a *App) sourceNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.muted = true
	s, err := a.open()
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

// models completes the known models of the provider; for provider script, files.
func models(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
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

// settingKeys completes a setting's name, then its value.
func settingKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		var out []string
		for _, k := range config.Keys {
			out = append(out, k.Name+"\t"+k.Doc)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	values := map[string][]string{"approve": policies, "provider": providers, "sources": {"auto", "none"}}
	return values[args[0]], cobra.ShellCompDirectiveNoFileComp
}

// complete sets how a flag's value is completed. Cobra fails for unknown flags only, and
// this package defines the flag, so the error is impossible.
func complete(cmd *cobra.Command, flag string, c completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, c); err != nil {
		panic("complete --" + flag + ": " + err.Error())
	}
}
