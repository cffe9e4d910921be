package tasks

import (
	"bufio"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/view"
)

func (a *commands) questionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "questions [ID]",
		Short: "List the open questions and approvals of all tasks, or of one",
		Long: "List what tasks that Roost runs ask, the oldest first: questions of the model, and\n" +
			"what is to be approved, whether a run waits for the answer now or was let go long ago.\n" +
			"roost answer answers one. What a task of another tool asked last is none of these.",
		Example: "  roost questions\n  roost answer 0199 --yes",
		Args:    failure.Arguments(0, 1, "roost questions"), ValidArgsFunction: app.First(a.TaskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			if len(args) > 0 {
				query.Set("task", args[0])
			}
			return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error {
				return app.DocumentOf(cmd.Context(), a.App, c, "/v1/questions", query, a.showQuestions)
			})
		},
	}
}

func (a *commands) showQuestions(p api.Page[api.Question]) error {
	out := bufio.NewWriter(a.Out)
	for i, q := range p.Items {
		if i > 0 {
			fmt.Fprintln(out)
		}
		a.question(out, q)
	}
	if err := app.Flushed(out); err != nil {
		return err
	}
	if len(p.Items) == 0 {
		a.Say("no task asks anything")
	} else {
		a.Say("%d open question%s; answer one: roost answer ID --yes, --no, --choice N or \"words\"", len(p.Items), app.Plural(len(p.Items)))
	}
	return nil
}

// question prints one question whole: it is what the user agrees to.
func (a *commands) question(out *bufio.Writer, q api.Question) {
	style := a.OutStyle()
	line := func(s view.Style, text string) { fmt.Fprintln(out, style.Paint(s, text)) }
	title := display.Cut(display.OneLine(q.Title), 60)
	line(view.Head, display.OneLine(q.ID)+"  "+a.Age(app.MomentOf(&q.At))+"  "+display.OneLine(q.Kind)+"  "+title)
	for _, text := range app.Wrap(display.Safe(q.Text), a.Columns()) {
		line(view.Asked, "  "+text)
	}
	for i, c := range q.Choices {
		line(view.Asked, fmt.Sprintf("  %d. %s%s", i+1, display.OneLine(c), display.InMode(q.QuestionOpened, i)))
	}
	if q.Always != "" {
		line(view.Dim, "  --always allows "+display.OneLine(q.Always))
	}
	if q.Diff != "" && a.Flags.Verbose {
		for _, text := range app.Wrap(display.Safe(q.Diff), 0) {
			line(view.DiffStyle(text), "  "+text)
		}
	} else if q.Diff != "" {
		line(view.Dim, "  it comes with a diff: roost questions -v "+failure.ShellWord(q.Task))
	}
}
