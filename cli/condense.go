package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/money"
)

func (a *App) condenseCommand() *cobra.Command {
	var r runFlags
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
		Args:              count(1, 1, "roost condense ID"),
		ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.address(); err != nil {
				return err
			}
			body := api.NewCondense{
				Keep:     keep,
				Provider: r.provider,
				Model:    a.modelName(r.provider, r.model),
				BaseURL:  r.baseURL,
				Profile:  r.profile,
				Origin:   "cli",
				DryRun:   dry,
			}
			if r.dir != "" {
				body.Workspace = a.abs(r.dir)
			}
			return a.condense(cmd.Context(), args[0], body)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&r.dir, "workspace", "C", "", "the `folder` of the task, when it has moved")
	f.StringVar(&keep, "keep", "", "what the summary is to look to, in your own `words`")
	f.BoolVar(&dry, "dry-run", false, "only show what would be summarised")
	f.StringVar(&r.provider, "provider", "", "the provider that writes the summary (default: the task's)")
	f.StringVar(&r.model, "model", "", "the model that writes the summary (default: the task's)")
	f.StringVar(&r.baseURL, "base-url", "", "the provider's address")
	f.StringVar(&r.profile, "profile", "", "provider and model of this `NAME` in the settings file")
	complete(cmd, "workspace", folders)
	complete(cmd, "keep", cobra.NoFileCompletions)
	complete(cmd, "provider", words(providers...))
	complete(cmd, "model", models)
	complete(cmd, "profile", a.profileNames)
	complete(cmd, "base-url", cobra.NoFileCompletions)
	return cmd
}

// costWords is an amount in a sentence.
func costWords(cost *money.USD) string {
	if cost == nil {
		return "an amount that is not known"
	}
	return "about " + dollars(cost)
}

func (a *App) condense(ctx context.Context, id string, body api.NewCondense) error {
	stop := a.stopper(ctx)
	defer stop.undo()
	err := a.connect(stop.ctx, func(c *client.Client) error {
		return posted(stop.ctx, a, c, id, "condense", body, a.printCondensed)
	})
	if err != nil && stop.exit() != 0 {
		return &Failure{Exit: stop.exit(), Code: "cancelled", Task: id, What: "condense task " + id,
			Why: "it was stopped; the histories are as before", Try: "the same command again"}
	}
	return err
}

// printCondensed prints what a summary replaces, or would replace.
func (a *App) printCondensed(out api.Condensed) error {
	if out.DryRun {
		return a.println(fmt.Sprintf("would condense %s: a summary for %d messages (%d are sent now), %d stay as they are; "+
			"the next request has about %d tokens, and to ask costs %s",
			out.Task, out.Messages, out.Sent, out.Kept, out.Before, costWords(out.Cost)))
	}
	if err := a.println(fmt.Sprintf("condensed %s: a summary stands for %d messages, %d stay as they are; "+
		"about %d tokens are %d now; it cost %s",
		out.Task, out.Messages, out.Kept, out.Before, out.After, costWords(out.Cost))); err != nil {
		return err
	}
	if a.flags.verbose {
		if err := a.println(display.Safe(out.Summary)); err != nil {
			return err
		}
	}
	a.say("  back: roost undo %s", shellWord(out.Task))
	return nil
}
