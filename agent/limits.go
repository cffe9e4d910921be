package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// mistakeLimit is how many turns in a row may go wrong, and refusalLimit how many replies in a row may ask only for
// what the policy refuses, before the run ends. Without the second one a model that accepts no refusal would spend
// money until a person notices.
const (
	mistakeLimit = 3
	refusalLimit = 3
)

// checkLimits ends a run that has used up its own limits.
func (a *Agent) checkLimits() *Outcome {
	l, run := a.Task.Settings.Limits, a.state().Run
	if run == nil {
		run = &task.Run{}
	}
	switch {
	case l.MaxTurns > 0 && run.Turns >= l.MaxTurns && a.turnIsOpen():
		return &Outcome{State: "limit", Code: "turns", Reason: fmt.Sprintf("the limit of %d turns is reached", l.MaxTurns)}
	case l.MaxCostMicros > 0 && run.CostMicros >= l.MaxCostMicros && a.turnIsOpen():
		spent, limit := float64(run.CostMicros)/1e6, float64(l.MaxCostMicros)/1e6
		return &Outcome{State: "limit", Code: "cost", Reason: fmt.Sprintf("the run spent $%.2f of the $%.2f that it may", spent, limit)}
	case a.loop.refusals >= refusalLimit:
		reason := fmt.Sprintf("%d replies in a row asked only for what the policy refuses", a.loop.refusals)
		return &Outcome{State: "denied", Code: "policy", Reason: reason}
	}
	return nil
}

// checkBudget ends the run when a limit that it shares with other tasks is used up.
func (a *Agent) checkBudget(ctx context.Context) (*Outcome, error) {
	if a.Host.Budget == nil || !a.turnIsOpen() {
		return nil, nil
	}
	code, reason, err := a.Host.Budget.Reached(ctx)
	if err != nil || code == "" {
		return nil, err
	}
	return &Outcome{State: "limit", Code: code, Reason: reason}, nil
}

// workedMS is how long the run has worked, in milliseconds; 0 when that is not counted.
func (a *Agent) workedMS() int64 {
	if a.Host.Budget == nil {
		return 0
	}
	return a.Host.Budget.WorkedMS()
}

// checkAskLimits asks the person whether to continue when the limits of continuing unasked are reached. Requests and
// cost are counted in the journal, from the last yes on: neither a kill nor a new run restarts the count.
func (a *Agent) checkAskLimits(ctx context.Context) (*Outcome, error) {
	if a.loop.halt {
		return refusedLimit(), nil
	}
	l := a.Task.Settings.Limits
	if l.AskRequests <= 0 && l.AskCostMicros <= 0 || !a.turnIsOpen() {
		return nil, nil
	}
	s := a.state()
	since := a.lastAgreedRow()
	requests, micros := 0, int64(0)
	for _, m := range s.UI() {
		if m.ID <= since || m.Kind() != "say:api_req_started" {
			continue
		}
		requests++
		if spent, ok := m.Spent(); ok {
			var t usage.Tokens
			spent.AddTo(&t)
			micros += int64(money.FromFloat(t.Cost))
		}
	}
	row := approval.Reached(l.AskRequests, l.AskCostMicros, requests, micros)
	if row == "" {
		return nil, nil
	}
	d := a.draft()
	q := a.limitQuestion(d, row, requests, micros)
	out, err := a.openQuestionFor(ctx, d, q)
	if out != nil || err != nil {
		return out, err
	}
	answer, err := a.User.Asker.Ask(ctx, q)
	if err != nil {
		if errors.Is(err, ErrUnattended) {
			return waitingOutcome(q), nil
		}
		return nil, err
	}
	if answer.Approve == nil { // the answer came from a client that knows only words
		answer, _ = inputAnswer(q, Input{Text: answer.Text})
	}
	d = a.draft()
	d.closeQuestion(q, answer)
	if err := d.commit(ctx); err != nil {
		return nil, err
	}
	if err := a.saveJournal(ctx); err != nil {
		return nil, err
	}
	if answer.Approve == nil || !*answer.Approve {
		return refusedLimit(), nil
	}
	return nil, nil
}

func refusedLimit() *Outcome {
	return &Outcome{State: "limit", Code: "asked", Reason: "a person was asked whether to continue, and refused"}
}

// lastAgreedRow is the row of the last question of this kind that was answered with yes.
func (a *Agent) lastAgreedRow() (row uint64) {
	for _, q := range a.state().Answered {
		if q.Kind == limitKind && q.Answer.Approve != nil && *q.Answer.Approve {
			row = max(row, limitRowOf(q.Call))
		}
	}
	return row
}

func limitRowOf(call string) uint64 {
	row, _ := strconv.ParseUint(strings.TrimPrefix(call, limitCall), 10, 64)
	return row
}

// limitQuestion is the open question, or a new one with its row.
func (a *Agent) limitQuestion(d *draft, row string, requests int, micros int64) api.QuestionOpened {
	for _, q := range a.state().Questions {
		if q.Kind == limitKind {
			return q.QuestionOpened
		}
	}
	id := d.addRow(rows.PlainAsk(a.stamp(), limitRow, &row))
	text := fmt.Sprintf("%d requests went to the model", requests)
	if requests == 1 {
		text = "One request went to the model"
	}
	text += fmt.Sprintf(" and cost $%.2f since the last permission to continue. Continue?", float64(micros)/1e6)
	return api.QuestionOpened{
		Question: questionID(id),
		Kind:     limitKind,
		Message:  id,
		Call:     limitCall + strconv.FormatUint(id, 10),
		Text:     text,
	}
}
