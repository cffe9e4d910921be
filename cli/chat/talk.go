package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// talk follows one task while the chat is about it: it takes the events of the task and its subtasks, one after the
// other. Everything but its channels belongs to the goroutine of run.
type talk struct {
	s      *Session
	id     string
	ctx    context.Context //nolint:containedctx // ends when the chat switches to another task
	cancel context.CancelFunc
	busy   sync.WaitGroup // the streams
	done   chan struct{}
	in     chan incoming
	synced chan error // gets one value when the stream is open; nil = nothing waits for that, or it got its value

	shown  *display.Family
	depth  map[string]int
	inputs map[string]string // texts of queued inputs, by their ids
	began  string            // the run that the displays show
	gone   bool              // the chat has reported that the run's process is dead

	ask    *ask
	asked  chan *ask
	held   []incoming      // events that wait while the chat asks a question
	closed map[string]bool // questions that are answered
}

// ask is an open question to the user. The chat shows the question and reads its answer as roost run does.
type ask struct {
	id     string // the id for answers
	task   string
	q      api.QuestionOpened
	seen   string // the event that opened it, "" when it was open before the chat began
	cancel context.CancelFunc
	done   chan struct{}
	said   atomic.Bool // the user answered
	again  bool        // the answer was rejected, and the question is still open; valid only after done is closed
}

// nowhere is a cursor that no task has: the server answers it with a snapshot, after which no event is missed. A
// request for "all from now on" leaves open when "now" was.
const nowhere = "9007199254740991"

// follow switches the chat to a task and shows the events after a cursor. With the cursor nowhere it returns when the
// stream is open, so that no later event is missed.
func (s *Session) follow(ctx context.Context, id, after string) error {
	s.leave()
	t := &talk{
		s: s, id: id, done: make(chan struct{}), in: make(chan incoming), asked: make(chan *ask, 1),
		depth: map[string]int{id: 0}, inputs: map[string]string{}, closed: map[string]bool{},
	}
	synced := make(chan error, 1)
	if after == nowhere {
		t.synced = synced
	}
	t.begin()
	t.ctx, t.cancel = context.WithCancel(s.ctx)
	s.change(func(st *state) { s.talk, st.Task = t, id })
	s.refresh()
	t.listen(id, after)
	go t.run()
	if after != nowhere {
		return nil
	}
	select {
	case err := <-synced:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave stops following the present task.
func (s *Session) leave() {
	var t *talk
	s.locked(func() { t, s.talk = s.talk, nil })
	if t != nil {
		t.cancel()
		<-t.done
	}
	s.change(func(st *state) {
		st.keep(st.Retype)
		st.ofTask = ofTask{}
	})
}

func (s *Session) stop(ctx context.Context, id string) {
	if _, err := s.backend.Cancel(ctx, id); err != nil && ctx.Err() == nil {
		s.complain(fmt.Errorf("stop the run: %w", err))
	}
}

// listen passes the events of a task to run.
func (t *talk) listen(task, after string) {
	t.busy.Go(func() {
		for e, err := range t.s.backend.Events(t.ctx, task, after) {
			select {
			case t.in <- incoming{e, task, err}:
			case <-t.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
}

func (t *talk) run() {
	defer close(t.done)
	defer t.busy.Wait()
	look := time.NewTicker(silence)
	defer look.Stop()
	received := false
	for {
		select {
		case in := <-t.in:
			received = true
			t.take(in)
		case <-look.C:
			if !received {
				t.look()
			}
			received = false
		case a := <-t.asked:
			t.answered(a)
		case <-t.ctx.Done():
			if t.ask != nil {
				t.ask.cancel()
				<-t.ask.done
			}
			t.shown.Flush()
			return
		}
	}
}

// silence is how long a run may send no event before the chat checks whether it still works: a process that died
// sends nothing.
const silence = 5 * time.Second

// look reads the state of the task when a run should be working, and reports a run whose process has died.
func (t *talk) look() {
	s := t.s
	if st := s.state(); !st.Working || st.Busy || t.ask != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, silence)
	defer cancel()
	sum, err := s.backend.Task(ctx, t.id)
	if err != nil || sum.Status != "interrupted" {
		return // the state is not known, or the run works or waits, or its end event is on its way
	}
	t.shown.Flush()
	t.gone = true
	s.out.block(s.style.Paint(view.Asked, "interrupted"))
	s.tell("  the process that worked on it has ended; /retry continues")
	s.change(func(st *state) { st.Working = false })
}

// take handles an event. It changes the state at once; its output waits while the chat asks the user.
func (t *talk) take(in incoming) {
	if in.Type == "stream.end" {
		in.err = errors.New("it was deleted or moved (/tasks lists what is there)")
	}
	if in.err != nil {
		t.lost(in)
		return
	}
	t.note(in)
	if t.ask != nil && !t.ends(in) {
		t.held = append(t.held, in)
		return
	}
	t.show(in)
	t.release()
}

// release shows the held events, until one of them asks a question.
func (t *talk) release() {
	for len(t.held) > 0 && t.ask == nil {
		in := t.held[0]
		t.held = t.held[1:]
		t.show(in)
	}
}

func (t *talk) lost(in incoming) {
	if t.ctx.Err() != nil || in.task != t.id {
		return // the task's own events report the subtask's end
	}
	t.s.change(func(st *state) { st.Working, st.Lost = false, true })
	if t.opened(in.err) {
		return
	}
	t.shown.Flush()
	t.s.complain(fmt.Errorf("follow the task: %w", in.err))
}

// opened passes on whether the stream is open, and returns false when nothing waits for that.
func (t *talk) opened(err error) bool {
	synced := t.synced
	if t.synced = nil; synced != nil {
		synced <- err
	}
	return synced != nil
}

// note applies an event to the chat's state.
func (t *talk) note(in incoming) {
	if in.Type == "question.closed" {
		id := in.question()
		t.closed[id] = true
		t.s.change(func(st *state) { st.Waiting, t.s.shut[id] = false, true })
	}
	t.s.live(in, in.task == t.id)
	if in.task != t.id {
		return
	}
	s, run := t.s, in.Text("run")
	switch in.Type {
	case "run.started", "run.queued":
		s.change(func(st *state) { st.Working, st.Waiting, st.run = true, false, run })
	case "run.waiting":
		s.change(func(st *state) { st.Working, st.Waiting = false, true })
	case "run.ended":
		s.change(func(st *state) {
			s.ended[run] = true
			st.ends++
			st.last = Ending{in.Text("outcome"), in.Text("code"), in.Text("reason")}
			if st.run == "" || st.run == run {
				st.Working, st.Waiting = false, false
			}
		})
	case "input.queued":
		s.change(func(st *state) { t.queued(st, in.Text("input"), in.Text("text")) })
	case "input.taken":
		s.change(func(st *state) {
			st.Queue = slices.DeleteFunc(slices.Clone(st.Queue), func(q api.Queued) bool { return q.ID == in.Text("input") })
		})
	case "stream.snapshot":
		if slices.Contains([]string{"running", "queued", "delegated"}, esjson.TextOf(esjson.Member(in.Data, "task"), "status")) {
			s.change(func(st *state) { st.Working = true })
		}
	}
	if s.o.Ask && (in.Type == "run.ended" || in.Type == "task.changed") { // the model may have changed the mode
		t.busy.Go(s.lookAgain)
	}
}

// live applies an event to the status line. own is false for an event of a subtask.
func (s *Session) live(in incoming, own bool) {
	doing := map[string]string{
		"turn.started": "waiting for the model", "message.delta": "writing", "reasoning.delta": "thinking",
		"tool.finished": "waiting for the model",
	}[in.Type]
	switch in.Type {
	case "run.started":
		if own {
			s.change(func(st *state) { st.Live = live{Since: s.o.Now()} })
		}
		return
	case "tool.started":
		doing = "using " + cmp.Or(display.Cut(display.OneLine(in.Text("name")), 30), "a tool")
	case "usage.changed":
		number := func(member string) int64 { return esjson.IntOf(in.Data, member) }
		s.change(func(st *state) {
			st.Facts.Cost += money.USD(number("cost_micros"))
			if own {
				st.Facts.Context = number("input") + number("cache_read") + number("cache_write") + number("output")
			}
		})
		return
	}
	if doing != "" && doing != s.state().Live.Doing {
		s.change(func(st *state) { st.Live.Doing = doing })
	}
}

// queued adds a queued input to the state, except for words that were shown when they were sent.
func (t *talk) queued(st *state, input, text string) {
	for i, q := range st.Queue {
		if q.ID == input { // the input has other words now
			st.Queue = slices.Clone(st.Queue)
			st.Queue[i].Text = text
			t.inputs[input] = text
			return
		}
	}
	if text != "" && text == t.s.sent {
		t.s.sent = "" // the next input with these words is another one
		return
	}
	st.Queue = append(st.Queue[:len(st.Queue):len(st.Queue)], api.Queued{ID: input, Text: text})
	t.inputs[input] = text
}

// show puts an event on the screen.
func (t *talk) show(in incoming) {
	switch in.Type {
	case "stream.snapshot", "run.started", "run.ended", "input.taken":
		if in.task == t.id {
			t.showOwn(in)
		}
		return
	case "question.opened":
		var q api.QuestionOpened
		if json.Unmarshal(in.Data, &q) == nil && q.Question != "" {
			t.put(in.task, q, in.ID)
		}
		return
	case "run.waiting":
		t.shown.Flush()
		return
	case "notice":
		if in.Text("kind") == "plan" && !t.s.o.Display.Verbose {
			return // the end of the run shows what a request costs
		}
	case "subtask.started":
		t.screen(in.task).Show(in.Type, in.Data)
		child := in.Text("child")
		if _, known := t.depth[child]; !known && child != "" {
			t.depth[child] = t.depth[in.task] + 1
			t.listen(child, "0")
		}
		return
	}
	t.screen(in.task).Show(in.Type, in.Data)
}

// showOwn shows an event that the chat shows only for its own task, and not for subtasks.
func (t *talk) showOwn(in incoming) {
	switch in.Type {
	case "stream.snapshot":
		t.opened(nil)
	case "run.started":
		if run := in.Text("run"); run != t.began {
			t.shown.Flush()
			t.began, t.gone = run, false
			t.begin()
		}
	case "run.ended":
		t.ended(in)
	case "input.taken":
		input := in.Text("input")
		if text, ok := t.inputs[input]; ok && !esjson.IsTrue(in.Data, "dropped") {
			delete(t.inputs, input)
			t.shown.Flush()
			t.s.quote(t.s.short(text))
		}
	}
}

// ended shows the result of a run, how the run ended, and what it used.
func (t *talk) ended(in incoming) {
	t.shown.Flush()
	s, run, outcome, reason := t.s, in.Text("run"), in.Text("outcome"), in.Text("reason")
	if outcome == "completed" && reason != "" {
		text := display.Safe(reason)
		if s.o.Result == nil {
			text = s.o.Display.Prose(reason, 0)
		}
		if s.o.Result == nil && s.o.Display.Rich && text != "" {
			text = "\n" + text // a blank line after the earlier words
		}
		s.give(text)
	}
	u := t.shown.Used()
	t.begin()
	ours := outcome == "interrupted" && run != "" && run == s.state().broken
	if ours {
		s.tell("· interrupted and saved; the run continues with your words")
	}
	reported := ours || t.gone && outcome == "interrupted"
	t.began, t.gone = "", false
	if reported { // /now or look has shown the interruption already
		return
	}
	style := view.Asked
	if outcome == "completed" {
		style = view.Dim
	}
	s.out.block(s.style.Paint(style, display.OneLine(u.Text(outcome))))
	if outcome != "completed" && reason != "" {
		s.out.block(s.style.Paint(view.Bad, "  "+display.OneLine(reason)))
	}
	if more := map[string]string{
		"failed": "/retry tries again", "interrupted": "/retry continues",
		"limit": "/limits turns=N cost=USD gives it more; then type how to continue, or /retry",
	}[outcome]; more != "" {
		s.tell("  %s", more)
	}
}

// answered ends a question that the user answered, or asks it again.
func (t *talk) answered(a *ask) {
	<-a.done
	t.ask = nil
	if !a.again {
		t.closed[a.id] = true
	}
	t.release()
	if a.again && t.ask == nil {
		t.put(a.task, a.q, a.seen)
	}
	t.s.change(func(st *state) {
		if t.ask == nil || t.ask.id != a.id {
			st.keep(st.Retype)
			st.Retype = ""
		}
	})
}

// ends reports whether an event closes the present question: another client answered it, or the run is over. If so,
// the chat stops asking and shows the held events; but if one of these asks the next question, ends returns false,
// and the event waits for that question.
func (t *talk) ends(in incoming) bool {
	a := t.ask
	if a.said.Load() {
		return false
	}
	elsewhere := in.Type == "question.closed" && in.question() == a.id
	if !elsewhere && (in.Type != "run.ended" || in.task != t.id && in.task != a.task) {
		return false
	}
	a.cancel()
	<-a.done
	<-t.asked
	t.ask = nil
	ours := false
	t.s.change(func(st *state) {
		ours = t.s.own == a.id
		st.keep(st.Retype) // an answer that came too late, and that answers no other question
		st.Retype = ""
	})
	if elsewhere && !ours && !a.said.Load() {
		switch reason, by := in.Text("reason"), in.Text("by"); {
		case reason != "":
			t.s.tell("· the question is closed: %s", reason)
		case by != "":
			t.s.tell("· answered by %s elsewhere", by)
		default:
			t.s.tell("· answered elsewhere")
		}
	}
	t.release() // earlier events come first
	return t.ask == nil
}

// put shows a question of a task, and asks it when a user is present.
func (t *talk) put(of string, q api.QuestionOpened, seen string) {
	id := of + "." + q.Question
	if t.closed[id] || t.ask != nil && t.ask.id == id {
		return
	}
	d := t.screen(of)
	d.Flush()
	if !t.s.o.Ask {
		d.Question(q)
		t.s.change(func(st *state) { st.Waiting = true })
		return
	}
	ctx, cancel := context.WithCancel(t.ctx)
	a := &ask{id: id, task: of, q: q, seen: seen, cancel: cancel, done: make(chan struct{})}
	t.ask = a
	byKey := false
	t.s.change(func(st *state) {
		t.s.unread() // lines that were typed before the question do not answer it
		st.Asking, st.Letters, st.asks = true, "", id
		if byKey = st.byKey; byKey {
			for _, c := range display.Choices(q) {
				st.Letters += c.Key
			}
		}
	})
	go func() {
		defer close(a.done)
		defer cancel()
		p := display.LinePrompter(d, t.s.answer)
		if byKey {
			p = p.ByKey()
		}
		r, err := p.Ask(ctx, q)
		t.s.change(func(st *state) {
			st.Asking, st.Letters, st.asks = false, "", ""
			for _, line := range t.s.unread() {
				if err == nil { // the line was typed after the answer
					st.keep(line)
				}
			}
		})
		if err == nil {
			a.said.Store(true)
			t.give(a, r)
		}
		t.asked <- a
	}()
}

// unread removes and returns the lines for a question that its prompt has not read. The caller holds mu.
func (s *Session) unread() (lines []string) {
	for len(s.answer) > 0 {
		lines = append(lines, <-s.answer)
	}
	return lines
}

// give sends the answer. An answer that comes too late is no failure: another client was faster. A rejected answer
// leaves the question open: the chat asks again, with the rejected words in the editor.
func (t *talk) give(a *ask, r display.Reply) {
	s := t.s
	if r.Stop {
		s.tell("· stopping and saving")
		s.stop(t.ctx, t.id)
		return
	}
	ends := s.state().ends
	done, err := s.backend.Answer(t.ctx, a.id, api.Answer{Text: r.Text, Approve: r.Approve, Always: r.Always, Seen: a.seen})
	switch {
	case err == nil:
		s.resumed(a.id, done.Run, ends)
	case t.ctx.Err() == nil:
		s.complain(fmt.Errorf("answer: %w", err))
		if a.again = t.stillOpen(a, err); a.again {
			s.change(func(st *state) { st.Retype = retyped(r) })
		}
	}
}

// retyped returns the line that the editor shows again for a rejected answer. It is empty for an answer of one
// letter: Enter alone would give it again.
func retyped(r display.Reply) string {
	switch {
	case r.Approve == nil || r.Text == "":
		return r.Text
	case !*r.Approve:
		return "n " + r.Text
	case r.Always:
		return "a " + r.Text
	}
	return "y " + r.Text
}

// stillOpen reports whether a question is still open after its answer was rejected. When that is unknown, the
// question counts as open: it is better to ask too often than not to ask.
func (t *talk) stillOpen(a *ask, err error) bool {
	if _, is := errors.AsType[*client.Problem](err); !is {
		return true
	}
	list, err := t.s.backend.Questions(t.ctx, a.task)
	return err != nil || slices.ContainsFunc(list, func(q api.Question) bool { return q.ID == a.id })
}

// open asks the questions that were already open when the chat switched to the task.
func (s *Session) open(ctx context.Context, id string) error {
	list, err := s.backend.Questions(ctx, id)
	if err != nil {
		return fmt.Errorf("look for open questions: %w", err)
	}
	var t *talk
	s.locked(func() { t = s.talk })
	for _, q := range list {
		data, _ := json.Marshal(q.QuestionOpened) // a document cannot fail
		select {
		case t.in <- incoming{task: q.Task, Event: client.Event{Type: "question.opened", ID: q.Event, Data: data}}:
		case <-t.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// screen returns the display of a task's events.
func (t *talk) screen(task string) *display.Display {
	return t.shown.Of(task, t.depth[task], func(*display.Display) {})
}

// begin shows what comes next as another run.
func (t *talk) begin() {
	o := t.s.o.Display
	o.Width = o.Columns()
	t.shown = display.NewFamily(display.New(t.s.out, o))
}

// incoming is an event of a task, or the error that ended its stream.
type incoming struct {
	client.Event
	task string
	err  error
}

// question returns the id by which answers name the event's question.
func (in incoming) question() string { return in.task + "." + in.Text("question") }

// short returns the part of sent words that the chat shows: what the user typed. The outputs of command lines are on
// the screen already.
func (s *Session) short(whole string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.brief[whole], whole)
}
