package cli

import (
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func (a *App) forkCommand() *cobra.Command {
	o := api.NewFork{Origin: "cli"}
	var r runFlags
	cmd := &cobra.Command{
		Use:   "fork ID",
		Short: "Make a new task with the history of another one, up to a message",
		Long: "Make a new task with the history of another one. --at names the last message that it has:\n" +
			"#12 as roost show prints it, c3 (a checkpoint), or a ts; ~2 leaves out the last two turns.\n" +
			"--branch starts from a branch that was left (roost show ID --branches).\n\n" +
			"The new task shares the stored bytes with the other one, by links: either can be deleted.\n" +
			"What was spent before is the other task's. Workspace, mode, provider, model and base URL\n" +
			"are those of the other one unless they are given. roost resume continues it.",
		Example: "  roost fork 0199\n  roost fork 0199 --at '#12' --model claude-opus-4-1\n  roost fork 0199 --branch b41",
		Args:    count(1, 1, "roost fork ID"), ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.address(); err != nil {
				return err
			}
			if r.dir != "" {
				o.Workspace = a.abs(r.dir)
			}
			o.Mode, o.Provider, o.Model, o.BaseURL = r.mode, r.provider, a.modelName(r.provider, r.model), r.baseURL
			return a.connect(cmd.Context(), func(c *client.Client) error {
				return posted(cmd.Context(), a, c, args[0], "forks", o, a.tellFork)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.At, "at", "", "the last `MESSAGE` that it has: #12, a ts, or ~2 (turns)")
	fl.StringVar(&o.Branch, "branch", "", "the branch (`NAME`) that it starts from")
	fl.StringVar(&o.Title, "title", "", "its title (default: that of the other one)")
	fl.StringVarP(&r.dir, "workspace", "C", "", "its `folder`")
	fl.StringVar(&r.mode, "mode", "", "its mode")
	fl.StringVar(&r.provider, "provider", "", "the model's provider")
	fl.StringVar(&r.model, "model", "", "the model; for script: the file to play")
	fl.StringVar(&r.baseURL, "base-url", "", "the provider's address")
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show what it would have")
	complete(cmd, "workspace", folders)
	complete(cmd, "mode", a.modeNames)
	complete(cmd, "provider", words(providers...))
	complete(cmd, "model", models)
	for _, name := range []string{"at", "branch", "title", "base-url"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *App) tellFork(f api.ForkResult) error {
	line := display.OneLine(f.ID)
	if f.DryRun {
		line = "would fork " + display.OneLine(f.From.ID)
	}
	line += "  " + messagesText(f.Messages, 0)
	if f.Last != nil {
		line += ", up to " + rowText(*f.Last)
	}
	if err := a.println(line); err != nil {
		return err
	}
	if !f.DryRun {
		a.say("  go on with it: roost resume %s", shellWord(f.ID))
	}
	return nil
}
