package report

import (
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/task"
)

// RunOf is a run's document.
func RunOf(r engine.RunInfo) api.Run {
	out := api.Run{
		ID: r.ID, Task: r.Ref.ID, State: r.State, Outcome: r.Outcome, Code: r.Code, Reason: r.Reason, Question: r.Question,
		Position: r.Position, Here: r.Here, Turns: r.OwnTurns,
		QueuedAt: api.Date(r.Queued), StartedAt: api.Date(r.Started), EndedAt: api.Date(r.Ended),
		Mode: r.Settings.Mode, Provider: r.Settings.Provider, Model: r.Settings.Model, Limits: LimitsOf(r.Settings.Limits),
		Resume: "roost resume " + r.Ref.ID,
	}
	if !r.CostUnknown {
		cost := money.USD(r.OwnCostMicros)
		out.Cost = &cost
	}
	return out
}

// LimitsOf are the limits that there are.
func LimitsOf(l api.RunLimits) (out api.Limits) {
	if l.MaxTurns > 0 {
		out.MaxTurns = &l.MaxTurns
	}
	if l.MaxCostMicros > 0 {
		cost := money.USD(l.MaxCostMicros)
		out.MaxCost = &cost
	}
	if l.MaxTaskMicros > 0 {
		cost := money.USD(l.MaxTaskMicros)
		out.MaxCostTask = &cost
	}
	span := func(ms int64) *string {
		if ms <= 0 {
			return nil
		}
		text := (time.Duration(ms) * time.Millisecond).String()
		return &text
	}
	out.IdleTimeout, out.TotalTimeout = span(l.IdleTimeoutMS), span(l.TotalTimeoutMS)
	return out
}

// QuestionOf is an open question's document.
func QuestionOf(q engine.Asked) api.Question {
	out := api.Question{
		ID: q.ID, Task: q.Ref.ID, Title: q.Task.Title, Run: q.Run, Event: q.From.String(), Here: q.Here, QuestionOpened: q.QuestionOpened,
	}
	if at := api.Date(q.At); at != nil {
		out.At = *at
	}
	return out
}

// QueuedOf is the document of words that wait.
func QueuedOf(q task.InputQueued) api.Queued {
	out := api.Queued{ID: q.Input, Text: q.Text, Images: q.Images}
	if out.Images == nil {
		out.Images = []string{}
	}
	return out
}

// SentOf is the document of what happened to a message.
func SentOf(s engine.Sent) api.Sent {
	return api.Sent{Delivered: s.How, Task: s.Ref.ID, Run: s.Run, Question: s.Question, Input: s.Input}
}

// AnsweredOf is the document of what an answer did.
func AnsweredOf(r engine.Replied) api.Answered {
	return api.Answered{
		Question: r.Asked.ID, Task: r.Asked.Ref.ID, Run: r.Run.ID,
		Approve: r.Answer.Approve, Text: r.Answer.Text, By: r.Answer.By,
	}
}
