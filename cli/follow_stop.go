package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/view"
)

// stopChoice is what a person wants stopped while a subtask is at work.
type stopChoice int

const (
	stopNothing stopChoice = iota
	stopOne                // the task alone: its subtasks go on
	stopBoth               // the task and its subtasks
)

// heard is what of a stream was shown. A subtask that goes on alone is followed in its
// own stream, which begins at its beginning.
type heard struct {
	newest map[string]engine.Event // of each task, the newest durable event
	others map[string]bool         // what is in no commit and comes again: questions, notices
}

// before notes an event, and reports whether it was there before.
func (h *heard) before(e engine.Event) bool {
	if h.newest == nil {
		h.newest, h.others = map[string]engine.Event{}, map[string]bool{}
	}
	switch {
	case e.Seq > 0:
		if last := h.newest[e.Task]; e.Seq < last.Seq || e.Seq == last.Seq && place(e) <= place(last) {
			return true
		}
		h.newest[e.Task] = engine.Event{ID: e.ID, Seq: e.Seq}
	case e.Type == "question.asked" || e.Type == "notice":
		if h.others[string(e.Data)] {
			return true
		}
		h.others[string(e.Data)] = true
	}
	return false
}

// place is where in its commit an event stands.
func place(e engine.Event) int {
	n, err := strconv.Atoi(e.ID[strings.LastIndexByte(e.ID, '-')+1:])
	if err != nil {
		return -1 // only the zero event has none
	}
	return n
}

// listen hands out the events of a run, one step deeper each, until the run has ended.
// A person who presses Ctrl-C meanwhile is asked in between.
func (f *follower) listen(ctx context.Context, run *engine.Run, deeper int, each func(engine.Event)) {
	ctx, done := context.WithCancel(ctx)
	events := make(chan engine.Event, ahead)
	var pump sync.WaitGroup
	defer pump.Wait()
	defer done()
	pump.Go(func() {
		defer close(events)
		for e := range run.Events(ctx) {
			f.answers.hear(e)
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	for {
		asking := f.stop.asking().Done()
		if f.stop.ctx.Err() != nil {
			asking = nil
		}
		select {
		case e, more := <-events:
			if !more {
				return
			}
			e.Depth += deeper
			if !f.heard.before(e) {
				each(e)
			}
		case <-asking:
			f.askWhat()
		}
	}
}

// working reports whether a subtask is at work, so that a Ctrl-C has to ask.
func (f *follower) working() bool { return f.run.Subtask() != nil }

// cancel stops the run and, when it went on alone, the subtask.
func (f *follower) cancel() {
	f.run.Cancel()
	if left := f.left.Load(); left != nil {
		left.Cancel()
	}
}

// askWhat asks what should stop. The run goes on meanwhile; what it has to tell waits.
// When the run ends before the answer, nothing else begins.
func (f *follower) askWhat() {
	if f.stop.ctx.Err() != nil {
		return
	}
	ctx, done := context.WithCancel(f.stop.ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer done()
	wait.Go(func() {
		_, _ = f.run.Wait(ctx) // only that it is over counts
		done()
	})
	choice := f.choice(ctx)
	child := f.run.Subtask()
	if choice == stopOne && child != nil {
		f.left.Store(child)
		f.run.CancelAlone()
		f.stop.askFirst(nil) // what is left is one thing to stop
	} else if choice == stopOne {
		choice = stopBoth // it ended meanwhile
	}
	f.stop.answered(choice) // before it is told: who reads it may press Ctrl-C again
	switch choice {
	case stopNothing:
		f.d.Line(view.Dim, "· nothing is stopped")
	case stopOne:
		f.d.Line(view.Dim, "· stopping the task alone and saving; the subtask goes on here until Ctrl-C")
	}
}

func (f *follower) choice(ctx context.Context) stopChoice {
	if f.last != nil {
		f.last.Flush()
	}
	fmt.Fprintln(f.a.Err) // behind the terminal's own ^C
	f.prompter.Forget()
	f.d.Lines(f.atWork())
	for {
		line, err := f.prompter.On(f.d).Read(ctx, "  y all of it, n only the task (what is below goes on), Enter nothing > ")
		if err != nil {
			return stopBoth // the terminal or the run is gone
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return stopBoth
		case "n", "no":
			return stopOne
		case "":
			return stopNothing
		}
		f.d.Line(view.Dim, "  answer y or n, or with Enter alone")
	}
}

// atWork names the subtasks that a Ctrl-C is about.
func (f *follower) atWork() []view.Line {
	lines := []view.Line{{Style: view.Asked, Text: ""}}
	n := 0
	for run := f.run.Subtask(); run != nil; run = run.Subtask() {
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
func (f *follower) title(e engine.Event) {
	child, _ := esjson.GetString(e.Data, "child")
	if f.titles == nil {
		f.titles = map[string]string{}
	}
	f.titles[child], _ = esjson.GetString(e.Data, "title")
}

// followLeft shows the subtask that goes on after its parent was stopped.
func (f *follower) followLeft(ctx context.Context) error {
	left := f.left.Load()
	if left == nil {
		return nil
	}
	f.listen(ctx, left, 1, func(e engine.Event) { f.show(f.stop.ctx, f.screen(e), e) })
	o, err := left.Wait(ctx)
	if err != nil {
		return fmt.Errorf("wait for subtask %s: %w", left.TaskID, err)
	}
	if f.last != nil {
		f.last.Flush()
	}
	if o.State == "completed" {
		f.d.Line(view.Dim, "· subtask "+left.TaskID+" is completed; its task hears of it when it is resumed")
		return nil
	}
	f.d.Line(view.Dim, fmt.Sprintf("· subtask %s: %s", left.TaskID, o.State))
	return nil
}
