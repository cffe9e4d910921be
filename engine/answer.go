package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
)

// ErrNoQuestion: the question is not open, or was answered already.
var ErrNoQuestion = errors.New("no such open question")

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
	r.accept() // what led to the question is on disk
	r.engine.scheduler.Dispatch()
	var over <-chan time.Time
	if r.req.Hold > 0 {
		timer := time.NewTimer(r.req.Hold)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case answer := <-ch:
		return given(answer)
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
		return given(answer)
	default:
		return Answer{}, agent.ErrUnattended
	}
}

func given(answer Answer) (Answer, error) {
	if answer.By == stopAnswer {
		return Answer{}, agent.ErrStop
	}
	return answer, nil
}

// await begins to listen for a question's answer, or gives what listens already: the
// question may be seen, and answered, before the agent has come to listen.
func (r *Run) await(question string) chan Answer {
	if !r.req.Interactive {
		return nil
	}
	r.worked() // until here; from now on it waits
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.answers[question]
	if !ok {
		p = &hearing{ch: make(chan Answer, 1), open: make(chan struct{})}
		r.answers[question] = p
	}
	return p.ch
}

// hearing waits for the answer to a question.
type hearing struct {
	ch    chan Answer
	taken bool
	open  chan struct{} // closed once the question is on disk; front doors see it only then
}

// isOpen reports whether the question is on disk.
func (h *hearing) isOpen() bool {
	select {
	case <-h.open:
		return true
	default:
		return false
	}
}

// opened notes that a question is on disk.
func (r *Run) opened(question string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.answers[question]; p != nil && !p.isOpen() {
		close(p.open)
	}
}

// awaitQuestions waits until every question that the run, or a subtask below it, is about to ask is on disk. A reader
// in between would see neither a working run nor its question.
func (r *Run) awaitQuestions(ctx context.Context) error {
	for ; r != nil; r = r.under() {
		r.mu.Lock()
		var coming []*hearing
		for _, p := range r.answers {
			if !p.isOpen() {
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

// stopAnswer marks the answer "stop and save".
const stopAnswer = "\x00stop"

// Answer answers an open question. The first answer wins; a second one, and one
// to a question that is not open, is ErrNoQuestion.
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

// Stop answers a question by stopping the run, saved; it can be resumed.
func (r *Run) Stop(question string) error {
	return r.Answer(question, Answer{By: stopAnswer})
}
