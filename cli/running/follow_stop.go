package running

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/view"
)

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
	if f.titles == nil {
		f.titles = map[string]string{}
	}
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
