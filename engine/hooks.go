package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/budget"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// asker passes the agent's questions to whoever listens to the run.
type asker struct{ run *Run }

func (a asker) Ask(ctx context.Context, q api.QuestionOpened) (Answer, error) {
	r := a.run
	if !r.req.Interactive {
		return Answer{}, agent.ErrUnattended
	}
	ch := r.await(q.Question)
	r.opened(q.Question)
	defer func() {
		r.worked()
		r.mu.Lock()
		delete(r.answers, q.Question)
		r.mu.Unlock()
		r.touch() // the idle timeout starts again: the wait for the user does not count
	}()
	r.life.accept() // what led to the question is on disk
	r.engine.scheduler.Dispatch()
	var over <-chan time.Time
	if r.req.Hold > 0 {
		over = time.After(r.req.Hold)
	}
	select {
	case answer := <-ch:
		return answer, nil
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	case <-over:
	case <-r.life.released:
	}
	// The run does not wait any more. An answer that it already took counts.
	r.worked()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.answers, q.Question)
	select {
	case answer := <-ch:
		return answer, nil
	default:
		return Answer{}, agent.ErrUnattended
	}
}

// await begins to listen for the answer to a question, and returns the channel for it. Commit calls it before anybody
// can see the question, because the answer may come before the agent asks for it.
func (r *Run) await(question string) chan Answer {
	if !r.req.Interactive {
		return nil
	}
	r.worked() // counts the time until now; from now on the run waits
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.answers[question]
	if !ok {
		p = &hearing{ch: make(chan Answer, 1), open: make(chan struct{})}
		r.answers[question] = p
	}
	return p.ch
}

// opened notes that a question is on disk.
func (r *Run) opened(question string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.answers[question]; p != nil && !isClosed(p.open) {
		close(p.open)
	}
}

// awaitQuestions waits until every question that the run, or a subtask below it, is about to ask is on disk. A reader
// in between would see neither a working run nor its question.
func (r *Run) awaitQuestions(ctx context.Context) error {
	for ; r != nil; r = r.Subtask() {
		r.mu.Lock()
		var coming []*hearing
		for _, p := range r.answers {
			if !isClosed(p.open) {
				coming = append(coming, p)
			}
		}
		r.mu.Unlock()
		for _, p := range coming {
			select {
			case <-p.open:
			case <-r.after.settled:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// openQuestion returns the question that the run, or a subtask below it, has open, as Reply takes it; "" for none.
func (r *Run) openQuestion() string {
	for ; r != nil; r = r.Subtask() {
		if q := r.ownQuestion(true); q != "" {
			return r.TaskID + "." + q
		}
	}
	return ""
}

// ownQuestion returns the question that the run itself has open; "" for none. answered: also one whose answer the agent has
// not come for yet.
func (r *Run) ownQuestion(answered bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for q, p := range r.answers {
		if isClosed(p.open) && (answered || !p.taken) {
			return q
		}
	}
	return ""
}

// awaits reports whether the run waits for an answer to the question.
func (r *Run) awaits(question string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.answers[question]
	return ok && !p.taken
}

// Answer answers an open question. The first answer wins. ErrNoQuestion: the question has an answer, or is not open.
func (r *Run) Answer(question string, answer Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.answers[question]
	if !ok || p.taken {
		return fmt.Errorf("answer %s of task %s: %w", question, r.TaskID, ErrNoQuestion)
	}
	p.taken = true // it stays until the agent has come for it
	p.ch <- answer
	return nil
}

// observer is a run's agent.Observer.
type observer struct{ *Run }

// Accepted notes that the run's input is durable; words for the subtask are once that one has begun with them.
func (r observer) Accepted() {
	if w := r.words.child; w.Text == "" && len(w.Images) == 0 {
		r.life.accept()
	}
}

// Notice broadcasts a warning.
func (r observer) Notice(text string) { r.notice(text) }

// Expect shows what the first request sends and costs.
func (r observer) Expect(text string) { r.publishNotice("plan", text) }

// Live broadcasts streamed text.
func (r observer) Live(d agent.Delta) {
	if d.Type != "wait.delta" { // to wait is to be idle
		r.touch()
	}
	r.stream.owner.Publish(r.liveEvent(d.Type, r.stream.lastStep.Load(), func(o *esjson.Object) {
		if d.Message != 0 {
			o.Int("message", int64(d.Message))
		}
		if d.Call != "" {
			o.String("call", d.Call)
		}
		o.Int("ts", d.TS)
		o.Int("offset", int64(d.Offset))
		o.String("text", d.Text)
	}))
}

// recorder is the task as the agent of a run sees it. With each commit it keeps, for the events, what the line of the
// journal does not hold.
type recorder struct {
	*store.Task
	run   *Run
	spend *budget.Spend
}

// Commit makes a commit and passes it to the task's topic.
func (r recorder) Commit(ctx context.Context, committed ...task.Event) (err error) {
	for _, e := range committed {
		if q, opened := e.(api.QuestionOpened); opened {
			// Before anybody can see the question: its answer may come at once.
			r.run.await(q.Question)
		}
	}
	r.run.stream.owner.Commit(func() (uint64, events.Context, bool) {
		before := r.State().Seq
		err = r.Task.Commit(ctx, committed...)
		s := r.State()
		known, unread := events.ContextOf(s, committed)
		return s.Seq, known, s.Seq > before && unread == nil
	})
	s := r.State()
	if slices.ContainsFunc(committed, func(e task.Event) bool { _, words := e.(task.MessageTextSaved); return !words }) {
		r.run.stream.lastStep.Store(s.Seq)
	}
	r.run.touch()
	r.spend.Update(s.Usage.CostMicros)
	return err
}

// Barrier is store.Task.Barrier. It also records how much of the run's cost is on disk, for the budgets of other runs.
func (r recorder) Barrier(ctx context.Context) error {
	spent := r.spend.Spent()
	err := r.Task.Barrier(ctx)
	if err == nil {
		r.spend.SetSaved(spent)
	}
	return err
}
