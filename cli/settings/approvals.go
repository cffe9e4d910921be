package settings

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/money"
)

func (a *commands) approvalsCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "approvals",
		Short: "Try out what commands may run, and take over Roo's settings",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	var allow, deny []string
	test := &cobra.Command{
		Use:     "test [--allow WORDS]... [--deny WORDS]... -- COMMAND",
		Short:   "Show whether a command would be allowed, asked for or denied",
		Example: "  roost approvals test --allow \"git status\" -- \"git status && rm -rf x\"",
		Args:    failure.Arguments(1, 1, `roost approvals test --allow "git status" -- "git status -s"`),
		RunE: func(_ *cobra.Command, args []string) error {
			v := approval.Command(args[0], allow, deny)
			if a.Flags.JSON {
				return app.Encode(a.Out, v, false)
			}
			_, err := fmt.Fprintf(a.Out, "%s: %s\n", v.State, v.Reason)
			for _, p := range v.Parts {
				rule := ""
				if p.Rule != "" {
					rule = "  (" + p.Rule + ")"
				}
				if err == nil {
					_, err = fmt.Fprintf(a.Out, "  %-5s %s%s\n", p.State, p.Text, rule)
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
	var dry bool
	imports := &cobra.Command{
		Use:   "import [--dry-run] FILE",
		Short: "Take over the auto-approval of Roo's exported settings",
		Long: "Take over the auto-approval of Roo's exported settings into settings for new tasks.\n" +
			"Nothing becomes free that Roo would ask for. Settings that you have made already are left as they are.",
		Example: "  roost approvals import --dry-run ~/roo-code-settings.json",
		Args:    failure.Arguments(1, 1, "roost approvals import FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.importApprovals(a.Abs(args[0]), dry) },
	}
	imports.Flags().BoolVar(&dry, "dry-run", false, "show what would be set, and set nothing")
	parent.AddCommand(test, imports)
	return parent
}

// importApprovals takes over the settings in Roo's file that are not set here.
func (a *commands) importApprovals(file string, dry bool) error {
	data, err := inputfile.Read(file)
	var roo approval.Roo
	if err == nil {
		roo, err = approval.ReadRoo(data)
	}
	if err != nil {
		return failure.Usage("read Roo's settings "+file, err.Error(), "export them in Roo: Settings, About, Export")
	}
	s, err := a.Settings()
	if err != nil {
		return err
	}
	p := roo.Policy()
	requests, micros := roo.Limits()
	number, amount := []string{}, []string{}
	if requests > 0 {
		number = []string{strconv.Itoa(requests)}
	}
	if micros > 0 {
		amount = []string{money.USD(micros).String()}
	}
	for _, set := range []struct {
		key    string
		values []string
	}{
		{"approve", []string{p.Mode}}, {"allow", p.Allow}, {"deny", p.Deny}, {"allow_tools", p.AllowTools}, {"ask_tools", p.AskTools},
		{"ask_after_requests", number}, {"ask_after_cost", amount},
	} {
		line := set.key + " = " + strings.Join(set.values, ", ")
		switch {
		case len(set.values) == 0:
			continue
		case s.Values[set.key].Set():
			line = "# " + line + "   (left: " + s.Values[set.key].Origin + " says otherwise)"
		case !dry:
			if err := a.ConfigSet(set.key, set.values); err != nil {
				return err
			}
		}
		if err := a.Println(line); err != nil {
			return err
		}
	}
	return nil
}
