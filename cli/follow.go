package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// follower shows one run and answers its questions.
type follower struct {
	a        *App
	of       string // the task
	run      *engine.Run
	d        *display.Display
	prompter *display.Prompter
	asked    task.QuestionOpened // the newest question
	out      error               // why stdout could not be written
	stop     *stopper
	screens  map[string]*display.Display // of the subtasks
	named    map[string]bool             // subtasks whose start was shown
	last     *display.Display            // that showed something
	titles   map[string]string           // of subtasks
	heard    heard
	answers  answers
	left     atomic.Pointer[engine.Run] // a subtask that goes on although its parent was stopped
}

func (a *App) follower(run *engine.Run, req engine.Request, stop *stopper) *follower {
	f := &follower{a: a, of: run.TaskID, run: run, d: a.show(), stop: stop}
	if req.Interactive {
		f.prompter = a.prompter()
	}
	return f
}

// follow shows the run until it ends or waits.
func (f *follower) follow(ctx context.Context) (engine.Outcome, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(f.stop.ctx, f.cancel)()
	if f.prompter != nil {
		f.stop.askFirst(f.working)
		defer f.stop.askFirst(nil)
	}
	if !f.a.flags.json {
		f.d.Line(view.Dim, "task "+f.run.TaskID)
	}
	f.listen(ctx, f.run, 0, func(e engine.Event) {
		if f.a.flags.json {
			f.print(e)
		} else {
			f.show(f.stop.ctx, f.screen(e), e)
		}
	})
	outcome, err := f.run.Wait(ctx)
	if err == nil {
		err = f.followLeft(ctx)
	}
	if err == nil && !readerGone(f.out) {
		err = f.out
	}
	if !f.a.flags.json {
		f.d.Flush()
		f.close(outcome)
	}
	return outcome, err
}

// print writes an event as a line of NDJSON. When stdout is gone the run goes on:
// a reader's end never touches a task.
func (f *follower) print(e engine.Event) {
	if f.out != nil {
		return
	}
	if e.Type == "notice" {
		if !f.isProgress(e) {
			fmt.Fprintln(f.a.errJSON(), string(e.Data))
		}
		return
	}
	line := append(bytes.TrimRight(e.Data, "\n"), '\n')
	if _, err := f.a.Out.Write(line); err != nil {
		f.out = fmt.Errorf("print the events: %w", err)
	}
}

func (f *follower) show(ctx context.Context, d *display.Display, e engine.Event) {
	switch e.Type {
	case "subtask.started":
		f.title(e)
	case "question.opened":
		f.opened(d, e)
	case "question.asked":
		f.question(ctx, d, e)
	case "notice":
		if f.isProgress(e) {
			return
		}
	}
	d.Show(display.Event{Type: e.Type, At: e.At, Data: e.Data})
}

// isProgress reports whether a notice is one that -q leaves out. Warnings are not.
func (f *follower) isProgress(e engine.Event) bool {
	var notice struct {
		Kind string `json:"kind"`
	}
	return f.a.flags.quiet && json.Unmarshal(e.Data, &notice) == nil && notice.Kind == "plan"
}

// opened notes a question, and shows it when nobody is here to be asked.
func (f *follower) opened(d *display.Display, e engine.Event) {
	var q task.QuestionOpened
	if json.Unmarshal(e.Data, &q) != nil {
		return
	}
	f.asked = q
	if f.prompter != nil {
		return
	}
	lines := []view.Line{{Style: view.Asked, Text: "? " + q.Text}}
	for i, c := range q.Choices {
		lines = append(lines, view.Line{Style: view.Asked, Text: fmt.Sprintf("  %d. %s%s", i+1, c, display.InMode(q, i))})
	}
	d.Lines(lines)
}

// question asks the person. An answer that comes too late is no failure: somebody
// else has answered, or the run has ended.
func (f *follower) question(ctx context.Context, d *display.Display, e engine.Event) {
	var q task.QuestionOpened
	if f.prompter == nil || json.Unmarshal(e.Data, &q) != nil {
		return
	}
	run := cmp.Or(f.run.Of(e.Task), f.left.Load().Of(e.Task))
	if run == nil {
		return // it has ended
	}
	r, err := f.ask(d, q)
	var other *answeredElsewhere
	switch {
	case ctx.Err() != nil:
		return // the signal that ended it cancels the run
	case errors.As(err, &other):
		d.Line(view.Dim, other.Error())
		f.prompter.Dismiss()
		return
	case err != nil, r.Stop:
		d.Line(view.Dim, "· stopping and saving")
		f.cancel()
		return
	}
	answer := engine.Answer{Approve: r.Approve, Text: r.Text, Always: r.Always, By: "terminal"}
	if err := run.Answer(q.Question, answer); err != nil {
		d.Notice("the answer was not taken: " + err.Error())
	}
}

// ask asks a question of a run. A Ctrl-C that has to ask what should stop does so in
// between.
func (f *follower) ask(d *display.Display, q task.QuestionOpened) (display.Reply, error) {
	for {
		stopping := f.stop.asking()
		asking, done := f.answers.until(stopping, q.Question)
		r, err := f.prompter.On(d).Ask(asking, q)
		done()
		if err == nil || stopping.Err() == nil || f.stop.ctx.Err() != nil {
			return r, err
		}
		f.askWhat()
	}
}

// close writes the last line: how it ended, what it took, how to go on.
func (f *follower) close(o engine.Outcome) {
	u := f.used()
	parts := []string{o.State}
	if u.Turns > 0 {
		parts = append(parts, fmt.Sprintf("%d turn%s", u.Turns, plural(u.Turns)))
	}
	if u.In+u.Out > 0 {
		parts = append(parts, fmt.Sprintf("%s in, %s out", view.Count(u.In), view.Count(u.Out)))
	}
	switch {
	case u.Unknown && u.Cost == 0:
		parts = append(parts, "cost unknown")
	case u.Unknown:
		parts = append(parts, "$"+u.Cost.String()+" and more")
	case u.Turns > 0:
		parts = append(parts, "$"+u.Cost.String())
	}
	if took := u.LastSeen - u.Started; took > 0 {
		parts = append(parts, display.Duration(time.Duration(took)*time.Millisecond))
	}
	style := view.Good
	if o.State != "completed" {
		style = view.Asked
	}
	f.d.Line(style, strings.Join(parts, " · "))
	f.d.Line(view.Dim, "resume: roost resume "+f.of)
}

func (f *follower) failure(o engine.Outcome) *Failure {
	failure := failureOfOutcome(f.of, o, f.stop.exit())
	if failure != nil && failure.Exit == ExitInput {
		switch f.asked.Kind {
		case "approval":
			failure.Try = "roost resume " + f.of + " yes  # or no, or a reason against it"
		case "limit":
			failure.Try = "roost resume " + f.of + " yes"
		case "damage":
			failure.Try = "roost resume " + f.of + " yes  # look at it first: roost doctor " + f.of
		}
	}
	return failure
}

// result is the final text as stdout gets it: made harmless on a terminal, as it
// is for programs.
func (a *App) result(text string) string {
	if a.OutTTY {
		return display.Safe(text)
	}
	return text
}

var errNoTerminal = errors.New("there is no terminal to choose on")
