package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// maxInputs is how many inputs may wait in one task's queue. It bounds what a client that never stops can write.
const maxInputs = 256

// Send gives a message to a task: to the open question, to the run that works on the task, or to a new run. The message
// is on disk when Send returns. Delivery "queue" answers no question; "interrupt" stops the working run, saved, and
// continues with the message at once. A message whose ID is in the task's journal was accepted before, and Send does
// nothing.
func (e *Engine) Send(ctx context.Context, ref string, m Message) (api.Sent, error) {
	named := m.ID != ""
	m.ID, m.By = cmp.Or(m.ID, uuid.NewString()), cmp.Or(m.By, "api")
	at, unlock, err := e.lockLatest(ctx, ref)
	if err != nil {
		return api.Sent{}, err
	}
	defer unlock()
	for {
		// A run that has ended and still writes the task's files takes no message: the result would name a run that
		// never uses it.
		if _, err := e.atWork(ctx, keyOf(at)); err != nil {
			return api.Sent{}, err
		}
		sent := api.Sent{Task: at.ID}
		if named {
			if known, err := e.findSent(ctx, at, m.ID, &sent); known || err != nil {
				return sent, err
			}
		}
		sent, err := e.send(ctx, at, m)
		if !errors.Is(err, store.ErrLetGo) {
			return sent, err
		}
		// The run ended while the message was on its way.
		if run := e.working(keyOf(at)); run != nil {
			if err := run.settle(ctx); err != nil {
				return api.Sent{}, err
			}
		}
	}
}

// send is one try of Send. The caller holds the task's lock.
func (e *Engine) send(ctx context.Context, ref store.Ref, m Message) (api.Sent, error) {
	sent := api.Sent{Task: ref.ID}
	run := e.working(keyOf(ref))
	if m.Delivery != "queue" {
		if answered, err := e.answerOpenQuestion(ctx, ref, run, m, &sent); answered || err != nil {
			return sent, err
		}
	}
	if run == nil {
		return e.sendToIdleTask(ctx, ref, m)
	}
	if n := len(run.task.Inputs()); n >= maxInputs {
		return sent, fmt.Errorf("send a message to task %s: %d wait already: %w", ref.ID, n, ErrQueueFull)
	}
	if err := e.admits(); err != nil && m.Delivery == "interrupt" { // no run could follow the one that the message stops
		return sent, err
	}
	err := run.Enqueue(ctx, task.InputQueued{Input: m.ID, Text: m.Text, Images: m.Images, By: m.By})
	if err != nil {
		return sent, err
	}
	failpoint.Hit("engine.sent")
	sent.Delivered, sent.Run, sent.Input = "queued", run.ID, m.ID
	if m.Delivery != "interrupt" {
		return sent, nil
	}
	run.life.cancel(errMessage{})
	if err := run.settle(ctx); err != nil {
		return sent, err
	}
	if out := run.life.outcome; out.State == "completed" && out.Err == nil && run.after.nextErr == nil { // just before the cancel
		if next := run.after.next; next != nil && keyOf(next.task.Ref) == keyOf(ref) {
			sent.Run = next.ID // it has the message, and may have ended already
		}
		return sent, nil
	}
	next := m.request(ref)
	next.queued = true
	ticket, err := e.startOrQueue(ctx, next, true)
	run.after.instead = ticket.run
	sent.Delivered, sent.Run = "started", ticket.ID
	return sent, err
}

// errMessage stops a run because a message interrupts it; the next run begins at once.
type errMessage struct{}

func (errMessage) Error() string { return "interrupted by a message" }

func (errMessage) Is(err error) bool { return err == agent.ErrDrained }

// request starts a run for a message that is in the queue already.
func (m Message) request(ref store.Ref) Request {
	r := m.Request
	r.Task, r.NewTask, r.RunID, r.Text, r.Images = keyOf(ref), "", "", "", nil
	r.Origin = cmp.Or(r.Origin, m.By)
	return r
}

// Took reports whether a task, or a subtask of it, took a message of that id.
func (e *Engine) Took(ctx context.Context, ref store.Ref, id string) bool {
	known, err := e.findSent(ctx, e.store.Latest(ctx, ref), id, &api.Sent{})
	return known && err == nil
}

// findSent finds a message in the journals of the task and its subtasks, at any depth, and fills in what it did. A subtask
// whose question it answered may have continued since, or have ended.
func (e *Engine) findSent(ctx context.Context, ref store.Ref, id string, sent *api.Sent) (known bool, err error) {
	for below, left := []store.Ref{ref}, maxFamily; len(below) > 0 && left > 0; left-- {
		at := below[0]
		below = below[1:]
		err := e.withRuns(ctx, at, func(s *task.State) {
			reply, answered := s.Runs.Replies[id]
			run, queued := s.Runs.Inputs[id]
			switch {
			case answered:
				sent.Delivered, sent.Question, sent.Run = "answered", at.ID+"."+reply.Question, reply.Run
			case queued && at == ref:
				sent.Delivered, sent.Input, sent.Run = "queued", id, run
			}
			known = answered || queued && at == ref
		})
		if known || err != nil {
			return known, err
		}
		err = e.store.WithView(ctx, at, func(v *store.View) error {
			for _, child := range slices.Backward(v.State.Children) { // probably one of the newest
				next, err := e.store.FindChild(ctx, at, child.ID)
				if errors.Is(err, store.ErrNotFound) {
					continue
				}
				if err != nil {
					return err
				}
				below = append(below, next)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// answerOpenQuestion answers the question that a task, or the subtask that it waits for, has open; false when there is none.
func (e *Engine) answerOpenQuestion(ctx context.Context, ref store.Ref, run *Run, m Message, sent *api.Sent) (bool, error) {
	at, question := ref, ""
	if run != nil {
		if err := run.awaitQuestions(ctx); err != nil {
			return false, err
		}
		for asker := run; asker != nil && question == ""; asker = asker.Subtask() {
			at, question = asker.task.Ref, asker.ownQuestion(false)
		}
	} else {
		below, err := e.awaited(ctx, ref, asksUser)
		if err != nil {
			return false, err
		}
		if below != nil {
			at = *below
		}
		open, err := e.openQuestions(ctx, at)
		if err != nil {
			return false, err
		}
		for _, q := range open {
			if q.Kind != agent.KindMistake {
				question = q.Question
			}
		}
	}
	if question == "" {
		return false, nil
	}
	reply := Reply{ID: m.ID, Text: m.Text, Images: m.Images, By: m.By, Request: m.Request}
	var got api.Answered
	var err error
	if keyOf(at) == keyOf(ref) {
		got, err = e.reply(ctx, at, question, reply)
	} else {
		got, err = e.Reply(ctx, keyOf(at)+"."+question, reply)
	}
	if errors.Is(err, ErrNoQuestion) {
		return false, nil // another answer came first: the message is for the task now
	}
	sent.Delivered, sent.Question, sent.Run = "answered", at.ID+"."+question, got.Run
	return true, err
}

// sendToIdleTask puts a message into the queue of a task that no run of this process works on. It starts a run unless
// a run is queued already, or waits for an answer and this message is none.
func (e *Engine) sendToIdleTask(ctx context.Context, ref store.Ref, m Message) (api.Sent, error) {
	sent := api.Sent{Task: ref.ID}
	r := m.request(ref)
	if err := e.Receive(ctx, r); err != nil {
		return sent, err
	}
	runs, err := e.runsOf(ctx, ref)
	if err != nil {
		return sent, err
	}
	if len(runs) > 0 && runs[0].Outcome == "" && (runs[0].State == "waiting" || runs[0].Position > 0) {
		err := e.changeIdle(ctx, ref, func(t *store.Task) error {
			if n := len(t.State().Queue); n >= maxInputs {
				return fmt.Errorf("send a message to task %s: %d wait already: %w", ref.ID, n, ErrQueueFull)
			}
			return t.Commit(ctx, task.InputQueued{Input: m.ID, Text: m.Text, Images: m.Images, By: m.By})
		})
		if err != nil {
			return sent, err
		}
		failpoint.Hit("engine.sent")
		sent.Delivered, sent.Run, sent.Input = "queued", runs[0].ID, m.ID
		return sent, nil
	}
	r.Text, r.Images, r.input = m.Text, m.Images, m.ID
	ticket, err := e.submit(ctx, ref, r)
	sent.Delivered, sent.Run, sent.Input = "started", ticket.ID, m.ID
	if ticket.Ref.ID != "" {
		sent.Task = ticket.Ref.ID
	}
	return sent, err
}

// Inputs returns what waits in a task's queue, the oldest first. An input whose images cannot be read comes without them:
// doctor reports the damage, and the caller can still change or remove the input.
func (e *Engine) Inputs(ctx context.Context, ref string) (list []task.InputQueued, err error) {
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return nil, err
	}
	if run := e.working(keyOf(at)); run != nil && !run.isEnding() {
		list = run.task.Inputs()
	} else if list, err = store.FromView(ctx, e.store, at, func(v *store.View) ([]task.InputQueued, error) {
		return slices.Clone(v.State.Queue), nil
	}); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(q task.InputQueued) bool { return q.ImagesBlob != "" }) {
		return list, nil
	}
	log, err := e.store.Follow(ctx, at)
	if err != nil {
		return nil, err
	}
	for i, q := range list {
		list[i], _ = q.Load(fold.Payloads(log))
	}
	return list, log.Close()
}

// EditInput changes the text of a waiting input; nil removes it from the queue. ErrInput: it is not waiting any more, or
// the history shows it already.
func (e *Engine) EditInput(ctx context.Context, ref, input string, text *string) error {
	at, unlock, err := e.lockLatest(ctx, ref)
	if err != nil {
		return err
	}
	defer unlock()
	none := fmt.Errorf("change input %s of task %s: %w", input, at.ID, ErrInput)
	change := func(list []task.InputQueued) (task.Event, error) {
		i := slices.IndexFunc(list, func(q task.InputQueued) bool { return q.Input == input && q.By != "" })
		switch {
		case i < 0:
			return nil, none
		case text == nil:
			return task.InputTaken{Input: input, Dropped: true}, nil
		}
		q := list[i]
		q.Text = *text
		return q, nil
	}
	works, err := e.changeWorking(ctx, at, func(t *store.Task) error {
		event, err := change(t.Inputs())
		if err == nil {
			err = t.ChangeInput(ctx, event)
		}
		if errors.Is(err, store.ErrInputTaken) {
			return none
		}
		return err
	})
	if works {
		return err
	}
	err = e.store.WithView(ctx, at, func(v *store.View) error { // before the task is taken over
		_, err := change(v.State.Queue)
		return err
	})
	if err != nil {
		return err
	}
	return e.changeIdle(ctx, at, func(t *store.Task) error {
		event, err := change(t.State().Queue)
		if err != nil {
			return err
		}
		return t.Commit(ctx, event)
	})
}
