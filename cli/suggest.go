package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// closestFlag is the flag that a mistyped name most likely means, "" when none is near.
func closestFlag(cmd *cobra.Command, name string) string {
	best, least := "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); d < least {
			best, least = f.Name, d
		}
	})
	return best
}

// distance is how many letters must be put in, taken out or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
