package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
)

func (a *commands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  failure.Arguments(0, 0, "roost version"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := api.VersionOf(app.Version)
			if a.Flags.JSON {
				return app.Encode(a.Out, v, false)
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
