package failure

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/cli/config"
)

// closestFlag is the flag that a mistyped name most likely means, "" when none is near.
func closestFlag(cmd *cobra.Command, name string) string {
	best, least := "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := config.Distance(name, f.Name); d < least && 2*d < len(name) {
			best, least = f.Name, d
		}
	})
	return best
}
