package running

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/view"
)

// watched is a run to follow by the events of its task, whichever process works on it.
type watched struct {
	task, run string
	after     string // the newest event that was already shown; "0" = none
	fresh     bool   // do not show events before the run's first one: the task was created for this run
	since     string // durable events before this time were already shown; RFC 3339, "" = none
	ask       bool   // a person answers its questions here
	leave     bool   // stop following when another process's run waits for an answer: no person reads here
	letGo     func() // lets a run of this process wait, saved, when no user can answer
}

// errDetached: the user stopped following; the run continues.
var errDetached = errors.New("detached")

// Watcher follows a run by the events of its task.
type Watcher struct {
	watched
	C        *client.Client
	mine     map[string]bool   // questions that were answered here
	Followed map[string]bool   // runs of subtasks
	begun    map[string]string // subtasks whose start was shown, with their titles

	a        *commands
	own      *engine.Run // the followed run of this process; nil: another process runs it, or a question of it was answered here
	shown    *display.Family
	prompter *display.Prompter
	asked    api.QuestionOpened // the newest question
	out      error              // why stdout could not be written
	stop     *app.Stopper
	short    string      // the id of the task for people; "" = not known yet
	left     *engine.Run // a subtask that continues although its parent was stopped
}

// watchUntil shows a run until it ends or waits, and returns its outcome. run is the run itself if this process works on
// it; if another process does (nil), Ctrl-C ends watching with errDetached.
func (a *commands) watchUntil(ctx context.Context, c *client.Client, w watched, stop *app.Stopper,
	run *engine.Run) (*Watcher, engine.Outcome, error) {
	in := &Watcher{
		watched: w, C: c, a: a, shown: display.NewFamily(a.Show()), own: run, stop: stop,
		mine: map[string]bool{}, Followed: map[string]bool{}, begun: map[string]string{},
	}
	if w.ask {
		in.prompter = a.Prompter()
	}
	if run != nil && w.ask {
		stop.AskFirst(func() bool { return run.Subtask() != nil })
		defer stop.AskFirst(nil)
	}
	in.shown.Top.Line(view.Dim, "task "+display.OneLine(w.task))
	ctx, done := context.WithCancel(ctx)
	defer done()
	out, err := in.one(ctx, w.task, w.run, w.after, w.since, 0)
	if err == nil && run != nil {
		out, err = in.ended(ctx)
	}
	if err == nil && !app.ReaderGone(in.out) {
		err = in.out
	}
	if !a.Flags.JSON {
		in.shown.Top.Flush()
		if err == nil {
			// At the end, also of a run that was stopped: before it, the request would delay following.
			in.short = a.ShortIDs(context.WithoutCancel(ctx), c)(w.task)
			in.close(out)
		}
	}
	return in, out, err
}

// ended waits until a run of this process has saved everything, and shows the warnings that came with its end.
func (w *Watcher) ended(ctx context.Context) (engine.Outcome, error) {
	out, err := w.own.Wait(ctx)
	if err != nil {
		return out, err
	}
	for _, late := range w.own.Late() {
		w.emit(shownEvent{client.Event{Type: late.Type, Data: late.Data}, w.task, 0})
	}
	return out, w.closeLeft(ctx)
}

// quiet is the time without an event after which the watcher asks for the run's state: its process may be dead, and a
// dead process sends no event.
const quiet = 2 * time.Second

type receivedEvent struct {
	client.Event
	err error
}

// one follows one task's run. While a subtask that it started works, one follows the
// subtask instead.
func (w *Watcher) one(ctx context.Context, id, run, after, since string, depth int) (out engine.Outcome, err error) {
	lasting := ctx // for sending answers
	ctx, done := context.WithCancel(ctx)
	if w.own == nil { // a user who leaves does not wait for the server
		defer context.AfterFunc(w.stop.Ctx, done)()
		defer func() {
			if err != nil && w.stop.Ctx.Err() != nil {
				err = errDetached
			}
		}()
	}
	events := make(chan receivedEvent)
	var pump sync.WaitGroup
	defer pump.Wait()
	defer done()
	pump.Go(func() {
		defer close(events)
		for e, err := range w.C.Events(ctx, id, after) {
			select {
			case events <- receivedEvent{e, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	q := &asking{w: w, id: id, depth: depth}
	defer q.end()
	ask := time.NewTicker(quiet)
	defer ask.Stop()
	soon := time.NewTimer(soonBelow)
	defer soon.Stop()
	tick := time.NewTicker(display.TickEvery)
	defer tick.Stop()
	stopped := w.stop.Ctx.Done()
	silent, unanswered := true, 0
	asking := func() <-chan struct{} { // ends when a Ctrl-C has to ask what should stop
		if w.own == nil || w.prompter == nil || w.stop.Ctx.Err() != nil {
			return nil
		}
		return w.stop.Asking().Done()
	}
	for {
		select {
		case e, more := <-events:
			switch {
			case !more:
				return engine.Outcome{}, fmt.Errorf("follow task %s: its events ended", id)
			case e.err != nil:
				return engine.Outcome{}, e.err
			}
			silent, unanswered = false, 0
			soon.Reset(soonBelow)
			out, over, err := w.take(ctx, q, e.Event, run, since)
			if over || err != nil {
				return out, err
			}
		case reply := <-q.out: // nil while no question is open
			if err := w.answer(lasting, q, reply); err != nil {
				return engine.Outcome{}, err
			}
		case <-stopped:
			stopped = nil
			q.end()
			if w.own == nil {
				return engine.Outcome{}, errDetached
			}
			w.cancel()
		case now := <-tick.C:
			w.shown.Tick(now)
		case <-asking():
			q.pause(w.askWhat)
		case <-ask.C:
			if !silent || run == "" {
				silent = true
				continue
			}
			out, over, owner := w.state(ctx, q, run)
			if over {
				return out, nil
			}
			if owner == "" {
				unanswered = 0
			} else if unanswered++; unanswered == mostUnanswered {
				return out, silentOwner("follow task "+id, id, owner)
			}
			if err := w.below(ctx, id, depth); err != nil {
				return engine.Outcome{}, err
			}
		case <-soon.C:
			if err := w.below(ctx, id, depth); err != nil {
				return engine.Outcome{}, err
			}
			w.askOpen(ctx, q, run)
		}
	}
}

// state asks for the state of a run that sent no event for a while. owner is the process
// that works on the run, if it does not answer.
func (w *Watcher) state(ctx context.Context, q *asking, run string) (out engine.Outcome, over bool, owner string) {
	r, err := w.C.Run(ctx, run)
	if err != nil {
		return out, false, "" // if the failure lasts, the events report it
	}
	waits := r.State == "waiting" && (q.open() || r.Here) && (r.Question == "" || !w.leave)
	if r.State == "queued" || r.State == "running" || waits {
		return out, false, r.Silent
	}
	return outcomeOf(r), true, ""
}

// mostUnanswered limits how many requests for its state in a row a run's process may leave unanswered before the
// watcher gives up.
const mostUnanswered = 2

// silentOwner returns the failure when the process of an awaited run does not answer.
func silentOwner(what, id, owner string) *failure.Failure {
	return &failure.Failure{
		Exit: failure.ExitBusy, Code: "task_locked", Status: http.StatusConflict, Task: id, Retryable: true, What: what,
		Why: owner + " works on the task and does not answer: it may be stopped",
		Try: "roost attach " + api.ShellWord(id) + "  # when that process continues; or end it, and then: roost resume " + api.ShellWord(id),
	}
}

// outcomeOf returns a run's end as commands print it.
func outcomeOf(r api.Run) engine.Outcome {
	out := engine.Outcome{State: r.State, Reason: r.Reason, Code: r.Code, Question: r.Question}
	if r.Outcome != "" && r.State != "waiting" {
		out.State = r.Outcome
	}
	if out.State == "interrupted" && out.Reason == "" {
		out.Reason = "the process that worked on it has ended"
	}
	return out
}

// take shows an event. over: the run ended, or waits for an answer that cannot come from here.
func (w *Watcher) take(ctx context.Context, q *asking, got client.Event, run, since string) (out engine.Outcome, over bool, err error) {
	e := shownEvent{got, q.id, q.depth}
	if e.ID != "" && e.Text("at") < since {
		return out, false, nil
	}
	if w.fresh && q.depth == 0 && e.ID != "" {
		if e.Text("run") != run && e.Text("run_id") != run {
			return out, false, nil
		}
		w.fresh = false
	}
	switch e.Type {
	case "stream.end":
		return out, true, failure.NotFound("task_not_found", "follow task "+q.id,
			"it was deleted or moved", "roost trash list").OfTask(q.id)
	case "stream.snapshot":
		w.shown.Top.Notice("some of what happened was missed; roost show " + q.id + " shows all of it")
		return out, false, nil
	case "question.closed":
		q.closed(e)
	}
	w.emit(e)
	mine := e.Text("run_id")
	switch e.Type {
	case "question.opened":
		var opened api.QuestionOpened
		if json.Unmarshal(e.Data, &opened) == nil {
			if w.prompter != nil {
				q.ask(ctx, opened, w.screen(e))
			} else if w.letGo != nil { // also of a subtask: its run waits in this process, too
				q.wait.Go(w.letGo)
			}
		}
	case "run.waiting":
		if mine != run || q.open() {
			break
		}
		return engine.Outcome{State: "waiting", Reason: w.asked.Text, Child: e.Text("child"), Question: e.Text("question")}, true, nil
	case "run.ended":
		if mine != run {
			break
		}
		return engine.Outcome{State: e.Text("outcome"), Reason: e.Text("reason"), Code: e.Text("code")}, true, nil
	case "subtask.started":
		child := e.Text("child")
		w.begun[child] = e.Text("title")
		if r, found := w.runOf(ctx, child); found && !w.Followed[r] {
			w.Followed[r] = true
			_, err = w.one(ctx, child, r, "0", since, q.depth+1)
		}
	}
	return out, false, err
}

// followRun follows a run of this process, and then the run that starts when it ends: that of the task that waited
// for it, or one of the same task for words that came at the last moment. The outcome is that of the last run.
func (a *commands) followRun(ctx context.Context, c *client.Client, run *engine.Run, w watched,
	stop *app.Stopper) (*Watcher, engine.Outcome, error) {
	for ; ; w.after = "" {
		w.task, w.run, w.after = run.TaskID, run.ID, cmp.Or(w.after, run.Start())
		in, outcome, err := a.watchUntil(ctx, c, w, stop, run)
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

// runOf waits for the run of a subtask that was just started. It returns false when the start failed; the events of
// its parent report that.
func (w *Watcher) runOf(ctx context.Context, id string) (string, bool) {
	for range 40 {
		if runs, err := w.C.RunsOf(ctx, id); err == nil && len(runs.Items) > 0 {
			return runs.Items[0].ID, true
		}
		if client.Sleep(ctx, 50*time.Millisecond) != nil {
			break
		}
	}
	return "", false
}

// answer sends the user's answer to a question.
func (w *Watcher) answer(ctx context.Context, q *asking, r questionReply) error {
	q.end()
	if r.err != nil || r.Stop {
		if w.stop.Ctx.Err() != nil || errors.Is(r.err, context.Canceled) {
			return nil // a signal, or an answer from another client
		}
		if w.own == nil {
			return errDetached
		}
		w.shown.Top.Line(view.Dim, "· stopping and saving")
		w.cancel()
		return nil
	}
	id := q.id + "." + r.question
	w.mine[r.question] = true
	_, err := w.C.Answer(ctx, id, api.Answer{Approve: r.Approve, Text: r.Text, Always: r.Always})
	if p, is := errors.AsType[*client.Problem](err); is {
		w.shown.Top.Notice("the answer was not taken: " + p.Detail)
	} else if un, is := errors.AsType[*client.Unreachable](err); is { // the events' connection carries the question, too
		w.shown.Top.Notice("the answer was not taken: " + un.Error())
	} else {
		return err
	}
	delete(w.mine, r.question)
	q.ask(ctx, q.opened, q.d) // if the question is still open
	return nil
}

// detached returns the failure of a follower that stopped following: the run continues.
func (w *Watcher) detached() *failure.Failure {
	return failure.New(cmp.Or(w.stop.Exit(), failure.ExitInterrupt), "detached", "stop following task "+w.task,
		"the task continues where it runs",
		"roost attach "+w.task+"  # or stop it: roost cancel "+w.task).OfTask(w.task)
}

// watchOn watches a run of another process and prints its result, as run and resume do.
func (a *commands) watchOn(ctx context.Context, c *client.Client, w watched) error {
	stop := a.StopperWith(ctx, func() {})
	defer stop.Undo()
	return a.concluded(a.watchUntil(ctx, c, w, stop, nil))
}

// concluded prints the outcome of a watched run.
func (a *commands) concluded(in *Watcher, outcome engine.Outcome, err error) error {
	switch {
	case errors.Is(err, errDetached):
		return in.detached()
	case err != nil:
		return err
	}
	if a.document {
		if err := a.PrintJSON(in.end(outcome)); err != nil {
			return err
		}
	}
	if f := in.failure(outcome); f != nil {
		return f
	}
	if !a.Flags.JSON && !a.document && outcome.Reason != "" {
		return a.Painted([]string{a.Prose(outcome.Reason, 0)})
	}
	return nil
}

// A subtask may already work when a client begins to follow its task. Then no shown event names the subtask: it started in
// an earlier run, or before the message that was sent. The subtask works and asks, so the watcher looks for it when its
// task sends no event.

const (
	soonBelow = 300 * time.Millisecond // of silence before the first check
	mostBelow = 4                      // of a task's subtasks, the newest ones: a task waits for one at a time
)

// Running returns the run of a subtask that works, or waits for a person, and is not followed yet; nil when there is
// none.
func (w *Watcher) Running(ctx context.Context, id string) *api.Run {
	t, err := w.C.Task(ctx, id)
	if err != nil {
		return nil // if the failure lasts, the events report it
	}
	for _, child := range slices.Backward(t.ChildIDs[max(0, len(t.ChildIDs)-mostBelow):]) {
		runs, err := w.C.RunsOf(ctx, child)
		if err != nil || len(runs.Items) == 0 || w.Followed[runs.Items[0].ID] {
			continue
		}
		if r := runs.Items[0]; r.State == "queued" || r.State == "running" || r.State == "waiting" {
			return &r
		}
	}
	return nil
}

// below follows a subtask that already works, if there is one: from the start of its run, or, if its task is followed
// only from now on, from now on. If the start of the subtask was shown here but its run came later, it is shown from
// the start of the run.
func (w *Watcher) below(ctx context.Context, id string, depth int) error {
	r := w.Running(ctx, id)
	if r == nil {
		return nil
	}
	after, since := "0", ""
	if _, shown := w.begun[r.Task]; w.own == nil && w.after != "0" && !shown {
		mark, err := w.C.Mark(ctx, r.Task)
		if err != nil {
			return err
		}
		after = mark
	} else if r.StartedAt != nil {
		since = *r.StartedAt
	}
	w.Followed[r.ID] = true
	_, err := w.one(ctx, r.Task, r.ID, after, since, depth+1)
	return err
}

// questionReply is the outcome of asking a question on the terminal.
type questionReply struct {
	display.Reply
	question string
	err      error
}

// asking is the question of one task that the terminal shows now. Events are handled while it is open: an answer from
// another client removes it.
type asking struct {
	w      *Watcher
	id     string             // of the task
	depth  int                // levels below the followed task
	now    string             // the question; "" = none
	opened api.QuestionOpened // the newest one that was asked, and where
	d      *display.Display
	quit   context.CancelFunc
	out    chan questionReply
	wait   sync.WaitGroup
}

// ask puts a question to the user, if it is still open: a stream also holds questions that
// were answered long ago.
func (q *asking) ask(ctx context.Context, opened api.QuestionOpened, d *display.Display) {
	if !q.still(ctx, opened.Question) {
		return
	}
	q.end()
	ctx, q.quit = context.WithCancel(ctx)
	q.now, q.out = opened.Question, make(chan questionReply, 1)
	q.opened, q.d = opened, d
	out := q.out
	d.Attention("Roost asks: " + opened.Text)
	if q.w.own == nil {
		q.w.prompter.Forget() // what was typed before does not answer a question of another process
	}
	q.wait.Go(func() {
		r, err := q.w.prompter.On(d).Ask(ctx, opened)
		out <- questionReply{r, opened.Question, err}
	})
}

// pause removes the question from the terminal for another one, and asks it again afterwards if it is still open.
func (q *asking) pause(other func()) {
	opened, d := q.opened, q.d
	open := q.open()
	q.end()
	other()
	if open && q.w.stop.Ctx.Err() == nil {
		q.ask(q.w.stop.Ctx, opened, d)
	}
}

// askOpen asks a question that a run waits with, and whose event is older than the first shown one: a run that
// continues with an open question does not open it again.
func (w *Watcher) askOpen(ctx context.Context, q *asking, run string) {
	if w.prompter == nil || q.open() {
		return
	}
	r, err := w.C.Run(ctx, run)
	if err != nil || r.State != "waiting" || !strings.HasPrefix(r.Question, q.id+".") {
		return
	}
	if one, err := w.C.Question(ctx, r.Question); err == nil { // else the next silence tries again
		q.ask(ctx, one.QuestionOpened, w.screen(shownEvent{task: q.id, depth: q.depth}))
	}
}

// still reports whether a question is still open.
func (q *asking) still(ctx context.Context, question string) bool {
	_, err := q.w.C.Question(ctx, q.id+"."+question)
	p, refused := errors.AsType[*client.Problem](err)
	return !refused || p.Code != "question_not_found" // asking too much is better than not asking
}

func (q *asking) open() bool { return q.now != "" }

// closed removes the question from the terminal after an answer came.
func (q *asking) closed(e shownEvent) {
	var c api.QuestionClosed
	if json.Unmarshal(e.Data, &c) != nil || q.now != c.Question {
		return
	}
	q.end()
	if q.w.mine[c.Question] {
		return
	}
	q.w.prompter.Dismiss() // words that the user types for this question answer no other one
	q.w.shown.Top.Line(view.Dim, "· answered by "+cmp.Or(display.OneLine(c.By), "somebody")+" elsewhere")
}

// end removes the question from the terminal.
func (q *asking) end() {
	if q.quit != nil {
		q.quit()
		q.wait.Wait()
	}
	q.now, q.quit, q.out = "", nil, nil
}

// fromStart follows a run from its start. Events that led to the run may have the time of the run's start.
func fromStart(r api.Run, ask, leave bool) watched {
	w := watched{task: r.Task, run: r.ID, after: "0", ask: ask, leave: leave, fresh: true}
	if r.StartedAt != nil {
		w.since = *r.StartedAt
	}
	return w
}

// newestRun returns the newest run of a task, or the run with that id.
func newestRun(ctx context.Context, c *client.Client, id string) (api.Run, error) {
	runs, err := c.RunsOf(ctx, id)
	if p, is := errors.AsType[*client.Problem](err); is && p.Status/100 == 4 {
		if r, other := c.Run(ctx, id); other == nil {
			return r, nil
		}
	}
	if err != nil {
		return api.Run{}, err
	}
	if len(runs.Items) == 0 {
		return api.Run{}, failure.NotFound("run_not_found", "find a run of task "+id,
			"roost never ran it", "roost resume "+api.ShellWord(id)).OfTask(id)
	}
	return runs.Items[0], nil
}
