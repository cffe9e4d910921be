package editing

import (
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func (a *commands) forkCommand() *cobra.Command {
	o := api.NewFork{Origin: "cli"}
	var r app.RunFlags
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
		Args:    failure.Arguments(1, 1, "roost fork ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.Address(); err != nil {
				return err
			}
			if r.Dir != "" {
				o.Workspace = a.Abs(r.Dir)
			}
			o.Mode, o.Provider, o.Model, o.BaseURL = r.Mode, r.Provider, a.ModelName(r.Provider, r.Model), r.BaseURL
			return a.Connect(cmd.Context(), func(c *client.Client) error {
				return posted(cmd.Context(), a, c, args[0], "forks", o, a.tellFork)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.At, "at", "", "the last `MESSAGE` that it has: #12, a ts, or ~2 (turns)")
	fl.StringVar(&o.Branch, "branch", "", "the branch (`NAME`) that it starts from")
	fl.StringVar(&o.Title, "title", "", "its title (default: that of the other one)")
	fl.StringVarP(&r.Dir, "workspace", "C", "", "its `folder`")
	fl.StringVar(&r.Mode, "mode", "", "its mode")
	fl.StringVar(&r.Provider, "provider", "", "the model's provider")
	fl.StringVar(&r.Model, "model", "", "the model; for script: the file to play")
	fl.StringVar(&r.BaseURL, "base-url", "", "the provider's address")
	fl.BoolVar(&o.DryRun, "dry-run", false, "only show what it would have")
	app.Complete(cmd, "workspace", app.Folders)
	app.Complete(cmd, "mode", a.ModeNames)
	app.Complete(cmd, "provider", app.Words(app.Providers...))
	app.Complete(cmd, "model", app.Models)
	for _, name := range []string{"at", "branch", "title", "base-url"} {
		app.Complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *commands) tellFork(f api.ForkResult) error {
	line := display.OneLine(f.ID)
	if f.DryRun {
		line = "would fork " + display.OneLine(f.From.ID)
	}
	line += "  " + app.MessagesText(f.Messages, 0)
	if f.Last != nil {
		line += ", up to " + app.RowText(*f.Last)
	}
	if err := a.Println(line); err != nil {
		return err
	}
	if !f.DryRun {
		a.Say("  go on with it: roost resume %s", failure.ShellWord(f.ID))
	}
	return nil
}
