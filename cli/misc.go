package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/approval"
)

// Version is set when a release is built; otherwise the build information tells.
var Version = ""

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  count(0, 0, "roost version"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version  string `json:"version"`
				Commit   string `json:"commit"`
				Date     string `json:"build_date"`
				Modified bool   `json:"modified"`
				Go       string `json:"go"`
				OS       string `json:"os"`
				Arch     string `json:"arch"`
			}{Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				if v.Version == "" {
					v.Version = info.Main.Version
				}
				for _, s := range info.Settings {
					switch s.Key {
					case "vcs.revision":
						v.Commit = s.Value
					case "vcs.time":
						v.Date = s.Value
					case "vcs.modified":
						v.Modified = s.Value == "true"
					}
				}
			}
			if v.Version == "" || v.Version == "(devel)" {
				v.Version = "dev"
			}
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

func (a *App) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print a completion script for a shell",
		Example:   "  source <(roost completion bash)\n  roost completion fish > ~/.config/fish/completions/roost.fish",
		Args:      count(1, 1, "roost completion bash"),
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
				return usage("roost completion "+args[0], "there is no script for that shell", "roost completion bash|zsh|fish|powershell")
			}
			if err != nil {
				return fmt.Errorf("print the completion script: %w", err)
			}
			return nil
		},
	}
}

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
