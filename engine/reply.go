package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// ErrAnswer: what was said is no answer to that question. The question stays open.
var ErrAnswer = errors.New("it does not answer that question")

// Kinds of questions that differ in what answers them.
const (
	mistake     = "mistake_limit" // the model goes wrong: words, or no
	askApproval = "approval"      // yes or no
	askDamage   = "damage"        // yes or no, to going on in spite of it
	askLimit    = "limit"         // yes or no, to going on; words are a yes
)

// Questions are the open questions of all tasks that Roost ran, the oldest first; of one
// task when ref is not "". They are those that tasks count as open_questions, except other
// tools' last words: also of runs that were cancelled or failed while they asked, whose task
// an answer goes on with.
func (e *Engine) Questions(ctx context.Context, ref string) ([]Asked, error) {
	var refs []store.Ref
	if ref != "" {
		at, err := e.store.FindLatest(ctx, ref)
		if err != nil {
			return nil, err
		}
		refs = append(refs, at)
	} else {
		// Of a task of any state: a question stays open however its run ended, until it is
		// answered or rewound.
		all, err := e.listed(ctx)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(t store.Summary) bool { return t.OpenQuestions == 0 && t.Status != "running" })
		places, err := e.places(ctx, all)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			if at, ok := places[t.Source+":"+t.ID]; ok { // or it went meanwhile
				refs = append(refs, e.store.Latest(at))
			}
		}
	}
	out := []Asked{}
	for _, at := range refs {
		asked, err := e.askedOf(ctx, at)
		if err != nil {
			if ref == "" && ctx.Err() == nil {
				continue // one task that cannot be read hides no other's questions
			}
			return nil, err
		}
		out = append(out, asked...)
	}
	slices.SortStableFunc(out, func(a, b Asked) int { return cmp.Compare(a.At, b.At) })
	return out, nil
}

// askedOf are the open questions of a task that runs of ours asked.
func (e *Engine) askedOf(ctx context.Context, ref store.Ref) ([]Asked, error) {
	v, err := e.store.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	summary := v.Summary
	questions := slices.Clone(v.State.Questions)
	run := v.State.Run
	if err := v.Close(); err != nil {
		return nil, err
	}
	if run == nil || len(questions) == 0 {
		return nil, nil
	}
	var out []Asked
	err = e.withRuns(ctx, ref, func(s *task.State) {
		for _, q := range questions {
			now := s.Question(q.Question)
			if now == nil {
				continue // answered since the task was read
			}
			out = append(out, Asked{
				ID:             ref.ID + "." + q.Question,
				Ref:            ref,
				Task:           summary,
				Run:            cmp.Or(now.Run, run.ID),
				At:             q.Opened,
				From:           events.Cursor{Position: now.Asked},
				QuestionOpened: q.QuestionOpened,
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

// awaits reports whether the run waits for the answer to a question.
func (r *Run) awaits(question string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.answers[question]
	return ok && !p.taken
}

// Reply answers a question of any task. The first answer wins: an *AnsweredError says
// whose. It is on disk when Reply returns, and the task goes on with it.
func (e *Engine) Reply(ctx context.Context, question string, r Reply) (Replied, error) {
	dot := strings.LastIndexByte(question, '.')
	if dot < 0 {
		return Replied{}, fmt.Errorf("question %q: it is named by its task's id, a dot and its own: %w", question, ErrNoQuestion)
	}
	ref, err := e.store.FindLatest(ctx, question[:dot])
	if err != nil {
		return Replied{}, err
	}
	done, err := e.scheduler.LockTask(ctx, keyOf(ref))
	if err != nil {
		return Replied{}, err
	}
	defer done()
	return e.reply(ctx, ref, question[dot+1:], r)
}

// An answer waits so often, and each time so long, for a run that does not ask its question
// just now. Looks are counted and not time: a process that stood still has not looked.
const (
	unheardLooks = 40
	unheardLook  = 250 * time.Millisecond
)

// reply is Reply for a task whose turn the caller has.
func (e *Engine) reply(ctx context.Context, ref store.Ref, question string, r Reply) (Replied, error) {
	for looks := 1; ; looks++ {
		if same, known, err := e.answeredBefore(ctx, ref, question, r); known || err != nil {
			return same, err
		}
		asked, err := e.askedOf(ctx, ref)
		if err != nil {
			return Replied{}, err
		}
		i := slices.IndexFunc(asked, func(a Asked) bool { return a.Question == question })
		if i < 0 {
			return Replied{}, fmt.Errorf("answer %s of task %s: %w", question, ref.ID, ErrNoQuestion)
		}
		q := asked[i]
		if r.Seen != nil && (r.Seen.Seq < q.From.Seq || r.Seen.Seq == q.From.Seq && r.Seen.Index < q.From.Index) {
			return Replied{}, fmt.Errorf("answer %s of task %s: the question came after that event: %w", question, ref.ID, ErrStale)
		}
		answer, err := answerTo(q.QuestionOpened, r)
		if err != nil {
			return Replied{}, fmt.Errorf("answer %s of task %s: %w", question, ref.ID, err)
		}
		run := e.working(keyOf(ref))
		switch {
		case run == nil && r.Stop:
			return Replied{Asked: q}, nil // it is stopped and saved
		case run == nil:
			return e.replyParked(ctx, q, answer, r)
		}
		err = run.Answer(question, answer)
		if err != nil && !errors.Is(err, ErrNoQuestion) {
			return Replied{}, err
		}
		mine := err == nil
		if mine && r.Stop {
			select {
			case <-run.settled:
			case <-ctx.Done():
				return Replied{}, context.Cause(ctx)
			}
			info, err := e.infoOf(ctx, ref, run.ID)
			return Replied{Asked: q, Answer: answer, Run: info}, err
		}
		// Somebody's answer is on its way to the log, or the run is about to let the
		// question go: which it was is seen there.
		var closed bool
		if mine {
			closed, err = e.settledOn(ctx, run, q)
		} else {
			glance, stop := context.WithTimeout(ctx, unheardLook)
			closed, err = e.settledOn(glance, run, q)
			stop()
			if err != nil && ctx.Err() == nil {
				err = nil
			}
			if !closed && looks >= unheardLooks {
				return Replied{}, fmt.Errorf("answer %s of task %s: a run works on it and does not wait for that: %w", question, ref.ID, ErrNoQuestion)
			}
		}
		if err != nil {
			return Replied{}, err
		}
		if closed && mine {
			failpoint.Hit("desk.answered")
			info, err := e.infoOf(ctx, ref, run.ID)
			return Replied{Asked: q, Answer: answer, Run: info}, err
		}
	}
}

// answeredBefore says what became of a question that is not open any more: the same answer
// again gets what it got, another one an *AnsweredError.
func (e *Engine) answeredBefore(ctx context.Context, ref store.Ref, question string, r Reply) (out Replied, known bool, err error) {
	var said task.QuestionClosed
	if err := e.withRuns(ctx, ref, func(s *task.State) { said, known, _ = s.AnswerTo(question) }); err != nil || !known {
		return out, false, err
	}
	if r.ID == "" || said.Input != r.ID {
		return out, true, &AnsweredError{Question: question, Task: ref.ID, Answer: said}
	}
	out.Asked = Asked{ID: ref.ID + "." + question, Ref: ref, QuestionOpened: task.QuestionOpened{Question: question}}
	out.Answer = Answer{Approve: said.Approve, Text: said.Text, By: said.By, Input: said.Input}
	runs, err := e.runsOf(ctx, ref)
	if err == nil && len(runs) > 0 {
		out.Run = runs[0]
	}
	return out, true, err
}

// settledOn waits until a question that a run of this process waited with is closed on disk,
// or the run is over.
func (e *Engine) settledOn(ctx context.Context, run *Run, q Asked) (bool, error) {
	log, err := e.store.Follow(q.Ref)
	if err != nil {
		return false, err
	}
	defer log.Close()
	wait, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-run.settled:
			stop()
		case <-wait.Done():
		}
	}()
	for commit, err := range log.Follow(wait, q.From.Seq) {
		if err != nil {
			break
		}
		if closes(commit, q) {
			return true, nil
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	// The run may have come to its end before its log was read up to there.
	for commit, err := range log.Read(ctx, q.From.Seq) {
		if err == nil && closes(commit, q) {
			return true, nil
		}
	}
	return false, context.Cause(ctx)
}

// closes reports whether a commit closes a question that was opened before.
func closes(commit journal.Commit, q Asked) bool {
	for i, raw := range commit.Events {
		if commit.Seq == q.From.Seq && i <= q.From.Index {
			continue // what the question took the place of
		}
		if e, err := task.Decode(raw); err == nil {
			if end, ok := e.(task.QuestionClosed); ok && end.Question == q.Question {
				return true
			}
		}
	}
	return false
}

// replyParked goes on with a task that was let go while it waited, under the name of the
// run that waited.
func (e *Engine) replyParked(ctx context.Context, q Asked, answer Answer, r Reply) (Replied, error) {
	if err := e.admitsAnswers(); err != nil {
		return Replied{}, err
	}
	var held *UntrustedError
	err := e.store.WithView(ctx, q.Ref, func(v *store.View) (err error) {
		held, err = e.held(ctx, q.Ref, v.State)
		return err
	})
	if err != nil {
		return Replied{}, err
	}
	if held != nil { // it was not this root that asked
		return Replied{}, held
	}
	req := r.Request
	req.Task, req.NewTask, req.RunID, req.Yes = keyOf(q.Ref), "", "", false
	req.Text, req.Images = "", nil
	if q.Kind == mistake { // no call waits with it: words are for the model, and a no ends it
		if answer.Approve != nil && !*answer.Approve {
			return Replied{}, fmt.Errorf("answer %s: nothing works on the task; words go on with it: %w", q.ID, ErrAnswer)
		}
		req.Text = answer.Text
	} else {
		req.answer, req.question = &answer, q.Question
	}
	if err = e.withRuns(ctx, q.Ref, func(s *task.State) {
		if s.Run.Rests() {
			req.RunID = s.Run.ID
		}
	}); err != nil {
		return Replied{}, err
	}
	ticket, err := e.begin(ctx, req, "", true)
	if err != nil {
		return Replied{}, err
	}
	failpoint.Hit("desk.answered")
	out := Replied{Asked: q, Answer: answer, Run: ticket.RunInfo}
	if q.Kind == mistake {
		return out, nil
	}
	// Between the look at the question and the run's start another process may have had
	// the task.
	var said task.QuestionClosed
	var ok bool
	if err := e.withRuns(ctx, q.Ref, func(s *task.State) { said, ok, _ = s.AnswerTo(q.Question) }); err != nil {
		return out, err
	}
	if ok && (said.By != answer.By || said.Text != answer.Text && q.Kind != askLimit) {
		return out, &AnsweredError{Question: q.Question, Task: q.Ref.ID, Answer: said}
	}
	return out, nil
}

// answerTo reads what a person says as an answer. What is neither clear nor asked for is
// none: silence and doubt are never consent.
func answerTo(q task.QuestionOpened, r Reply) (Answer, error) {
	a := Answer{Approve: r.Approve, Text: r.Text, Always: r.Always, By: cmp.Or(r.By, "api"), Input: r.ID}
	wrong := func(why string) (Answer, error) { return Answer{}, fmt.Errorf("%w: %s", ErrAnswer, why) }
	if r.Stop {
		return Answer{By: stopAnswer}, nil
	}
	if r.Choice != 0 {
		if r.Choice < 0 || r.Choice > len(q.Choices) {
			return wrong(fmt.Sprintf("there is no choice %d, but %d of them", r.Choice, len(q.Choices)))
		}
		if a.Text != "" || a.Approve != nil {
			return wrong("it is a choice and something else")
		}
		a.Text = q.Choices[r.Choice-1]
	}
	switch q.Kind {
	case askApproval, askDamage, askLimit:
		if a.Approve == nil {
			read, ok := agent.Consent(q, a.Text)
			if !ok {
				return wrong("it is neither yes nor no")
			}
			a.Approve, a.Text = read.Approve, read.Text
		}
	case mistake:
		if a.Text == "" && a.Approve == nil {
			return wrong("it says nothing")
		}
	default:
		if a.Approve != nil {
			return wrong("it is asked for words, and not for a yes or no")
		}
		if strings.TrimSpace(a.Text) == "" {
			return wrong("it says nothing")
		}
	}
	if a.Always && (a.Approve == nil || !*a.Approve || q.Kind != askApproval) {
		return wrong("only a yes to an approval can hold for the rest of the task")
	}
	return a, nil
}
