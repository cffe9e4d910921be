package running

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
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
	lines := []view.Line{{Style: view.Asked, Text: "? " + q.Text}}
	for i, c := range q.Choices {
		lines = append(lines, view.Line{Style: view.Asked, Text: fmt.Sprintf("  %d. %s%s", i+1, c, display.InMode(q, i))})
	}
	d.Lines(lines)
}

// close prints the last line: how the run ended, what it cost, how to continue.
func (f *follower) close(o engine.Outcome) {
	u := f.used()
	parts := []string{o.State}
	if u.Turns > 0 {
		parts = append(parts, fmt.Sprintf("%d turn%s", u.Turns, app.Plural(u.Turns)))
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

func (f *follower) failure(o engine.Outcome) *failure.Failure {
	failed := failure.OfOutcome(f.of, o, f.stop.Exit())
	if failed != nil && failed.Exit == failure.ExitInput {
		switch f.asked.Kind {
		case "approval":
			failed.Try = "roost resume " + f.of + " yes  # or no, or a reason against it"
		case "limit":
			failed.Try = "roost resume " + f.of + " yes"
		case "damage":
			failed.Try = "roost resume " + f.of + " yes  # look at it first: roost doctor " + f.of
		}
	}
	return failed
}
