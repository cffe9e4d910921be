package app

import (
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/config"
	display "github.com/roost-dev/roost/cli/term"
)

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
