package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// ErrAnswer: the reply is no answer to that question. The question stays open.
var ErrAnswer = errors.New("the answer does not fit the question")

// Questions returns the open questions of all tasks that Roost ran, the oldest first; of one task when ref is not "".
// They are those that tasks count as open_questions, except the last messages of other tools. Those of runs that were
// cancelled or failed while they asked are among them: an answer continues the task.
func (e *Engine) Questions(ctx context.Context, ref string) ([]Asked, error) {
	var refs []store.Ref
	if ref != "" {
		at, err := e.store.FindLatest(ctx, ref)
		if err != nil {
			return nil, err
		}
		refs = append(refs, at)
	} else {
		// Of tasks in any state: a question stays open however its run ended, until it is answered or rewound.
		all, err := e.listTasks(ctx)
		if err != nil {
			return nil, err
		}
		for i, t := range all.Items {
			if t.OpenQuestions > 0 || t.Status == "running" {
				refs = append(refs, e.store.Latest(ctx, all.Refs[i]))
			}
		}
	}
	out := []Asked{}
	for _, at := range refs {
		asked, err := e.openQuestions(ctx, at)
		if err != nil {
			if ref == "" && ctx.Err() == nil {
				continue // a task that cannot be read must not hide the questions of the others
			}
			return nil, err
		}
		out = append(out, asked...)
	}
	slices.SortStableFunc(out, func(a, b Asked) int { return cmp.Compare(a.At, b.At) })
	return out, nil
}

// openQuestions returns the open questions of a task that Roost's runs asked.
func (e *Engine) openQuestions(ctx context.Context, ref store.Ref) ([]Asked, error) {
	var summary api.Summary
	var questions []*task.Question
	var run *task.Run
	err := e.store.WithView(ctx, ref, func(v *store.View) error {
		summary, questions, run = v.Summary, slices.Clone(v.State.Questions), v.State.Run
		return nil
	})
	if err != nil || run == nil || len(questions) == 0 {
		return nil, err
	}
	var out []Asked
	err = e.withRuns(ctx, ref, func(s *task.State) {
		for _, q := range questions {
			now := s.Question(q.Question)
			if now == nil {
				continue // answered since the task was read
			}
			out = append(out, Asked{
				ID: ref.ID + "." + q.Question, Ref: ref, Task: summary, Run: cmp.Or(now.Run, run.ID),
				At: q.Opened, From: events.Cursor{Position: now.Asked}, QuestionOpened: q.QuestionOpened,
			})
		}
	})
	if live := e.working(keyOf(ref)); live != nil {
		for i := range out {
			out[i].Here = live.awaits(out[i].Question)
		}
	}
	return out, err
}

// Reply answers a question of any task. The first answer wins; a later one gets an *AnsweredError with the first. The
// answer is on disk when Reply returns, and the task continues with it.
func (e *Engine) Reply(ctx context.Context, question string, r Reply) (api.Answered, error) {
	dot := strings.LastIndexByte(question, '.')
	if dot < 0 {
		return api.Answered{}, fmt.Errorf("question %q: want the task's id, a dot and the question's id: %w", question, ErrNoQuestion)
	}
	ref, unlock, err := e.lockLatest(ctx, question[:dot])
	if err != nil {
		return api.Answered{}, err
	}
	defer unlock()
	return e.reply(ctx, ref, question[dot+1:], r)
}

// An answer whose run does not ask the question at the moment is retried askRetries times, each after at most
// askRetryPause. The bound is a number of tries and not a time, because a process that was suspended has not tried.
const (
	askRetries    = 40
	askRetryPause = 250 * time.Millisecond
)

// reply is Reply for one question of a task. The caller holds the task's lock.
func (e *Engine) reply(ctx context.Context, ref store.Ref, question string, r Reply) (api.Answered, error) {
	for looks := 1; ; looks++ {
		asked, err := e.openQuestions(ctx, ref)
		if err != nil {
			return api.Answered{}, err
		}
		// Only now: another process may close the question between the two looks.
		if same, known, err := e.previousAnswer(ctx, ref, question, r); known || err != nil {
			return same, err
		}
		i := slices.IndexFunc(asked, func(a Asked) bool { return a.Question == question })
		if i < 0 {
			return api.Answered{}, fmt.Errorf("answer %s of task %s: %w", question, ref.ID, ErrNoQuestion)
		}
		q := asked[i]
		if r.Seen != nil && (r.Seen.Seq < q.From.Seq || r.Seen.Seq == q.From.Seq && r.Seen.Index < q.From.Index) {
			return api.Answered{}, fmt.Errorf("answer %s of task %s: the question came after that event: %w", question, ref.ID, ErrStale)
		}
		answer, err := parseAnswer(q.QuestionOpened, r)
		if err != nil {
			return api.Answered{}, fmt.Errorf("answer %s of task %s: %w", question, ref.ID, err)
		}
		if r.Request.NoApprovals && decides(q.Kind) {
			return api.Answered{}, fmt.Errorf("answer %s of task %s: %w", question, ref.ID, ErrApproval)
		}
		run := e.working(keyOf(ref))
		if run == nil {
			done, err := e.replyToReleased(ctx, q, answer, r)
			if errors.As(err, new(*AnsweredError)) { // maybe by an earlier try of this caller
				continue
			}
			return done, err
		}
		err = run.Answer(question, answer)
		if err != nil && !errors.Is(err, ErrNoQuestion) {
			return api.Answered{}, err
		}
		// Where another answer is on its way to the journal, or the run is about to give the question up, the journal
		// shows which.
		mine, closed := err == nil, false
		if mine {
			closed, err = e.waitClosed(ctx, run, q)
		} else {
			bounded, stop := context.WithTimeout(ctx, askRetryPause)
			closed, err = e.waitClosed(bounded, run, q)
			stop()
			if err != nil && ctx.Err() == nil {
				err = nil
			}
			if !closed && looks >= askRetries {
				return api.Answered{}, fmt.Errorf("answer %s of task %s: a run works on the task and does not wait for that "+
					"answer: %w", question, ref.ID, ErrNoQuestion)
			}
		}
		if err != nil {
			return api.Answered{}, err
		}
		if closed && mine {
			failpoint.Hit("engine.answered")
			return answeredOf(question, ref, answer, run.ID), nil
		}
	}
}

// previousAnswer finds the answer to a question that is closed. The same answer again gets the same result, another one an
// *AnsweredError.
func (e *Engine) previousAnswer(ctx context.Context, ref store.Ref, question string, r Reply) (out api.Answered, known bool, err error) {
	var earlier api.QuestionClosed
	if err := e.withRuns(ctx, ref, func(s *task.State) { earlier, known, _ = s.AnswerTo(question) }); err != nil || !known {
		return out, false, err
	}
	if r.ID == "" || earlier.Input != r.ID {
		return out, true, &AnsweredError{Question: question, Task: ref.ID, Answer: earlier}
	}
	out = answeredOf(question, ref, Answer{Approve: earlier.Approve, Text: earlier.Text, By: earlier.By}, "")
	runs, err := e.runsOf(ctx, ref)
	if err == nil && len(runs) > 0 {
		out.Run = runs[0].ID
	}
	return out, true, err
}

// answeredOf returns the document of an answer to a question of a task; run is the run that continues with it.
func answeredOf(question string, ref store.Ref, a Answer, run string) api.Answered {
	return api.Answered{Question: ref.ID + "." + question, Task: ref.ID, Run: run, Approve: a.Approve, Text: a.Text, By: a.By}
}

// waitClosed waits until a question of a run of this process is closed on disk, or the run has ended.
func (e *Engine) waitClosed(ctx context.Context, run *Run, q Asked) (bool, error) {
	log, err := e.store.Follow(ctx, q.Ref)
	if err != nil {
		return false, err
	}
	defer log.Close()
	wait, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-run.after.settled:
			stop()
		case <-wait.Done():
		}
	}()
	// The run may end before its journal was followed up to there: then the rest is read.
	for _, commits := range []iter.Seq2[journal.Commit, error]{log.Follow(wait, q.From.Seq), log.Read(ctx, q.From.Seq)} {
		for commit, err := range commits {
			if err == nil && closesQuestion(commit, q) {
				return true, nil
			}
		}
	}
	return false, context.Cause(ctx)
}

// closesQuestion reports whether a commit closes a question that was opened before.
func closesQuestion(commit journal.Commit, q Asked) bool {
	for i, raw := range commit.Events {
		if commit.Seq == q.From.Seq && i <= q.From.Index {
			continue // an earlier question of the same id, which this one replaced
		}
		if e, err := task.Decode(raw); err == nil {
			if end, ok := e.(api.QuestionClosed); ok && end.Question == q.Question {
				return true
			}
		}
	}
	return false
}

// replyToReleased continues a task that was released while it waited, under the id of the run that waited.
func (e *Engine) replyToReleased(ctx context.Context, q Asked, answer Answer, r Reply) (api.Answered, error) {
	// After Drain no answer may continue a run that has released its task: the run would have to release it again, with
	// the answer not yet used.
	if err := e.admits(); err != nil && (errors.Is(err, ErrClosed) || e.scheduler.Draining()) {
		return api.Answered{}, err
	}
	if untrusted, err := e.untrusted(ctx, q.Ref); err != nil {
		return api.Answered{}, err
	} else if untrusted != nil { // another root asked
		return api.Answered{}, untrusted
	}
	req := r.Request
	req.Task, req.NewTask, req.RunID, req.Yes = keyOf(q.Ref), "", "", false
	req.Text, req.Images = "", nil
	if q.Kind == agent.KindMistake { // no tool call waits for it: a text is for the model, and a no ends the run
		if answer.Approve != nil && !*answer.Approve {
			return api.Answered{}, fmt.Errorf("answer %s: its run has already ended; to continue the task, answer with a text instead "+
				"of no: %w", q.ID, ErrAnswer)
		}
		req.Text, req.Images = answer.Text, answer.Images
	} else {
		req.answer, req.question = &answer, q.Question
	}
	if err := e.withRuns(ctx, q.Ref, func(s *task.State) {
		req.Person = s.Person // an answer continues the run of whoever ordered it
		if s.Run.Rests() {
			req.RunID = s.Run.ID
		}
	}); err != nil {
		return api.Answered{}, err
	}
	ticket, err := e.startOrQueue(ctx, req, true)
	if err != nil {
		return api.Answered{}, err
	}
	failpoint.Hit("engine.answered")
	return answeredOf(q.Question, q.Ref, answer, ticket.ID), nil
}

// ErrApproval: the caller may not decide that question.
var ErrApproval = errors.New("the caller may not approve or refuse calls")

// decides reports whether questions of a kind want a yes or no that decides what the task may do.
func decides(kind string) bool {
	return kind == agent.KindApproval || kind == agent.KindDamage || kind == agent.KindLimit
}

// parseAnswer reads a reply as an answer. A reply that is unclear, or not of the kind that the question asks for, is no
// answer: silence and doubt are never consent.
func parseAnswer(q api.QuestionOpened, r Reply) (Answer, error) {
	a := Answer{Approve: r.Approve, Text: r.Text, Images: r.Images, Always: r.Always, By: cmp.Or(r.By, "api"), Input: r.ID}
	wrong := func(why string) (Answer, error) { return Answer{}, fmt.Errorf("%w: %s", ErrAnswer, why) }
	if r.Choice != 0 {
		if r.Choice < 0 || r.Choice > len(q.Choices) {
			return wrong(fmt.Sprintf("there is no choice %d; the question has %d", r.Choice, len(q.Choices)))
		}
		if a.Text != "" || a.Approve != nil {
			return wrong("it names a choice, so it may hold no text and no yes or no")
		}
		a.Text = q.Choices[r.Choice-1]
	}
	switch {
	case decides(q.Kind):
		if a.Approve == nil {
			read, ok := agent.Consent(q, a.Text)
			if !ok {
				return wrong("it is neither yes nor no")
			}
			a.Approve, a.Text = read.Approve, read.Text
		}
	case q.Kind == agent.KindMistake:
		if a.Text == "" && a.Approve == nil {
			return wrong("it is empty")
		}
	default:
		if a.Approve != nil {
			return wrong("the question asks for a text, and not for a yes or no")
		}
		if strings.TrimSpace(a.Text) == "" {
			return wrong("it is empty")
		}
	}
	if a.Always && (a.Approve == nil || !*a.Approve || q.Kind != agent.KindApproval) {
		return wrong("only a yes to an approval can hold for the rest of the task")
	}
	return a, nil
}
