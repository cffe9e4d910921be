package editing

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/money"
)

func (a *commands) condenseCommand() *cobra.Command {
	var r app.RunFlags
	var keep string
	var dry bool
	cmd := &cobra.Command{
		Use:   "condense ID",
		Short: "Have older history of a task summarised",
		Long: "Have the task's model summarise the older part of its history. From then on the model\n" +
			"is sent the summary and the newest messages. Nothing is removed: the messages stay in\n" +
			"the task, and roost undo ID sends them again.\n\n" +
			"Slash commands that the task began with stay word for word, and of files that the model\n" +
			"has read, the lines that declare something. The task keeps its own model: --provider\n" +
			"and --model name another one for the summary alone.\n\n" +
			"A run does the same by itself when the next request would not fit, or at the part of\n" +
			"the model's window that the setting condense_at names (percent, or never).",
		Example: "  roost condense 0199\n  roost condense 0199 --keep \"the table of test results\"\n" +
			"  roost condense 0199 --dry-run",
		Args:              failure.Arguments(1, 1, "roost condense ID"),
		ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.Address(); err != nil {
				return err
			}
			body := api.NewCondense{
				Keep:     keep,
				Provider: r.Provider,
				Model:    a.ModelName(r.Provider, r.Model),
				BaseURL:  r.BaseURL,
				Profile:  r.Profile,
				Origin:   "cli",
				DryRun:   dry,
			}
			if r.Dir != "" {
				body.Workspace = a.Abs(r.Dir)
			}
			return a.condense(cmd.Context(), args[0], body)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&r.Dir, "workspace", "C", "", "the `folder` of the task, when it has moved")
	f.StringVar(&keep, "keep", "", "what the summary is to look to, in your own `words`")
	f.BoolVar(&dry, "dry-run", false, "only show what would be summarised")
	f.StringVar(&r.Provider, "provider", "", "the provider that writes the summary (default: the task's)")
	f.StringVar(&r.Model, "model", "", "the model that writes the summary (default: the task's)")
	f.StringVar(&r.BaseURL, "base-url", "", "the provider's address")
	f.StringVar(&r.Profile, "profile", "", "provider and model of this `NAME` in the settings file")
	app.Complete(cmd, "workspace", app.Folders)
	app.Complete(cmd, "keep", cobra.NoFileCompletions)
	app.Complete(cmd, "provider", app.Words(app.Providers...))
	app.Complete(cmd, "model", app.Models)
	app.Complete(cmd, "profile", a.ProfileNames)
	app.Complete(cmd, "base-url", cobra.NoFileCompletions)
	return cmd
}

// costWords is an amount in a sentence.
func costWords(cost *money.USD) string {
	if cost == nil {
		return "an amount that is not known"
	}
	return "about " + app.Dollars(cost)
}

func (a *commands) condense(ctx context.Context, id string, body api.NewCondense) error {
	stop := a.Stopper(ctx)
	defer stop.Undo()
	err := a.Connect(stop.Ctx, func(c *client.Client) error {
		return posted(stop.Ctx, a, c, id, "condense", body, a.printCondensed)
	})
	if err != nil && stop.Exit() != 0 {
		return &failure.Failure{Exit: stop.Exit(), Code: "cancelled", Task: id, What: "condense task " + id,
			Why: "it was stopped; the histories are as before", Try: "the same command again"}
	}
	return err
}

// printCondensed prints what a summary replaces, or would replace.
func (a *commands) printCondensed(out api.Condensed) error {
	if out.DryRun {
		return a.Println(fmt.Sprintf("would condense %s: a summary for %d messages (%d are sent now), %d stay as they are; "+
			"the next request has about %d tokens, and to ask costs %s",
			out.Task, out.Messages, out.Sent, out.Kept, out.Before, costWords(out.Cost)))
	}
	if err := a.Println(fmt.Sprintf("condensed %s: a summary stands for %d messages, %d stay as they are; "+
		"about %d tokens are %d now; it cost %s",
		out.Task, out.Messages, out.Kept, out.Before, out.After, costWords(out.Cost))); err != nil {
		return err
	}
	if a.Flags.Verbose {
		if err := a.Println(display.Safe(out.Summary)); err != nil {
			return err
		}
	}
	a.Say("  back: roost undo %s", failure.ShellWord(out.Task))
	return nil
}
