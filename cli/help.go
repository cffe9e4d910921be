package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/config"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine/setup"
)

// topics are the help texts that belong to no command.
var topics = map[string]func() string{
	"exit-codes":  exitCodesTopic,
	"environment": environmentTopic,
}

// helpCommand is cobra's, except that an unknown topic is an error and not the
// whole help with exit code 0.
func (a *commands) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Help about a command, or a topic: environment, exit-codes",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var out []string
			at, _, err := cmd.Root().Find(args)
			if err == nil {
				for _, c := range at.Commands() {
					if c.IsAvailableCommand() {
						out = append(out, c.Name()+"\t"+c.Short)
					}
				}
			}
			if len(args) == 0 {
				out = append(out, "environment", "exit-codes")
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && topics[args[0]] != nil {
				return a.Println(topics[args[0]]())
			}
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return failure.Usage("help about "+strings.Join(args, " "), "there is no such command or topic", "roost help")
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

func exitCodesTopic() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range failure.Codes {
		fmt.Fprintf(&b, "  %3d  %s\n", c.Code, c.Meaning)
	}
	return strings.TrimRight(b.String(), "\n")
}

func environmentTopic() string {
	var b strings.Builder
	b.WriteString("Variables override the settings file, and flags override both:\n")
	row := func(name, doc string) { fmt.Fprintf(&b, "  %-27s %s\n", name, doc) }
	row("ROOST_CONFIG", "the settings file")
	for _, k := range config.Keys {
		row(k.Env, k.Doc)
	}
	for _, p := range setup.Providers() {
		for _, name := range setup.KeyVariables(p) {
			if !slices.ContainsFunc(config.Keys, func(k config.Key) bool { return k.Env == name }) {
				row(name, "the key for "+p+", too")
			}
		}
	}
	row("NO_COLOR", "no colours")
	return strings.TrimRight(b.String(), "\n")
}
