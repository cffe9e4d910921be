package running

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/view"
)

// follower shows the events of a run and of its subtasks.
type follower struct {
	a        *commands
	of       string      // the task
	own      *engine.Run // the run of this process that is followed; nil: another process runs it, or a question of it was answered here
	d        *display.Display
	prompter *display.Prompter
	asked    api.QuestionOpened // the newest question
	out      error              // why stdout could not be written
	stop     *app.Stopper
	screens  map[string]*display.Display // of the subtasks
	named    map[string]bool             // subtasks whose start was shown
	last     *display.Display            // that showed something
	titles   map[string]string           // of subtasks
	left     *engine.Run                 // a subtask that continues although its parent was stopped
}

// shownEvent is an event of a task that is followed, or of a subtask depth levels below it.
type shownEvent struct {
	client.Event
	task  string
	depth int
}

// at is the time of the event in Unix milliseconds; 0 when it has none.
func (e shownEvent) at() int64 {
	text, _ := esjson.GetString(e.Data, "at")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}

// run is the run that the event belongs to; "" = none.
func (e shownEvent) run() string {
	run, _ := esjson.GetString(e.Data, "run_id")
	return run
}

// print writes an event as a line of NDJSON. When stdout is closed the run continues:
// a reader's end never touches a task.
func (f *follower) print(e shownEvent) {
	if f.out != nil {
		return
	}
	if e.Type == "notice" {
		if !f.isProgress(e) {
			fmt.Fprintln(f.a.ErrJSON(), string(e.Data))
		}
		return
	}
	line := append(bytes.TrimRight(e.Data, "\n"), '\n')
	if _, err := f.a.Out.Write(line); err != nil {
		f.out = fmt.Errorf("print the events: %w", err)
	}
}

func (f *follower) show(ctx context.Context, d *display.Display, e shownEvent) {
	switch e.Type {
	case "subtask.started":
		f.title(e)
	case "question.opened":
		f.opened(d, e)
	case "notice":
		if f.isProgress(e) {
			return
		}
	}
	d.Show(display.Event{Type: e.Type, At: e.at(), Data: e.Data})
}

// isProgress reports whether a notice is one that -q leaves out. Warnings are not.
func (f *follower) isProgress(e shownEvent) bool {
	var notice struct {
		Kind string `json:"kind"`
	}
	return f.a.Flags.Quiet && json.Unmarshal(e.Data, &notice) == nil && notice.Kind == "plan"
}

// opened notes a question, and shows it when no user can answer here.
func (f *follower) opened(d *display.Display, e shownEvent) {
	var q api.QuestionOpened
	if json.Unmarshal(e.Data, &q) != nil {
		return
	}
	f.asked = q
	if f.prompter != nil {
		return
	}
	d.Question(q)
}

// close prints the last line: how the run ended, what it cost, how to continue.
func (f *follower) close(o engine.Outcome) {
	style := view.Good
	if o.State != "completed" {
		style = view.Asked
	}
	f.d.Line(style, f.used().Text(o.State))
	f.d.Line(view.Dim, "resume: roost resume "+f.of)
}

func (f *follower) failure(o engine.Outcome) *failure.Failure {
	failed := failure.OfOutcome(f.of, o, f.stop.Exit())
	if failed != nil && failed.Exit == failure.ExitInput {
		more, known := map[string]string{
			"approval": "  # or no, or a reason against it", "limit": "", "damage": "  # look at it first: roost doctor " + f.of,
		}[f.asked.Kind]
		if known {
			failed.Try = "roost resume " + f.of + " yes" + more
		}
	}
	return failed
}

// screen is the display of an event's task: each subtask has its own, because
// message numbers and call ids are unique in one task only.
func (f *follower) screen(e shownEvent) *display.Display {
	d := f.d
	if e.depth > 0 {
		if d = f.screens[e.task]; d == nil {
			d = f.d
			for i := range e.depth {
				if i == e.depth-1 && !f.named[e.task] { // its start was shown in an earlier run
					d.Line(view.Head, "· subtask "+e.task)
				}
				d = d.Below()
			}
			f.screens[e.task] = d
		}
	}
	if e.Type == "subtask.started" {
		child, _ := esjson.GetString(e.Data, "child")
		f.named[child] = true
	}
	if f.last != nil && f.last != d {
		f.last.Flush()
	}
	f.last = d
	return d
}

// used is what the run and its subtasks used.
func (f *follower) used() display.Totals {
	u := f.d.Usage
	for _, d := range f.screens {
		u.Add(d.Usage)
	}
	return u
}

// followRun follows a run of this process, and then the run that starts when it ends: that of the task that waited for
// it, or one of the same task for words that came at the last moment. The outcome is that of the last run.
func (a *commands) followRun(ctx context.Context, c *client.Client, run *engine.Run, ask bool, stop *app.Stopper) (*Watcher, engine.Outcome, error) {
	for {
		in, outcome, err := a.watchUntil(ctx, c, watched{
			task:  run.TaskID,
			run:   run.ID,
			after: run.Start(),
			ask:   ask,
			here:  true,
		}, stop, run)
		if err != nil {
			return in, outcome, fmt.Errorf("follow the run of task %s: %w", run.TaskID, err)
		}
		next, err := run.Next(ctx)
		if err != nil {
			a.Warn(err.Error())
		}
		said := "it continues with words that came at the last moment"
		if next == nil {
			next, said = run.After(ctx), "it continues with words from another client"
		} else if next.TaskID != run.TaskID {
			said = fmt.Sprintf("subtask %s is completed; task %s, which waited for it, continues", run.TaskID, next.TaskID)
		}
		if next == nil {
			return in, outcome, nil
		}
		if !a.Flags.JSON {
			a.Say("%s", said)
		}
		run = next
	}
}

// working reports whether a subtask is at work, so that a Ctrl-C has to ask.
func (f *follower) working() bool { return f.own.Subtask() != nil }

// cancel stops the run and, when it runs alone, the subtask.
func (w *Watcher) cancel(ctx context.Context) {
	if w.own == nil {
		_, _ = w.C.Cancel(ctx, w.task) // the run's end shows how it went
		return
	}
	w.own.Cancel()
	if w.left != nil {
		w.left.Cancel()
	}
}

// askWhat asks what should stop. The run continues while the question is open, and its events wait. When the run ends
// before the answer, nothing else begins.
func (f *follower) askWhat() {
	if f.stop.Ctx.Err() != nil {
		return
	}
	ctx, done := context.WithCancel(f.stop.Ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer done()
	wait.Go(func() {
		_, _ = f.own.Wait(ctx) // only that it ended counts
		done()
	})
	choice := f.choice(ctx)
	child := f.own.Subtask()
	if choice == app.StopOne && child != nil {
		f.left = child
		f.own.CancelAlone()
		f.stop.AskFirst(nil) // what is left is one thing to stop
	} else if choice == app.StopOne {
		choice = app.StopBoth // the subtask has ended
	}
	f.stop.Answered(choice) // before the line is printed: after reading it the user may press Ctrl-C again
	switch choice {
	case app.StopNothing:
		f.d.Line(view.Dim, "· nothing is stopped")
	case app.StopOne:
		f.d.Line(view.Dim, "· stopping the task alone and saving; the subtask continues here until Ctrl-C")
	}
}

func (f *follower) choice(ctx context.Context) app.StopChoice {
	if f.last != nil {
		f.last.Flush()
	}
	fmt.Fprintln(f.a.Err) // behind the terminal's own ^C
	f.prompter.Forget()
	f.d.Lines(f.atWork())
	for {
		line, err := f.prompter.On(f.d).Read(ctx, "  y all of it, n only the task (its subtasks continue), Enter nothing > ")
		if err != nil {
			return app.StopBoth // the terminal is closed, or the run ended
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return app.StopBoth
		case "n", "no":
			return app.StopOne
		case "":
			return app.StopNothing
		}
		f.d.Line(view.Dim, "  answer y or n, or with Enter alone")
	}
}

// atWork names the subtasks that a Ctrl-C is about.
func (f *follower) atWork() []view.Line {
	lines := []view.Line{{Style: view.Asked, Text: ""}}
	n := 0
	for run := f.own.Subtask(); run != nil; run = run.Subtask() {
		n++
		text := strings.Repeat("  ", n) + run.TaskID
		if title := f.titles[run.TaskID]; title != "" {
			text += ": " + display.OneLine(title)
		}
		lines = append(lines, view.Line{Style: view.Dim, Text: text})
	}
	lines[0].Text = "? stop its subtask too?"
	if n > 1 {
		lines[0].Text = fmt.Sprintf("? stop its %d subtasks too?", n)
	}
	lines[0].Text += " (Ctrl-C again ends all at once)"
	return lines
}

// title notes what a subtask is about.
func (f *follower) title(e shownEvent) {
	child, _ := esjson.GetString(e.Data, "child")
	f.titles[child], _ = esjson.GetString(e.Data, "title")
}

// closeLeft waits for the subtask that continued after its parent stopped, and shows how it ended.
func (f *follower) closeLeft(ctx context.Context) error {
	if f.left == nil {
		return nil
	}
	o, err := f.left.Wait(ctx)
	if err != nil {
		return fmt.Errorf("wait for subtask %s: %w", f.left.TaskID, err)
	}
	if f.last != nil {
		f.last.Flush()
	}
	if o.State == "completed" {
		f.d.Line(view.Dim, "· subtask "+f.left.TaskID+" is completed; resume its task for the result")
		return nil
	}
	f.d.Line(view.Dim, fmt.Sprintf("· subtask %s: %s", f.left.TaskID, o.State))
	return nil
}
