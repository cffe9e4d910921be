package cli

import (
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/spf13/cobra"
)

// Version is set when a release is built; otherwise the version comes from the build information.
var Version = ""

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  count(0, 0, "roost version"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := api.VersionOf(Version)
			if a.flags.json {
				return encode(a.Out, v, false)
			}
			line := "roost " + v.Version
			if v.Commit != "" {
				line += " " + v.Commit[:min(12, len(v.Commit))]
			}
			if _, err := fmt.Fprintf(a.Out, "%s (%s, %s/%s)\n", line, v.Go, v.OS, v.Arch); err != nil {
				return fmt.Errorf("print the version: %w", err)
			}
			return nil
		},
	}
}
