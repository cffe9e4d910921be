package cli

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

func (a *App) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Stop what works on a task, wherever it runs",
		Long: "Stop the run that works on a task, or waits in a queue, in whichever process, with the\n" +
			"commands that it started. All is saved: roost resume ID continues. It returns when the run\n" +
			"has ended, and prints it.",
		Args: count(1, 1, "roost cancel ID"), ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
				return exchange(cmd.Context(), a, c, client.Request{
					Method: http.MethodPost,
					Path:   pathOf(args[0], "cancel"),
				}, func(r api.Run) error {
					if err := a.println(display.OneLine(r.Task + "  " + r.State)); err != nil {
						return err
					}
					a.say("  go on with it: roost resume %s", shellWord(r.Task))
					return nil
				})
			})
		},
	}
}
