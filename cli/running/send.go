package running

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

func (a *commands) sendCommand() *cobra.Command {
	var queue, interrupt bool
	var images []string
	cmd := &cobra.Command{
		Use:   "send ID TEXT|-",
		Short: "Send words to a task, whether it works, waits or has ended",
		Long: "Give words to a task. They answer its open question; while it is at work they are queued,\n" +
			"and the model gets them with its next turn; else they start a run. They are saved when\n" +
			"the command reports it. --queue never answers a question, --interrupt stops the work first.\n\n" +
			"A run that begins with them, because no process works on the task, begins in this one,\n" +
			"which follows it as roost resume does; a server runs it itself.\n\n" +
			"--json: {delivered: answered|queued|started, task_id, run_id, question, input}, and then the\n" +
			"events of a run that begins here.",
		Example: "  roost send 0199 \"and add a test\"\n  git diff | roost send 0199 -",
		Args:    failure.Arguments(1, -1, `roost send ID "words"`), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := failure.OneOf(cmd, "queue", "interrupt"); err != nil {
				return err
			}
			m := api.Message{}
			switch {
			case queue:
				m.Delivery = "queue"
			case interrupt:
				m.Delivery = "interrupt"
			}
			var err error
			if m.Text, err = a.Prompt(args[1:]); err != nil {
				return err
			}
			for _, name := range images {
				url, err := app.Image(a.Abs(name))
				if err != nil {
					return err
				}
				m.Images = append(m.Images, url)
			}
			if m.Text == "" && len(m.Images) == 0 {
				return failure.Usage("roost send", "no words were given", `roost send ID "words"`)
			}
			return a.WithClient(cmd.Context(), func(c *client.Client, e *engine.Engine) error {
				return a.send(cmd.Context(), c, e, args[0], m)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&queue, "queue", false, "queue it, also when a question is open")
	fl.BoolVar(&interrupt, "interrupt", false, "stop what is being done, and go on with this")
	fl.StringArrayVar(&images, "image", nil, "an image `file` to send along (again for more)")
	return cmd
}

func (a *commands) send(ctx context.Context, c *client.Client, e *engine.Engine, id string, m api.Message) error {
	from, err := c.Mark(ctx, id)
	if err != nil {
		return err
	}
	var above []waiting
	if e != nil {
		above = a.above(ctx, c, id)
	}
	var sent api.Sent
	if err := a.askAndPrint(ctx, c, client.Request{Method: http.MethodPost, Path: app.PathOf(id, "messages"), Body: m}, &sent); err != nil {
		return err
	}
	if runsHere(e) {
		return a.watchHere(ctx, c, e, watched{task: sent.Task, run: sent.Run, after: from, ask: a.Interactive()}, above)
	}
	if a.Flags.JSON {
		return nil
	}
	how := map[string]string{
		"answered": "answered the open question of",
		"queued":   "queued for",
		"started":  "started a run of",
	}[sent.Delivered]
	if how == "" {
		how = display.OneLine(sent.Delivered)
	}
	if err := a.Println(how + " " + display.OneLine(sent.Task)); err != nil {
		return err
	}
	a.Say("  follow it: roost attach %s", failure.ShellWord(sent.Task))
	return nil
}
