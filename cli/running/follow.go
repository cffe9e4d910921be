package running

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/view"
)

// shownEvent is an event of a followed task, or of a subtask depth levels below it.
type shownEvent struct {
	client.Event
	task  string
	depth int
}

// emit prints an event: with --json as a line of NDJSON, else for people.
func (w *Watcher) emit(e shownEvent) {
	if w.a.Flags.JSON {
		w.print(e)
	} else {
		w.show(w.screen(e), e)
	}
}

// print writes an event as a line of NDJSON. When stdout is closed the run continues: the end of a reader never ends a
// run.
func (w *Watcher) print(e shownEvent) {
	if w.out != nil {
		return
	}
	if e.Type == "notice" {
		if !w.isProgress(e) {
			fmt.Fprintln(w.a.ErrJSON(), string(e.Data))
		}
		return
	}
	w.out = w.a.PrintRaw(e.Data)
}

func (w *Watcher) show(d *display.Display, e shownEvent) {
	switch e.Type {
	case "question.opened":
		w.opened(d, e)
	case "run.started":
		w.started(d, e)
	case "notice":
		if w.isProgress(e) {
			return
		}
	}
	d.Show(e.Type, e.Data)
}

// isProgress reports whether -q suppresses a notice. It does not suppress warnings.
func (w *Watcher) isProgress(e shownEvent) bool {
	return w.a.Flags.Quiet && e.Text("kind") == "plan"
}

// started prints who is paid for the run and what the run may do: provider, model and address, the origin of the key,
// approvals and folder.
func (w *Watcher) started(d *display.Display, e shownEvent) {
	var run struct {
		Run      string
		Settings struct {
			Workspace, Provider, Model, Approve, Profile string
			BaseURL                                      string `json:"base_url"`
		}
	}
	if e.depth > 0 || json.Unmarshal(e.Data, &run) != nil || run.Run != w.run {
		return
	}
	s := run.Settings
	who := strings.TrimSpace(s.Provider + " " + s.Model)
	base, key := s.BaseURL, ""
	if w.own != nil { // on a server, its settings and keys count
		from, origin := w.a.providerOf(s.Provider, s.Profile)
		base = cmp.Or(base, from)
		if origin != "" {
			key = " · key from " + origin
		}
	}
	if base != "" {
		who += " at " + base
	}
	d.Line(view.Dim, who+key)
	d.Line(view.Dim, "approvals "+cmp.Or(s.Approve, "ask")+" · folder "+s.Workspace)
}

// opened records a question, and shows it when no user can answer here.
func (w *Watcher) opened(d *display.Display, e shownEvent) {
	var q api.QuestionOpened
	if json.Unmarshal(e.Data, &q) != nil {
		return
	}
	if w.asked = q; w.prompter == nil {
		d.Question(q)
	}
}

// close prints the last line: how the run ended, what it cost, how to continue.
func (w *Watcher) close(o engine.Outcome) {
	style := view.Good
	if o.State != "completed" {
		style = view.Asked
	}
	u := w.shown.Used()
	text := u.Text(o.State)
	if w.a.Flags.Verbose {
		text = u.Exact(o.State)
	}
	w.shown.Top.Line(style, text)
	if w.failure(o) == nil { // a failure names what to do itself
		w.shown.Top.Line(view.Dim, "resume: roost resume "+api.ShellWord(w.short))
	}
}

func (w *Watcher) failure(o engine.Outcome) *failure.Failure {
	failed := failure.OfOutcome(w.task, o, w.stop.Exit())
	if failed != nil && failed.Exit == failure.ExitInput {
		more, known := map[string]string{
			"approval": "  # or no, or a reason against it",
			"limit":    "",
			"damage":   "  # look at it first: roost doctor " + w.task,
		}[w.asked.Kind]
		if known {
			failed.Try = "roost resume " + w.task + " yes" + more
		}
	}
	if failed != nil && w.short != "" {
		failed.What = strings.ReplaceAll(failed.What, w.task, w.short)
		failed.Try = strings.ReplaceAll(failed.Try, w.task, w.short)
	}
	return failed
}

// screen returns the display of an event's task.
func (w *Watcher) screen(e shownEvent) *display.Display {
	return w.shown.Of(e.task, e.depth, func(parent *display.Display) {
		if _, here := w.begun[e.task]; !here { // its start was shown in an earlier run
			parent.Line(view.Head, "· subtask "+e.task)
		}
	})
}

// cancel stops the run and, when it runs alone, the subtask.
func (w *Watcher) cancel() {
	w.own.Cancel()
	if w.left != nil {
		w.left.Cancel()
	}
}

// askWhat asks what should stop. The run continues while the question is open, and its events wait. When the run ends
// before the answer, no other run starts.
func (w *Watcher) askWhat() {
	if w.stop.Ctx.Err() != nil {
		return
	}
	ctx, done := context.WithCancel(w.stop.Ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer done()
	wait.Go(func() {
		_, _ = w.own.Wait(ctx) // only the end of the run matters
		done()
	})
	choice := w.choice(ctx)
	child := w.own.Subtask()
	if choice == app.StopOne && child != nil {
		w.left = child
		w.own.CancelAlone()
		w.stop.AskFirst(nil) // only the subtask is left to stop
	} else if choice == app.StopOne {
		choice = app.StopBoth // the subtask has ended
	}
	w.stop.Answered(choice) // before the line is printed: after reading it the user may press Ctrl-C again
	switch choice {
	case app.StopNothing:
		w.shown.Top.Line(view.Dim, "· nothing is stopped")
	case app.StopOne:
		w.shown.Top.Line(view.Dim, "· stopping the task alone and saving; the subtask continues here until Ctrl-C")
	}
}

func (w *Watcher) choice(ctx context.Context) app.StopChoice {
	w.shown.Flush()
	fmt.Fprintln(w.a.Err) // behind the terminal's own ^C
	w.prompter.Forget()
	w.shown.Top.Lines(w.atWork())
	for {
		line, err := w.prompter.On(w.shown.Top).Read(ctx, "  y all of it, n only the task (its subtasks continue), Enter nothing > ")
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
		w.shown.Top.Line(view.Dim, "  answer y or n, or with Enter alone")
	}
}

// atWork names the subtasks that Ctrl-C would concern.
func (w *Watcher) atWork() []view.Line {
	var names []view.Line
	for run := w.own.Subtask(); run != nil; run = run.Subtask() {
		text := strings.Repeat("  ", len(names)+1) + run.TaskID
		if title := w.begun[run.TaskID]; title != "" {
			text += ": " + display.OneLine(title)
		}
		names = append(names, view.Line{Style: view.Dim, Text: text})
	}
	what := "subtask"
	if len(names) > 1 {
		what = fmt.Sprintf("%d subtasks", len(names))
	}
	head := view.Line{Style: view.Asked, Text: "? stop its " + what + " too? (Ctrl-C again ends all at once)"}
	return append([]view.Line{head}, names...)
}

// closeLeft waits for the subtask that continues after its parent stopped, and shows how it ended.
func (w *Watcher) closeLeft(ctx context.Context) error {
	if w.left == nil {
		return nil
	}
	o, err := w.left.Wait(ctx)
	if err != nil {
		return fmt.Errorf("wait for subtask %s: %w", w.left.TaskID, err)
	}
	w.shown.Flush()
	if o.State == "completed" {
		w.shown.Top.Line(view.Dim, "· subtask "+w.left.TaskID+" is completed; resume its task for the result")
		return nil
	}
	w.shown.Top.Line(view.Dim, fmt.Sprintf("· subtask %s: %s", w.left.TaskID, o.State))
	return nil
}
