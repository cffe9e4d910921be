package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/failure"
)

func (a *commands) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print a completion script for a shell",
		Example:   "  source <(roost completion bash)\n  roost completion fish > ~/.config/fish/completions/roost.fish",
		Args:      failure.Arguments(1, 1, "roost completion bash"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			switch root := cmd.Root(); args[0] {
			case "bash":
				err = root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				err = root.GenZshCompletion(a.Out)
			case "fish":
				err = root.GenFishCompletion(a.Out, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(a.Out)
			default:
				return failure.Usage("roost completion "+args[0], "there is no script for that shell", "roost completion bash|zsh|fish|powershell")
			}
			if err != nil {
				return fmt.Errorf("print the completion script: %w", err)
			}
			return nil
		},
	}
}
