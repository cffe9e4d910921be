package app

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/cli/failure"
)

// NextPage is the command line that continues where a page ended: the given one,
// with its flags, and the cursor.
func NextPage(cmd *cobra.Command, cursor string) string {
	line := []string{cmd.CommandPath()}
	words, dashed := make([]string, 0, 1), false
	for _, arg := range cmd.Flags().Args() {
		words = append(words, failure.ShellWord(arg))
		dashed = dashed || strings.HasPrefix(arg, "-")
	}
	if !dashed {
		line = append(line, words...)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "cursor":
		case f.NoOptDefVal == "":
			line = append(line, "--"+f.Name, failure.ShellWord(f.Value.String()))
		case f.Value.String() == f.NoOptDefVal:
			line = append(line, "--"+f.Name)
		default:
			line = append(line, "--"+f.Name+"="+failure.ShellWord(f.Value.String()))
		}
	})
	line = append(line, "--cursor", failure.ShellWord(cursor))
	if dashed { // else they would be read as flags
		line = append(append(line, "--"), words...)
	}
	return strings.Join(line, " ")
}
