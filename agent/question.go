package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
)

// Kinds of questions that differ in what answers them; a question of any other kind asks for a text.
const (
	KindApproval = "approval"      // of a tool call: yes or no
	KindDamage   = "damage"        // whether to continue in spite of a damaged journal: yes or no
	KindLimit    = "limit"         // whether to continue after so many requests or so much money: as above; a text is a yes
	KindMistake  = "mistake_limit" // what a model that keeps going wrong should do instead: text, or no
)

// Rows and calls of the questions that belong to no tool call. The model's call ids never have such a form, so an
// answer stays in the state and records which damage was accepted, or the row from which the next count begins.
const (
	damageCall = "damage:"
	limitCall  = "limit:"
	limitRow   = "auto_approval_max_req_reached" // Roo's name
	mistakeRow = "mistake_limit_reached"         // Roo's name
)

// questionID names the question that a row asks.
func questionID(row uint64) string { return "q" + strconv.FormatUint(row, 10) }

// askPerson asks the person a question. An answer that the journal holds comes before the Asker; when no person can
// be asked the run waits. The draft holds the row that shows the question and is committed with it. always returns
// the further changes when the answer holds for more than this one time.
func (b *batch) askPerson(ctx context.Context, d *draft, q api.QuestionOpened, always func() []task.Event) (Answer, *Outcome, error) {
	a := b.agent
	kept, ok := a.state().Answer(q)
	if r := b.openRefusal(q.Call); r != nil && q.Kind == KindApproval {
		kept, ok = r.Answer, true
	}
	if ok {
		if a.loop.always == q.Question && isYes(kept.Approve) && always != nil {
			a.loop.always = ""
			d.Put(always()...)
		}
		// The answer was acknowledged, and the run ended before its call used it.
		return Answer{Approve: kept.Approve, Text: kept.Text, By: kept.By}, nil, d.commit(ctx)
	}
	return a.ask(ctx, d, q, always)
}

// ask opens a question, waits for the person's answer and records it. An outcome means that no person can be asked.
func (a *Agent) ask(
	ctx context.Context, d *draft, q api.QuestionOpened, always func() []task.Event,
) (Answer, *Outcome, error) {
	// A question that is open already and asks the same stays as it is.
	if open := a.state().Question(q.Question); open == nil || !open.Same(q) {
		if open != nil { // it asks about something else: an answer to that does not answer this
			d.Put(superseded(q.Question))
		}
		d.Put(q)
	}
	err := d.save(ctx)
	failpoint.Hit("question.opened")
	if err != nil {
		return Answer{}, nil, err
	}
	waiting := &Outcome{State: "waiting", Question: q.Question, Reason: q.Text}
	if a.User.Asker == nil {
		return Answer{}, waiting, nil
	}
	stop := a.stale.Attend(ctx, "you are asked", attendQuestion)
	answer, err := a.User.Asker.Ask(ctx, q)
	stop()
	if errors.Is(err, ErrUnattended) {
		return Answer{}, waiting, nil
	}
	if err != nil {
		return Answer{}, nil, err
	}
	if answer.Approve == nil && (q.Kind == KindDamage || q.Kind == KindLimit) { // from a client that knows only words
		read, _ := inputAnswer(q, Input{Text: answer.Text})
		answer.Approve, answer.Text = read.Approve, read.Text
	}
	d = a.draft()
	d.closeQuestion(q, answer)
	if answer.Always && isYes(answer.Approve) && always != nil {
		d.Put(always()...)
	}
	err = d.save(ctx) // the answer is input: saving acknowledges it
	failpoint.Hit("question.closed")
	return answer, nil, err
}

// askAdvice asks the person what a model that goes wrong should do; false when no person can answer right now. It never
// makes the run wait: an unattended run ends by itself. The next run closes an open question of this kind, since the new
// input is for the model anyway.
func (a *Agent) askAdvice(ctx context.Context, call, text string) (Answer, bool, error) {
	if !a.User.Attended || a.User.Asker == nil {
		return Answer{}, false, nil
	}
	d := a.draft()
	row := d.addRow(rows.PlainAsk(a.stamp(), mistakeRow, &text))
	call = cmp.Or(call, KindMistake+":"+questionID(row))
	q := api.QuestionOpened{Question: questionID(row), Kind: KindMistake, Message: row, Call: call, Text: text}
	answer, unattended, err := a.ask(ctx, d, q, nil)
	if unattended != nil {
		return Answer{}, false, a.commit(ctx, superseded(q.Question))
	}
	return answer, err == nil, err
}

// openRefusal returns an unused "no" to a call. It holds for every policy and for every effect that the call may have
// by now: consent is for one change, a refusal is not.
func (b *batch) openRefusal(call string) *task.Answered {
	for _, a := range b.agent.state().Answered {
		if a.Call == call && a.Kind == KindApproval && !isYes(a.Answer.Approve) {
			return &a
		}
	}
	return nil
}

func isYes(approve *bool) bool { return approve != nil && *approve }

// superseded returns the event that closes a question when no call waits for its answer any more.
func superseded(question string) api.QuestionClosed {
	return api.QuestionClosed{Question: question, By: "roost", Reason: "superseded"}
}

// closeQuestion records an answer, and shows its words.
func (d *draft) closeQuestion(q api.QuestionOpened, answer Answer) {
	d.Put(api.QuestionClosed{
		Question: q.Question, Approve: answer.Approve, Text: answer.Text, By: answer.By,
		Input: answer.Input,
	})
	if answer.Text != "" || len(answer.Images) > 0 {
		row := d.addRow(rows.Words(d.agent.stamp(), "user_feedback", answer.Text, answer.Images))
		words := Input{Images: answer.Images}
		if (q.Kind == KindLimit || q.Kind == KindDamage) && isYes(answer.Approve) { // no call brings the text to the model
			words.Text = answer.Text
		}
		if words.Given() {
			d.queueShown(row, words)
		}
	}
}

// Consent reads words as the answer to a question of yes and no, by the same rules as the words of a resume; false
// when they are no answer, or the question is of another kind.
func Consent(q api.QuestionOpened, words string) (Answer, bool) {
	a, ok := inputAnswer(q, Input{Text: words})
	return a, ok && a.Approve != nil
}

// inputAnswer reads the words of a resume as an answer; false when they are none. Words that are neither yes nor no
// refuse an approval and give the model the reason: silence and doubt are never consent. At a limit they are for the
// model, and giving them means to continue. "Yes" without words answers an approval or a limit only: a question of the
// model needs words, and a damaged journal needs a person who knows of it.
func inputAnswer(q api.QuestionOpened, in Input) (Answer, bool) {
	if in.Answer != nil {
		return *in.Answer, in.Question == q.Question
	}
	answer := Answer{Text: in.Text, Images: in.Images, By: "resume"}
	if q.Kind != KindApproval && q.Kind != KindDamage && q.Kind != KindLimit {
		return answer, in.Text != ""
	}
	if in.Text == "" && (!in.Yes || q.Kind == KindDamage) {
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
	default:
		yes = q.Kind == KindLimit
	}
	answer.Approve = &yes
	return answer, true
}

// showsCompletion reports whether the newest question row shows a completion, apart from resume questions and the
// person's words after it.
func (a *Agent) showsCompletion() bool {
	for _, m := range slices.Backward(a.state().UI()) {
		switch m.Kind() {
		case "ask:resume_task", "ask:resume_completed_task", "say:user_feedback", "say:condense_context", "say:condense_context_error":
			continue
		}
		return m.Kind() == "ask:completion_result"
	}
	return false
}

// A task whose journal lost commits in its middle does not run until a person agrees: a lost commit may have held a
// rewind, a refusal or the outcome of a command, and nothing that is left shows that. The consent covers the damage
// that the question named; it is kept in the journal and not asked for again. Later damage needs a new consent.
//
// "--yes" is not that consent, and neither are words that came before the person saw the question: both were given
// without knowing of the damage.

// unconfirmedDamage returns the problems of the journal that no person has agreed to.
func (a *Agent) unconfirmedDamage() []task.Problem {
	agreed := map[string]bool{}
	for _, q := range a.state().Answered {
		if q.Kind == KindDamage && isYes(q.Answer.Approve) {
			for seq := range strings.SplitSeq(strings.TrimPrefix(q.Call, damageCall), ",") {
				agreed[seq] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(a.state().Problems), func(p task.Problem) bool {
		return agreed[strconv.FormatUint(p.Seq, 10)]
	})
}

// confirmDamage asks whether to continue in spite of the damage. The draft holds the run's start. It returns nil when
// the person has agreed; words that came along and do not answer are kept for later.
func (a *Agent) confirmDamage(ctx context.Context, d *draft, lost []task.Problem, in *Input) (out *Outcome, err error) {
	q := a.damageQuestion(lost)
	answer, answered := Answer{}, false
	if open := a.state().Question(q.Question); open != nil && open.Text == q.Text {
		answer, answered = inputAnswer(q, *in)
	}
	if answered {
		d.closeQuestion(q, answer)
		err = d.save(ctx)
	} else {
		if in.Text != "" || len(in.Images) > 0 {
			d.queueInput(*in)
		}
		answer, out, err = a.ask(ctx, d, q, nil)
	}
	if answered || in.Text != "" || len(in.Images) > 0 {
		*in = Input{}
	}
	if out == nil && err == nil && !isYes(answer.Approve) {
		out = &Outcome{State: "denied", Code: KindDamage, Reason: "its journal is damaged, and the user refused to continue"}
	}
	return out, err
}

// maxNamed is how many lost things of a kind a question names.
const maxNamed = 5

// damageQuestion names what is lost and what is known to depend on it.
func (a *Agent) damageQuestion(lost []task.Problem) api.QuestionOpened {
	var seqs, words []string
	for _, p := range lost {
		if seq := strconv.FormatUint(p.Seq, 10); !slices.Contains(seqs, seq) {
			seqs = append(seqs, seq)
		}
		words = append(words, fmt.Sprintf("commit %d: %s", p.Seq, p.Reason))
	}
	text := "The task's log is damaged. " + rows.FirstOf(words, maxNamed) + "."
	s := a.state()
	var gone []string
	lostCommit, found := false, false
	for id := uint64(1); id < s.NextMessage(); id++ {
		switch m := s.Message(id); {
		case m == nil:
		case m.Missing || m.Hidden == "lost":
			gone = append(gone, "#"+strconv.FormatUint(id, 10))
			lostCommit = lostCommit || m.Hidden == "lost"
		case m.Foreign && lostCommit:
			found = true // a file still held some of them, under new numbers
		}
	}
	unsure := api.Some(s.OpenCalls(), func(c *task.Call) (string, bool) { return c.Name, c.Outcome() != task.OutcomeFinished })
	switch {
	case len(gone) > 0 && found:
		text += " Messages that were lost: " + rows.FirstOf(gone, maxNamed) + "; what a file still held of them is back, under other numbers."
	case len(gone) > 0:
		text += " Messages that are gone: " + rows.FirstOf(gone, maxNamed) + "."
	}
	if len(unsure) > 0 {
		text += " Calls whose outcome may have been in it: " + rows.FirstOf(unsure, maxNamed) + "."
	}
	text += " Rewinds, refusals and file changes that were recorded there are not known. Go on with what is left?"
	id := strings.Join(seqs, ",")
	return api.QuestionOpened{
		Question: "damage-" + seqs[len(seqs)-1], Kind: KindDamage, Call: damageCall + id,
		Text: text,
	}
}
