package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Send gives words to a task: to the question that is open, to the run that works on it,
// or to a new run. They are on disk when it returns. Delivery "queue" answers no question;
// "interrupt" stops the run that works, saved, and goes on with the words at once. A
// message whose ID the task's journal knows was taken before, and nothing is done.
func (e *Engine) Send(ctx context.Context, ref string, m Message) (Sent, error) {
	if m.Text == "" && len(m.Images) == 0 {
		return Sent{}, &setup.Error{What: "send words to " + ref, Why: "there are none", Try: `say something`}
	}
	if !slices.Contains([]string{"", "auto", "queue", "interrupt"}, m.Delivery) {
		return Sent{}, &setup.Error{What: "send words by " + m.Delivery, Why: "there is no such way", Try: "use auto, queue or interrupt"}
	}
	named := m.ID != ""
	if !named {
		m.ID = uuid.NewString()
	}
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return Sent{}, err
	}
	done, err := e.scheduler.LockTask(ctx, keyOf(at))
	if err != nil {
		return Sent{}, err
	}
	defer done()
	for {
		// A run that has ended and still writes the task's files takes no words: they would be
		// said to go along with a run that is over.
		if run := e.working(keyOf(at)); run != nil && run.ending() {
			if err := run.settle(ctx); err != nil {
				return Sent{}, err
			}
			continue
		}
		sent := Sent{Ref: at}
		if named {
			if known, err := e.sentBefore(ctx, at, m.ID, &sent); known || err != nil {
				return sent, err
			}
		}
		sent, err := e.send(ctx, at, m)
		if !errors.Is(err, store.ErrLetGo) {
			return sent, err
		}
		// The run ended under our hands.
		if run := e.working(keyOf(at)); run != nil {
			if err := run.settle(ctx); err != nil {
				return Sent{}, err
			}
		}
	}
}

// settle waits until a run has let its task go.
func (r *Run) settle(ctx context.Context) error {
	select {
	case <-r.settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send is one try of Send, for a task whose turn the caller has.
func (e *Engine) send(ctx context.Context, ref store.Ref, m Message) (Sent, error) {
	sent := Sent{Ref: ref}
	run := e.working(keyOf(ref))
	if m.Delivery != "queue" {
		if answered, err := e.sayTo(ctx, ref, run, m, &sent); answered || err != nil {
			return sent, err
		}
	}
	if run == nil {
		return e.sendToNobody(ctx, ref, m)
	}
	if n := len(run.task.Inputs()); n >= maxInputs {
		return sent, fmt.Errorf("send words to task %s: %d wait already: %w", ref.ID, n, ErrQueueFull)
	}
	err := run.Enqueue(ctx, task.InputQueued{Input: m.ID, Text: m.Text, Images: m.Images, By: cmp.Or(m.By, "api")})
	if err != nil {
		return sent, err
	}
	failpoint.Hit("desk.sent")
	sent.How, sent.Run, sent.Input = "queued", run.ID, m.ID
	if m.Delivery != "interrupt" {
		return sent, nil
	}
	run.cancel(errSaid{})
	if err := run.settle(ctx); err != nil {
		return sent, err
	}
	if next := e.working(keyOf(ref)); next != nil { // it had just completed, and goes on with the words
		sent.Run = next.ID
		return sent, nil
	}
	if err := e.admits(); err != nil {
		return sent, err
	}
	ticket, err := e.begin(ctx, m.request(ref), "", true)
	sent.How, sent.Run = "started", ticket.ID
	return sent, err
}

// errSaid stops a run that is gone on with at once.
type errSaid struct{}

func (errSaid) Error() string { return "interrupted: somebody said something" }

func (errSaid) Is(err error) bool { return err == agent.ErrDrained }

// request is how a run is started for a message that lies in the queue.
func (m Message) request(ref store.Ref) Request {
	r := m.Request
	r.Task, r.NewTask, r.RunID, r.Text, r.Images = keyOf(ref), "", "", "", nil
	r.Origin = cmp.Or(r.Origin, m.By)
	return r
}

// sentBefore tells what became of words that are known.
func (e *Engine) sentBefore(ctx context.Context, ref store.Ref, id string, sent *Sent) (known bool, err error) {
	err = e.withRuns(ctx, ref, func(s *task.State) {
		if known = sent.answered(ref, s, id); known {
			return
		}
		if sent.Run, known = s.Runs.Inputs[id]; known {
			sent.How, sent.Input = "queued", id
		}
	})
	if known || err != nil {
		return known, err
	}
	return e.sentBelow(ctx, ref, id, sent)
}

// answered reports whether an input answered a question of a task, and which.
func (sent *Sent) answered(ref store.Ref, s *task.State, input string) bool {
	reply, ok := s.Runs.Replies[input]
	if ok {
		sent.How, sent.Question = "answered", ref.ID+"."+reply.Question
		if reply.Run != "" {
			sent.Run = reply.Run
		}
	}
	return ok
}

// sentBelow tells whether words answered a question of a subtask, at any depth: one that has
// gone on since, or is over.
func (e *Engine) sentBelow(ctx context.Context, ref store.Ref, id string, sent *Sent) (known bool, err error) {
	for below, left := []store.Ref{ref}, maxFamily; len(below) > 0 && left > 0 && !known; left-- {
		at := below[0]
		below = below[1:]
		if at != ref {
			if err := e.withRuns(ctx, at, func(s *task.State) { known = sent.answered(at, s, id) }); err != nil || known {
				return known, err
			}
		}
		err := e.store.WithView(ctx, at, func(v *store.View) error {
			for _, child := range slices.Backward(v.State.Children) { // it was one of the newest
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
	return known, nil
}

// sayTo answers the question that a task, or the subtask that it waits for, waits with;
// false when there is none.
func (e *Engine) sayTo(ctx context.Context, ref store.Ref, run *Run, m Message, sent *Sent) (bool, error) {
	at, question := ref, ""
	if run != nil {
		if err := run.hears(ctx); err != nil {
			return false, err
		}
		if what := run.askedWhat(); what != "" {
			asker := run
			for ; asker != nil && asker.askedBy() == ""; asker = asker.under() {
			}
			if asker != nil {
				at, question = asker.task.Ref, asker.askedBy()
			}
		}
	} else {
		below, err := e.askingBelow(ctx, ref)
		if err != nil {
			return false, err
		}
		if below != nil {
			at = *below
		}
		open, err := e.askedOf(ctx, at)
		if err != nil {
			return false, err
		}
		for _, q := range open {
			if q.Kind != mistake {
				question = q.Question
			}
		}
	}
	if question == "" {
		return false, nil
	}
	reply := Reply{ID: m.ID, Text: m.Text, By: cmp.Or(m.By, "api"), Request: m.Request}
	var got Replied
	var err error
	if keyOf(at) == keyOf(ref) {
		got, err = e.reply(ctx, at, question, reply)
	} else {
		got, err = e.Reply(ctx, keyOf(at)+"."+question, reply)
	}
	if errors.Is(err, ErrNoQuestion) {
		return false, nil // somebody was faster: the words are for the task now
	}
	sent.How, sent.Question, sent.Run = "answered", at.ID+"."+question, got.Run.ID
	return true, err
}

// askedBy is the question that the run itself waits with.
func (r *Run) askedBy() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for q, p := range r.answers {
		if !p.taken && p.told() {
			return q
		}
	}
	return ""
}

// askingBelow is the subtask, at any depth, that a task waits for and that waits for a
// person; nil when there is none.
func (e *Engine) askingBelow(ctx context.Context, ref store.Ref) (*store.Ref, error) {
	at := ref
	for depth := 0; depth < maxFamily; depth++ {
		var child string
		asks := false
		err := e.store.WithView(ctx, at, func(v *store.View) error {
			if c := v.State.Awaited(); c != nil {
				child = c.ID
			}
			asks = len(v.State.Questions) > 0
			return nil
		})
		if err != nil {
			return nil, err
		}
		if child == "" {
			if asks && depth > 0 {
				return &at, nil
			}
			return nil, nil
		}
		next, err := e.store.FindChild(ctx, at, child)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return nil, nil
}

// sendToNobody puts words into the queue of a task that no run of this process works on,
// and starts one unless one is queued, or waits for an answer that this is not.
func (e *Engine) sendToNobody(ctx context.Context, ref store.Ref, m Message) (Sent, error) {
	sent := Sent{Ref: ref}
	start := m.request(ref)
	start.Task = keyOf(ref)
	if _, err := e.Receive(ctx, start); err != nil {
		return sent, err
	}
	newest, rests := "", false
	err := e.withRuns(ctx, ref, func(s *task.State) {
		if run := s.Run; run != nil && run.Outcome == "" {
			newest = run.ID
			rests = run.Waiting != "" || run.Started == 0 && e.scheduler.Position(run.ID) > 0
		}
	})
	if err != nil {
		return sent, err
	}
	if rests {
		err := e.own(ctx, ref, func(t *store.Task) error {
			if n := len(t.State().Queue); n >= maxInputs {
				return fmt.Errorf("send words to task %s: %d wait already: %w", ref.ID, n, ErrQueueFull)
			}
			return t.Commit(ctx, task.InputQueued{Input: m.ID, Text: m.Text, Images: m.Images, By: cmp.Or(m.By, "api")})
		})
		if err != nil {
			return sent, err
		}
		failpoint.Hit("desk.sent")
		sent.How, sent.Run, sent.Input = "queued", newest, m.ID
		return sent, nil
	}
	r := m.request(ref)
	r.Text, r.Images = m.Text, m.Images
	ticket, err := e.submit(ctx, ref, r, m.ID)
	sent.How, sent.Run, sent.Input = "started", ticket.ID, m.ID
	if ticket.Ref.ID != "" {
		sent.Ref = ticket.Ref
	}
	return sent, err
}

// LoadInput gives words of a task's queue with their images, which Inputs leaves on the disk
// where they are large.
func (e *Engine) LoadInput(ctx context.Context, ref string, q task.InputQueued) (task.InputQueued, error) {
	if q.ImagesBlob == "" {
		return q, nil
	}
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return q, err
	}
	log, err := e.store.Follow(at)
	if err != nil {
		return q, err
	}
	whole, err := q.Load(store.Payloads(log))
	return whole, errors.Join(err, log.Close())
}

// Inputs are the words that wait in a task's queue, the oldest first.
func (e *Engine) Inputs(ctx context.Context, ref string) ([]task.InputQueued, error) {
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return nil, err
	}
	if run := e.working(keyOf(at)); run != nil && !run.ending() {
		return run.task.Inputs(), nil
	}
	var out []task.InputQueued
	err = e.store.WithView(ctx, at, func(v *store.View) error {
		out = slices.Clone(v.State.Queue)
		return nil
	})
	return out, err
}

// EditInput gives a waiting input other words; nil takes it out of the queue. ErrInput:
// it does not wait any more, or the person's side of the history shows it already.
func (e *Engine) EditInput(ctx context.Context, ref, input string, text *string) error {
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return err
	}
	done, err := e.scheduler.LockTask(ctx, keyOf(at))
	if err != nil {
		return err
	}
	defer done()
	none := fmt.Errorf("change input %s of task %s: %w", input, at.ID, ErrInput)
	find := func(list []task.InputQueued) (task.InputQueued, bool) {
		i := slices.IndexFunc(list, func(q task.InputQueued) bool { return q.Input == input && q.By != "" })
		if i < 0 {
			return task.InputQueued{}, false
		}
		return list[i], true
	}
	// A run that ends under our hands may be followed by the next one, for words that came at
	// the last moment: its queue is that one's then.
	for run := e.working(keyOf(at)); run != nil; run = e.working(keyOf(at)) {
		if run.ending() {
			if err := run.settle(ctx); err != nil {
				return err
			}
			continue
		}
		q, ok := find(run.task.Inputs())
		switch {
		case !ok:
			return none
		case text == nil:
			err = run.task.Unqueue(ctx, input)
		default:
			q.Text = *text
			err = run.task.Enqueue(ctx, q)
		}
		if !errors.Is(err, store.ErrLetGo) {
			if errors.Is(err, store.ErrInputTaken) {
				return none
			}
			return err
		}
		if err := run.settle(ctx); err != nil {
			return err
		}
	}
	waits := false
	if err := e.store.WithView(ctx, at, func(v *store.View) error {
		_, waits = find(v.State.Queue)
		return nil
	}); err != nil {
		return err
	}
	if !waits {
		return none // a look is enough for that
	}
	return e.own(ctx, at, func(t *store.Task) error {
		q, ok := find(t.State().Queue)
		if !ok {
			return none
		}
		if text == nil {
			return t.Commit(ctx, task.InputTaken{Input: input, Dropped: true})
		}
		q.Text = *text
		return t.Commit(ctx, q)
	})
}
