package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/controltool"
)

// maxRepeats is how often the same call may be made in a row. The next one is not run: a model in a loop spends money
// until a person notices.
//
// The calls are counted in the history, so a restart counts the same. When a person was asked about it, the
// count restarts, as in Roo. Without a person each further call fails and counts as a mistake of the model, and so the
// run ends; Roo would wait for a person.
const maxRepeats = 3

// largestInput bounds inputs that are compared by their JSON values, in bytes; larger ones are compared byte by byte.
const largestInput = 64 << 10

// countRepeats is how many calls in a row, up to this one, are the same.
func (a *Agent) countRepeats(c *task.Call) int {
	s := a.state()
	calls := s.Calls()
	i := len(calls) - 1
	for i >= 0 && calls[i] != c {
		i--
	}
	n := 1
	for i--; i >= 0 && n <= maxRepeats; i-- {
		before := calls[i]
		if m := s.Message(before.Message); m == nil || m.Hidden != "" {
			continue // a rewind took it back
		}
		if before.Name != c.Name || wasAskedAbout(before) || !sameInput(before.Input(), c.Input()) {
			break
		}
		n++
	}
	return n
}

// wasAskedAbout reports whether a person was asked about a call because it was made too often.
func wasAskedAbout(c *task.Call) bool {
	f := c.Finished
	return f != nil && f.Outcome == "error" && f.Approval != nil && f.Approval.State == "denied"
}

// sameInput reports whether two inputs hold the same values, in any order.
func sameInput(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) != len(b) || len(a) > largestInput { // a model repeats itself in the same form, at most in another order
		return false
	}
	return sameJSON(a, b)
}

func sameJSON(a, b []byte) bool {
	if esjson.TypeOf(a) != esjson.TypeObject || esjson.TypeOf(b) != esjson.TypeObject {
		return bytes.Equal(a, b)
	}
	n := 0
	for key, x := range esjson.Members(a) {
		y, has := esjson.Get(b, key)
		if !has || !sameJSON(x, y) {
			return false
		}
		n++
	}
	for range esjson.Members(b) {
		n--
	}
	return n == 0
}

// stopRepetition closes a call that was made too often; done is false when the call may run.
func (b *batch) stopRepetition(ctx context.Context, c *task.Call, spec tool.Spec) (done bool, err error) {
	switch spec.Name {
	case controltool.QuestionName, controltool.CompletionName:
		return false, nil // a person answers between two of them
	}
	if b.agent.countRepeats(c) <= maxRepeats {
		return false, nil
	}
	v := callOutcome{
		state: "error", isError: true,
		text: rows.Failure(fmt.Sprintf("Tool call repetition limit reached for %s. Please try a different approach.", spec.Name)),
	}
	answer, answered, err := b.askAboutRepetition(ctx, c, spec)
	if err != nil {
		return true, err
	}
	b.wrong = b.wrong || !answered
	if answered {
		v.approval = &task.Approval{
			State:    "denied",
			By:       "user",
			Via:      answer.By,
			Feedback: answer.Text,
		}
		if answer.Text != "" {
			v.text += "\n\n" + rows.Guidance(answer.Text)
		}
	}
	return true, b.finishCall(ctx, c, v)
}

// askAboutRepetition asks the person about a repeated call; false when no person is there.
func (b *batch) askAboutRepetition(ctx context.Context, c *task.Call, spec tool.Spec) (Answer, bool, error) {
	a := b.agent
	for _, q := range a.state().Answered {
		if q.Call == c.ID && q.Kind == mistakeKind { // the answer was acknowledged, and the run ended before its use
			return Answer{Approve: q.Answer.Approve, Text: q.Answer.Text, By: q.Answer.By}, true, nil
		}
	}
	text := fmt.Sprintf("The model made the same call of %s %d times in a row, and it was not run again. "+
		"What should it do instead?", spec.Name, maxRepeats+1)
	return a.askAdvice(ctx, c.ID, text)
}

// askAdvice asks the person for words to a model that goes wrong; false when no person can answer right now. It never
// waits: an unattended run ends by itself. The next run closes an open question of this kind, since its words are for
// the model anyway.
func (a *Agent) askAdvice(ctx context.Context, call, text string) (Answer, bool, error) {
	if !a.User.Attended || a.User.Asker == nil {
		return Answer{}, false, nil
	}
	d := a.draft()
	row := d.addRow(rows.PlainAsk(a.stamp(), mistakeRow, &text))
	if call == "" {
		call = mistakeKind + ":" + questionID(row)
	}
	q := api.QuestionOpened{
		Question: questionID(row),
		Kind:     mistakeKind,
		Message:  row,
		Call:     call,
		Text:     text,
	}
	if _, err := a.openQuestionFor(ctx, d, q); err != nil {
		return Answer{}, false, err
	}
	answer, err := a.User.Asker.Ask(ctx, q)
	switch {
	case errors.Is(err, ErrUnattended):
		return Answer{}, false, a.commit(ctx, api.QuestionClosed{Question: q.Question, By: "roost", Reason: "superseded"})
	case err != nil:
		return Answer{}, false, err
	}
	d = a.draft()
	d.closeQuestion(q, answer)
	if err := d.commit(ctx); err != nil {
		return Answer{}, false, err
	}
	return answer, true, a.saveJournal(ctx) // the answer is input: saving acknowledges it
}

// checkMistakes asks what a model that went wrong too often should do instead. Without a person, or when the person
// refuses to continue, the run ends.
func (a *Agent) checkMistakes(ctx context.Context) (*Outcome, error) {
	if a.loop.mistakes < mistakeLimit || !a.turnIsOpen() {
		return nil, nil
	}
	end := &Outcome{State: "limit", Code: "mistakes", Reason: fmt.Sprintf("the model went wrong %d times in a row", a.loop.mistakes)}
	text := fmt.Sprintf("The model went wrong %d times in a row: it called tools wrongly, or none. What should it do?", a.loop.mistakes)
	answer, answered, err := a.askAdvice(ctx, "", text)
	if err != nil || !answered || answer.Approve != nil && !*answer.Approve {
		return end, err
	}
	a.loop.mistakes = 0
	if answer.Text == "" {
		return nil, nil
	}
	d := a.draft()
	d.addUserTurn(nil, []task.Piece{{Literal: string(rows.Text(rows.Guidance(answer.Text)))}})
	return nil, d.commit(ctx)
}
