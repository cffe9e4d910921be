package running

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

func (a *commands) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Stop what works on a task, wherever it runs",
		Long: "Stop the run that works on a task, or waits in a queue, in whichever process, with the\n" +
			"commands that it started. All is saved: roost resume ID continues. It returns when the run\n" +
			"has ended, and prints it.",
		Args: failure.Arguments(1, 1, "roost cancel ID"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
				return app.Exchange(cmd.Context(), a.App, c, client.Request{
					Method: http.MethodPost,
					Path:   app.PathOf(args[0], "cancel"),
				}, func(r api.Run) error {
					if err := a.Println(display.OneLine(r.Task + "  " + r.State)); err != nil {
						return err
					}
					a.Say("  go on with it: roost resume %s", failure.ShellWord(r.Task))
					return nil
				})
			})
		},
	}
}
