// Package running holds the commands that start, continue, follow, answer, stop and await runs, and the chat. The end of
// a follower never ends a run of another process. Without a terminal the commands ask nothing; the exit code reports an
// open question.
package running

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
)

// Parts are functions of other packages of the command line that runs need.
type Parts struct {
	// Pick lets a person choose a task, and perhaps the folder to work in.
	Pick func(ctx context.Context, a *app.App, purpose string) (id, folder string, err error)
	Run  func(ctx context.Context, a *app.App, args []string) (exit int) // a whole command line
}

// commands are the commands of this package with the invocation that they belong to.
type commands struct {
	*app.App
	parts    Parts
	document bool // --output json
}

// Commands returns the commands of this package.
func Commands(app *app.App, parts Parts) []*cobra.Command {
	a := &commands{App: app, parts: parts}
	return []*cobra.Command{
		a.runCommand(),
		a.resumeCommand(),
		a.continueCommand(),
		a.answerCommand(),
		a.attachCommand(),
		a.sendCommand(),
		a.cancelCommand(),
		a.waitCommand(),
		a.chatCommand(),
	}
}

// Attach follows the present run of a task, over the connection c. ask allows questions to the user.
func Attach(ctx context.Context, a *app.App, c *client.Client, id string, ask bool) error {
	return (&commands{App: a}).attach(ctx, c, id, ask)
}

func (a *commands) attachCommand() *cobra.Command {
	var readOnly bool
	cmd := help.Command("attach", a.ConnectedEngine(func(ctx context.Context, c *client.Client, args []string) error {
		return a.attach(ctx, c, args[0], a.Interactive() && !readOnly)
	}))
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "answer nothing")
	return cmd
}

// attach follows the newest run of a task.
func (a *commands) attach(ctx context.Context, c *client.Client, id string, ask bool) error {
	r, err := newestRun(ctx, c, id)
	if err != nil {
		return err
	}
	switch r.State {
	case "queued", "running", "waiting":
	default:
		a.Say("nothing works on task %s now: its newest run is %s; go on with it: roost resume %s", r.Task, outcomeOf(r).State,
			api.ShellWord(r.Task))
		return nil
	}
	return a.watchOn(ctx, c, fromStart(r, ask, false))
}

func (a *commands) cancelCommand() *cobra.Command {
	return help.Command("cancel", a.ConnectedEngine(func(ctx context.Context, c *client.Client, args []string) error {
		r := client.Request{Method: http.MethodPost, Path: app.PathOf(args[0], "cancel")}
		return app.Exchange(ctx, a.App, c, r, func(r api.Run) {
			a.Println(display.OneLine(r.Task + "  " + r.State))
			a.Say("  go on with it: roost resume %s", api.ShellWord(r.Task))
		})
	}))
}

func (a *commands) waitCommand() *cobra.Command {
	var most time.Duration
	cmd := help.Command("wait", a.ConnectedEngine(func(ctx context.Context, c *client.Client, args []string) error {
		return a.wait(ctx, c, args, most)
	}))
	app.Span(cmd.Flags(), "timeout", "wait no longer than this (0 = as long as it takes)", func(d time.Duration) { most = d })
	return cmd
}

func (a *commands) wait(ctx context.Context, c *client.Client, ids []string, most time.Duration) error {
	stop := a.StopperWith(ctx, func() {})
	defer stop.Undo()
	ctx = stop.Ctx
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	runs := []api.Run{} // find all before waiting for the first
	for _, id := range ids {
		r, err := newestRun(ctx, c, id)
		if err != nil {
			return a.waitFailure(ctx, stop, id, err)
		}
		runs = append(runs, r)
	}
	var failed *failure.Failure
	for i, r := range runs {
		r, err := a.awaitEnd(ctx, c, r)
		if err != nil {
			return a.waitFailure(ctx, stop, r.Task, err)
		}
		runs[i] = r
		if !a.Flags.JSON {
			if err := a.Println(display.OneLine(r.Task + "  " + outcomeOf(r).State)); err != nil {
				return err
			}
		}
		if f := failure.OfOutcome(r.Task, outcomeOf(r), 0); failed == nil && f != nil {
			failed = f
			if r.Question != "" {
				f.Why, f.Try = a.askedOf(ctx, c, r)
			}
		}
	}
	if a.Flags.JSON {
		if err := a.Items(runs); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	return nil
}

// awaitEnd waits until a run has ended. If the run's server died, awaitEnd waits for the end of the run that continues the
// task.
func (a *commands) awaitEnd(ctx context.Context, c *client.Client, r api.Run) (api.Run, error) {
	unanswered, lost := 0, time.Time{}
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		if lost.IsZero() && justLost(r) {
			lost = time.Now()
		}
		begun := time.Now()
		switch {
		case r.State == "queued", r.State == "running", r.State == "waiting" && r.Here && r.Question == "":
			next, err := c.Await(ctx, r.ID, 20*time.Second)
			if err != nil {
				return r, err
			}
			if r = next; r.Silent == "" {
				unanswered = 0
			} else if unanswered++; unanswered == mostUnanswered {
				return r, silentOwner("wait for task "+r.Task, r.Task, r.Silent)
			}
		case r.State == "interrupted" && !lost.IsZero() && begun.Sub(lost) < takenOverWithin:
			next, err := newestRun(ctx, c, r.Task)
			if err != nil {
				return r, err
			}
			if next.ID != r.ID {
				lost = time.Time{}
			}
			r = next
		default:
			return r, nil
		}
		if time.Since(begun) < wait { // the server did not hold the request
			if err := client.Sleep(ctx, wait); err != nil {
				return r, err
			}
		}
	}
}

// justLost reports whether a run's server died so recently that another server may be about to continue its task.
// That server first records the end of the lost run, and then starts a new one.
func justLost(r api.Run) bool {
	if !r.Lost || r.EndedAt == nil {
		return r.Lost
	}
	ended, err := time.Parse(time.RFC3339, *r.EndedAt)
	return err == nil && time.Since(ended) < takenOverWithin
}

// takenOverWithin limits how long roost wait waits for another server to continue a task whose server died: the lease
// lasts for 3 s, and a server that first lacked the workspace tries again after 10 s.
const takenOverWithin = 15 * time.Second

// waitFailure returns why waiting ended before the run did.
func (a *commands) waitFailure(ctx context.Context, stop *app.Stopper, id string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failure.New(failure.ExitTimeout, "timeout", "wait for task "+id,
			"it did not end within the given time", "roost attach "+api.ShellWord(id)).OfTask(id)
	case stop.Exit() != 0:
		return failure.New(stop.Exit(), "cancelled", "wait for task "+id,
			"waiting was interrupted; the task still runs in its own process",
			"roost wait "+api.ShellWord(id)).OfTask(id)
	}
	return err
}

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

// answer makes the answer from flags and words.
func (f answerFlags) answer(text string) (api.Answer, error) {
	out := api.Answer{Text: text, Always: f.always}
	switch {
	case f.yes, f.no:
		out.Approve = new(f.yes)
	case f.choice != 0:
		if f.choice < 0 || text != "" {
			return out, failure.Usage("roost answer --choice", "--choice takes the number of one suggestion, and excludes words",
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
	if answer.Approve == nil && answer.Choice == nil && consent(q) {
		if yes, plain := consents[strings.ToLower(strings.TrimSpace(answer.Text))]; plain {
			answer.Approve, answer.Text = new(yes), ""
		}
	}
	if err := suits(q, answer); err != nil {
		return err
	}
	r := client.Request{Method: http.MethodPost, Path: "/v1/questions/" + url.PathEscape(q.ID) + "/answer", Body: answer}
	return give(ctx, a, c, e, q.Task, r, func(done api.Answered) {
		a.Say("task %s continues with it; follow it: roost attach %s", done.Task, api.ShellWord(done.Task))
	})
}

// consent reports whether a question wants a yes or a no.
func consent(q api.Question) bool { return display.Choices(q.QuestionOpened) != nil }

// answering describes how to answer a question on a command line.
func answering(q api.Question) string {
	line := "roost answer " + api.ShellWord(q.ID)
	switch {
	case consent(q):
		return line + " --yes  # or --no, with words for the model"
	case len(q.Choices) > 0:
		return line + " --choice 1  # or \"your words\""
	}
	return line + " \"your words\""
}

// suits refuses an answer that does not fit the kind of the question; a plain yes or no in words is an approval already.
func suits(q api.Question, n api.Answer) error {
	refuse := func(why string) error {
		f := failure.Usage("answer question "+q.ID, why, answering(q))
		f.Code, f.Status, f.Task = "not_an_answer", http.StatusUnprocessableEntity, q.Task
		return f
	}
	switch {
	case consent(q) && n.Approve == nil:
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

// askedOf returns what a waiting run asks, and how to answer it.
func (a *commands) askedOf(ctx context.Context, c *client.Client, r api.Run) (text, try string) {
	if q, err := c.Question(ctx, r.Question); err == nil {
		return q.Text, answering(q)
	}
	return "the run asks a question", "roost questions " + api.ShellWord(r.Task)
}

// consents maps words to the plain yes or no that they mean.
var consents = map[string]bool{"yes": true, "y": true, "no": false, "n": false}

// give makes a request that gives a task words or an answer, and follows the run that begins with it in this process. If
// none begins here, it shows what the server answered: by show, or with --json as it is.
func give[T any](ctx context.Context, a *commands, c *client.Client, e *engine.Engine, task string, r client.Request,
	show func(T)) error {
	from, err := c.Mark(ctx, task)
	if err != nil {
		return err
	}
	done, doc, err := app.Asked[T](ctx, c, r)
	if err == nil && a.Flags.JSON {
		err = a.PrintRaw(doc)
	}
	switch {
	case err != nil:
		return err
	case a.FirstRun() != nil:
		return a.followFirst(ctx, c, e, from)
	case !a.Flags.JSON:
		show(done)
	}
	return nil
}

// questionOf finds the question that an id names: by the question's id, or by that of a task with one open question.
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
		if err == nil { // the task exists and the question does not: the server's answer gives the reason
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
		return api.Question{}, failure.NotFound("question_not_found", "answer task "+id,
			"it has no open question", "roost questions").OfTask(id)
	}
	f := failure.New(failure.ExitUsage, "ambiguous_question", "answer task "+id,
		"it has "+strconv.Itoa(len(open))+" open questions: name the one that is meant", "").OfTask(id)
	f.Status = http.StatusConflict
	for _, q := range open {
		f.Suggestions = append(f.Suggestions, "roost answer "+api.ShellWord(q.ID)+"  # "+display.Cut(display.OneLine(q.Text), 60))
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
		if m.Images, err = a.Images(images); err != nil {
			return err
		}
		if m.Text == "" && len(m.Images) == 0 {
			return failure.Usage("roost send", "no words were given", `roost send ID "words"`)
		}
		return a.WithClient(cmd.Context(), func(c *client.Client, e *engine.Engine) error {
			return a.send(cmd.Context(), c, e, args[0], m)
		})
	})
	fl := cmd.Flags()
	fl.BoolVar(&queue, "queue", false, "queue the words, also when a question is open")
	fl.BoolVar(&interrupt, "interrupt", false, "stop the current work, and continue with these words")
	fl.StringArrayVar(&images, "image", nil, "an image `file` to send along (again for more)")
	return cmd
}

func (a *commands) send(ctx context.Context, c *client.Client, e *engine.Engine, id string, m api.Message) error {
	r := client.Request{Method: http.MethodPost, Path: app.PathOf(id, "messages"), Body: m}
	return give(ctx, a, c, e, id, r, func(sent api.Sent) {
		how := map[string]string{
			"answered": "answered the open question of",
			"queued":   "queued for",
			"started":  "started a run of",
		}[sent.Delivered]
		a.Println(cmp.Or(how, display.OneLine(sent.Delivered)) + " " + display.OneLine(sent.Task))
		a.Say("  follow it: roost attach %s", api.ShellWord(sent.Task))
	})
}
