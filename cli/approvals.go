package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/approval"
)

func (a *App) approvalsCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "approvals",
		Short: "Try out what commands may run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	var allow, deny []string
	test := &cobra.Command{
		Use:     "test [--allow WORDS]... [--deny WORDS]... -- COMMAND",
		Short:   "Say whether a command would be allowed, asked for or denied",
		Example: "  roost approvals test --allow \"git status\" -- \"git status && rm -rf x\"",
		Args:    count(1, 1, `roost approvals test --allow "git status" -- "git status -s"`),
		RunE: func(_ *cobra.Command, args []string) error {
			v := approval.Command(args[0], allow, deny)
			if a.flags.json {
				return encode(a.Out, v, false)
			}
			_, err := fmt.Fprintf(a.Out, "%s: %s\n", v.Decision, v.Reason)
			for _, p := range v.Parts {
				rule := ""
				if p.Rule != "" {
					rule = "  (" + p.Rule + ")"
				}
				if err == nil {
					_, err = fmt.Fprintf(a.Out, "  %-5s %s%s\n", p.Decision, p.Command, rule)
				}
			}
			if err != nil {
				return fmt.Errorf("print the decision: %w", err)
			}
			return nil
		},
	}
	test.Flags().StringArrayVar(&allow, "allow", nil, "allow commands that begin with `WORDS`")
	test.Flags().StringArrayVar(&deny, "deny", nil, "deny commands that begin with `WORDS`")
	parent.AddCommand(test)
	return parent
}
