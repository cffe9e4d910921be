package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/task"
)

// ErrNoQuestion: the question is not open, or was answered already.
var ErrNoQuestion = errors.New("no such open question")

// asker passes the agent's questions to whoever listens to the run.
type asker struct{ run *Run }

func (a asker) Ask(ctx context.Context, q task.QuestionOpened) (Answer, error) {
	r := a.run
	if !r.interactive {
		return Answer{}, agent.ErrNobody
	}
	ch := make(chan Answer, 1)
	r.mu.Lock()
	r.answers[q.Question] = ch
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.answers, q.Question)
		r.mu.Unlock()
		r.touch() // the clock starts anew: the person's time was not the run's
	}()
	select {
	case answer := <-ch:
		if answer.By == stopAnswer {
			return Answer{}, agent.ErrStop
		}
		return answer, nil
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
}

// stopAnswer marks the answer "stop and save".
const stopAnswer = "\x00stop"

// Answer answers an open question. The first answer wins; a second one, and one
// to a question that is not open, is ErrNoQuestion.
func (r *Run) Answer(question string, answer Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch, ok := r.answers[question]
	if !ok {
		return fmt.Errorf("answer %s of task %s: %w", question, r.TaskID, ErrNoQuestion)
	}
	delete(r.answers, question)
	ch <- answer
	return nil
}

// Stop answers a question by stopping the run, saved; it can be resumed.
func (r *Run) Stop(question string) error {
	return r.Answer(question, Answer{By: stopAnswer})
}
