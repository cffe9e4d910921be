package running

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

type answerFlags struct {
	yes, no, always bool
	choice          int
}

func (a *commands) answerCommand() *cobra.Command {
	var f answerFlags
	cmd := help.Command("answer", func(cmd *cobra.Command, args []string) error {
		if err := failure.OneOf(cmd, "yes", "no", "choice"); err != nil {
			return err
		}
		text, err := a.Prompt(args[1:])
		if err != nil {
			return err
		}
		answer, err := f.answer(text)
		if err != nil {
			return err
		}
		return a.WithClient(cmd.Context(), func(c *client.Client, e *engine.Engine) error {
			return a.answer(cmd.Context(), c, e, args[0], answer)
		})
	})
	fl := cmd.Flags()
	fl.BoolVarP(&f.yes, "yes", "y", false, "approve it")
	fl.BoolVar(&f.no, "no", false, "do not approve it")
	fl.BoolVar(&f.always, "always", false, "with --yes: and allow this tool or command for the rest of the task")
	fl.IntVar(&f.choice, "choice", 0, "the suggestion with this `NUMBER`")
	return cmd
}

// answer is the answer that flags and words give.
func (f answerFlags) answer(text string) (api.Answer, error) {
	out := api.Answer{Text: text, Always: f.always}
	switch {
	case f.yes, f.no:
		out.Approve = new(f.yes)
	case f.choice != 0:
		if f.choice < 0 || text != "" {
			return out, failure.Usage("roost answer --choice", "it takes the number of one suggestion, and no other words",
				"roost answer ID --choice 1")
		}
		out.Choice = new(json.RawMessage(strconv.Itoa(f.choice)))
	case strings.TrimSpace(text) == "":
		return out, failure.Usage("roost answer", "no answer was given", "roost answer ID --yes  # or --no, --choice N, or words")
	}
	if f.always && !f.yes {
		return out, failure.Usage("roost answer --always", "the flag needs --yes", "roost answer ID --yes --always")
	}
	return out, nil
}

func (a *commands) answer(ctx context.Context, c *client.Client, e *engine.Engine, id string, answer api.Answer) error {
	q, err := a.questionOf(ctx, c, id)
	if err != nil {
		return err
	}
	if err := suits(q, answer); err != nil {
		return err
	}
	from, err := c.Mark(ctx, q.Task)
	if err != nil {
		return err
	}
	if answer.Approve == nil && answer.Choice == nil && consent(q) {
		if yes, plain := consents[strings.ToLower(strings.TrimSpace(answer.Text))]; plain {
			answer.Approve, answer.Text = new(yes), ""
		}
	}
	r := client.Request{Method: http.MethodPost, Path: "/v1/questions/" + url.PathEscape(q.ID) + "/answer", Body: answer}
	var done api.Answered
	if err := a.askAndPrint(ctx, c, r, &done); err != nil {
		return err
	}
	if a.FirstRun() != nil {
		return a.followFirst(ctx, c, e, from)
	}
	if !a.Flags.JSON {
		a.Say("task %s continues with it; follow it: roost attach %s", done.Task, failure.ShellWord(done.Task))
	}
	return nil
}

// consent reports whether a yes or a no answers a question.
func consent(q api.Question) bool {
	return q.Kind == "approval" || q.Kind == "limit" || q.Kind == "damage"
}

// answering is how a question can be answered on a command line.
func answering(q api.Question) string {
	line := "roost answer " + failure.ShellWord(q.ID)
	switch {
	case consent(q):
		return line + " --yes  # or --no, with words for the model"
	case len(q.Choices) > 0:
		return line + " --choice 1  # or \"your words\""
	}
	return line + " \"your words\""
}

// suits refuses an answer that does not fit the kind of the question.
func suits(q api.Question, n api.Answer) error {
	refuse := func(why string) error {
		f := failure.Usage("answer question "+q.ID, why, answering(q))
		f.Code, f.Status, f.Task = "not_an_answer", http.StatusUnprocessableEntity, q.Task
		return f
	}
	_, plain := consents[strings.ToLower(strings.TrimSpace(n.Text))]
	switch {
	case consent(q) && n.Approve == nil && !plain:
		return refuse("it wants a yes or a no: " + q.Text)
	case q.Kind == "followup" && n.Approve != nil:
		return refuse("it wants words, and not a yes or a no: " + q.Text)
	case n.Choice != nil && q.Kind == "followup":
		var number int
		if json.Unmarshal(*n.Choice, &number) == nil && number > len(q.Choices) {
			return refuse("it has " + strconv.Itoa(len(q.Choices)) + " choices: " + strings.Join(q.Choices, " | "))
		}
	}
	return nil
}

// askedOf is what a waiting run asks, and how that is answered.
func (a *commands) askedOf(ctx context.Context, c *client.Client, r api.Run) (text, try string) {
	open, err := c.Questions(ctx, r.Task)
	if err == nil {
		for _, q := range open {
			if q.ID == r.Question {
				return q.Text, answering(q)
			}
		}
	}
	return "it asks something", "roost questions " + failure.ShellWord(r.Task)
}

// consents are the words that are a plain yes or no.
var consents = map[string]bool{"yes": true, "y": true, "no": false, "n": false}

// askAndPrint makes a request, decodes the answer, and prints it with --json.
func (a *commands) askAndPrint(ctx context.Context, c *client.Client, r client.Request, into any) error {
	var doc json.RawMessage
	if _, err := c.Ask(ctx, r, &doc); err != nil {
		return err
	}
	if a.Flags.JSON {
		if err := a.PrintRaw(doc); err != nil {
			return err
		}
	}
	return json.Unmarshal(doc, into)
}

// questionOf is the question that an id names: its own, or that of a task with one open
// question.
func (a *commands) questionOf(ctx context.Context, c *client.Client, id string) (api.Question, error) {
	if at := strings.LastIndexByte(id, '.'); at > 0 {
		open, err := c.Questions(ctx, id[:at])
		var p *client.Problem
		if err != nil && !errors.As(err, &p) {
			return api.Question{}, err
		}
		for _, q := range open {
			if q.ID == id || q.Question == id[at+1:] {
				return q, nil
			}
		}
		if err == nil { // that task is there, and the question is not: the server knows why
			return api.Question{ID: id, Task: id[:at]}, nil
		}
	}
	open, err := c.Questions(ctx, id)
	if err != nil {
		return api.Question{}, err
	}
	switch len(open) {
	case 1:
		return open[0], nil
	case 0:
		return api.Question{}, failure.New(failure.ExitNotFound, "question_not_found", "answer task "+id,
			"it has no open question", "roost questions").OfTask(id)
	}
	f := failure.New(failure.ExitUsage, "ambiguous_question", "answer task "+id,
		"it has "+strconv.Itoa(len(open))+" open questions: name the one that is meant", "").OfTask(id)
	f.Status = http.StatusConflict
	for _, q := range open {
		f.Suggestions = append(f.Suggestions, "roost answer "+failure.ShellWord(q.ID)+"  # "+display.Cut(display.OneLine(q.Text), 60))
	}
	f.Try = f.Suggestions[0]
	return api.Question{}, f
}

func (a *commands) sendCommand() *cobra.Command {
	var queue, interrupt bool
	var images []string
	cmd := help.Command("send", func(cmd *cobra.Command, args []string) error {
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
	})
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
	var sent api.Sent
	if err := a.askAndPrint(ctx, c, client.Request{Method: http.MethodPost, Path: app.PathOf(id, "messages"), Body: m}, &sent); err != nil {
		return err
	}
	if a.FirstRun() != nil {
		return a.followFirst(ctx, c, e, from)
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
