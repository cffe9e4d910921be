package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// A task whose journal lost commits in its middle does not run until a person agrees: a lost commit may have held a
// rewind, a refusal or the outcome of a command, and nothing that is left shows that. The consent covers the damage
// that the question named; it is kept in the journal and not asked for again. Later damage needs a new consent.
//
// "--yes" is not that consent, and neither are words that came before the person saw the question: both were given
// without knowing of the damage.

// unconfirmedDamage are the problems of the journal that no person has agreed to.
func (a *Agent) unconfirmedDamage() []task.Problem {
	agreed := map[string]bool{}
	for _, q := range a.state().Answered {
		if q.Kind == damageKind && q.Answer.Approve != nil && *q.Answer.Approve {
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
func (a *Agent) confirmDamage(ctx context.Context, d *draft, lost []task.Problem, in *Input) (*Outcome, error) {
	q := a.damageQuestion(lost)
	answer, ok := Answer{}, false
	if open := a.state().Question(q.Question); open != nil && open.Text == q.Text {
		answer, ok = inputAnswer(q, *in)
	}
	if !ok {
		if in.Text != "" || len(in.Images) > 0 {
			d.queueInput(*in)
			*in = Input{}
		}
		out, err := a.openQuestionFor(ctx, d, q)
		if out != nil || err != nil {
			return out, err
		}
		if answer, err = a.User.Asker.Ask(ctx, q); err != nil {
			if errors.Is(err, ErrUnattended) {
				return waitingOutcome(q), nil
			}
			return nil, err
		}
		if answer.Approve == nil { // the answer came from a client that knows only words
			read, _ := inputAnswer(q, Input{Text: answer.Text})
			answer.Approve, answer.Text = read.Approve, read.Text
		}
		d = a.draft()
	} else {
		*in = Input{}
	}
	d.closeQuestion(q, answer)
	if err := d.commit(ctx); err != nil {
		return nil, err
	}
	if err := a.saveJournal(ctx); err != nil {
		return nil, err
	}
	if answer.Approve == nil || !*answer.Approve {
		return &Outcome{State: "denied", Code: damageKind, Reason: "its journal is damaged, and the user refused to continue"}, nil
	}
	return nil, nil
}

// damageQuestion names what is lost and what is known to depend on it.
func (a *Agent) damageQuestion(lost []task.Problem) api.QuestionOpened {
	var seqs, words []string
	for _, p := range lost {
		if seq := strconv.FormatUint(p.Seq, 10); !slices.Contains(seqs, seq) {
			seqs = append(seqs, seq)
		}
		words = append(words, fmt.Sprintf("commit %d: %s", p.Seq, p.Reason))
	}
	text := "The task's log is damaged. " + firstOf(words) + "."
	s := a.state()
	var gone, unsure []string
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
	for _, c := range s.OpenCalls() {
		if c.Outcome() != task.OutcomeFinished {
			unsure = append(unsure, c.Name)
		}
	}
	switch {
	case len(gone) > 0 && found:
		text += " Messages that were lost: " + firstOf(gone) + "; what a file still held of them is back, under other numbers."
	case len(gone) > 0:
		text += " Messages that are gone: " + firstOf(gone) + "."
	}
	if len(unsure) > 0 {
		text += " Calls whose outcome may have been in it: " + firstOf(unsure) + "."
	}
	text += " Rewinds, refusals and file changes that were recorded there are not known. Go on with what is left?"
	id := strings.Join(seqs, ",")
	return api.QuestionOpened{
		Question: "damage-" + seqs[len(seqs)-1],
		Kind:     damageKind,
		Call:     damageCall + id,
		Text:     text,
	}
}

// firstOf joins the first items of a list and counts the rest.
func firstOf(list []string) string {
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}
