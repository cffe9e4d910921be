package agent

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
)

// Kinds of questions that belong to no tool call.
const (
	damageKind  = "damage"        // whether to continue in spite of a damaged journal
	limitKind   = "limit"         // whether to continue after so many requests or so much money
	mistakeKind = "mistake_limit" // what a model that keeps going wrong should do instead
)

// Rows and calls of those questions. The model's call ids never have such a form, so an answer stays in the state: it
// records which damage was accepted and from which row on the next count begins.
const (
	damageCall = "damage:"
	limitCall  = "limit:"
	limitRow   = "auto_approval_max_req_reached" // Roo's name
	mistakeRow = "mistake_limit_reached"         // Roo's name
)

// questionID names the question that a row asks.
func questionID(row uint64) string { return "q" + strconv.FormatUint(row, 10) }

// askPerson puts a question to the person. A kept answer goes before the Asker; when no person can be asked the run
// waits. The draft holds the row that shows the question and is committed with it. always returns what else changes
// when the answer holds for more than this once.
func (b *batch) askPerson(ctx context.Context, d *draft, q api.QuestionOpened, always func() []task.Event) (Answer, *Outcome, error) {
	a := b.agent
	kept, ok := a.state().Answer(q)
	if r := b.openRefusal(&task.Call{ID: q.Call}); r != nil && q.Kind == "approval" {
		kept, ok = r.Answer, true
	}
	if ok {
		if a.loop.always == q.Question && kept.Approve != nil && *kept.Approve && always != nil {
			a.loop.always = ""
			d.Put(always()...)
		}
		// The answer was acknowledged, and the run ended before its call used it.
		return Answer{Approve: kept.Approve, Text: kept.Text, By: kept.By}, nil, d.commit(ctx)
	}
	out, err := a.openQuestionFor(ctx, d, q)
	if out != nil || err != nil {
		return Answer{}, out, err
	}
	stop := a.stale.Attend(ctx, "you are asked", attendQuestion)
	answer, err := a.User.Asker.Ask(ctx, q)
	stop()
	if errors.Is(err, ErrUnattended) {
		return Answer{}, waitingOutcome(q), nil
	}
	if err != nil {
		return Answer{}, nil, err
	}
	d = a.draft()
	d.closeQuestion(q, answer)
	if answer.Always && answer.Approve != nil && *answer.Approve && always != nil {
		d.Put(always()...)
	}
	if err := d.commit(ctx); err != nil {
		return Answer{}, nil, err
	}
	err = a.saveJournal(ctx) // the answer is input: saving acknowledges it
	failpoint.Hit("question.closed")
	return answer, nil, err
}

// openQuestionFor opens a question durably; a question that is open already and asks the same stays as it is. An
// outcome means that no person can be asked.
func (a *Agent) openQuestionFor(ctx context.Context, d *draft, q api.QuestionOpened) (*Outcome, error) {
	open := a.state().Question(q.Question)
	if open == nil || !open.Same(q) {
		if open != nil {
			// The open question asks about something else: an answer to that does not answer this.
			d.Put(api.QuestionClosed{Question: q.Question, By: "roost", Reason: "superseded"})
		}
		d.Put(q)
	}
	if err := d.commit(ctx); err != nil {
		return nil, err
	}
	if err := a.saveJournal(ctx); err != nil {
		return nil, err
	}
	failpoint.Hit("question.opened")
	if a.User.Asker == nil {
		return waitingOutcome(q), nil
	}
	return nil, nil
}

func waitingOutcome(q api.QuestionOpened) *Outcome {
	return &Outcome{State: "waiting", Question: q.Question, Reason: q.Text}
}

// closeQuestion records an answer, and shows its words.
func (d *draft) closeQuestion(q api.QuestionOpened, answer Answer) {
	d.Put(api.QuestionClosed{
		Question: q.Question,
		Approve:  answer.Approve,
		Text:     answer.Text,
		By:       answer.By,
		Input:    answer.Input,
	})
	if answer.Text != "" {
		d.addRow(rows.Say(d.agent.stamp(), "user_feedback", answer.Text, []string{}))
	}
}

// Consent reads words as the answer to a question of yes and no, in the way that the words of a resume are read; false
// when they are no answer, or the question is of another kind.
func Consent(q api.QuestionOpened, words string) (Answer, bool) {
	a, ok := inputAnswer(q, Input{Text: words})
	return a, ok && a.Approve != nil
}

// inputAnswer reads the words of a resume as an answer; false when they are none. Words that are neither yes nor no
// refuse an approval and give the model the reason: silence and doubt are never consent. "Yes" without words answers an
// approval only: a question of the model needs words, and a damaged journal needs a person who knows of it.
func inputAnswer(q api.QuestionOpened, in Input) (Answer, bool) {
	if in.Answer != nil {
		return *in.Answer, in.Question == q.Question
	}
	answer := Answer{Text: in.Text, By: "resume"}
	if q.Kind != "approval" && q.Kind != damageKind && q.Kind != limitKind {
		return answer, in.Text != ""
	}
	if in.Text == "" && (!in.Yes || q.Kind == damageKind) {
		return answer, false
	}
	yes := false
	switch strings.ToLower(strings.TrimSpace(in.Text)) {
	case "y", "yes", "approve":
		yes, answer.Text = true, ""
	case "n", "no", "deny":
		answer.Text = ""
	case "":
		yes = in.Yes
	}
	answer.Approve = &yes
	return answer, true
}

// lastQuestionKind is the kind of the newest question row, except resume questions and the person's words after it.
func (a *Agent) lastQuestionKind() string {
	ui := a.state().UI()
	for i := len(ui) - 1; i >= 0; i-- {
		switch kind := ui[i].Kind(); kind {
		case "ask:resume_task", "ask:resume_completed_task", "say:user_feedback", "say:condense_context", "say:condense_context_error":
			continue
		case "ask:completion_result":
			return "completion_result"
		default:
			return ""
		}
	}
	return ""
}
