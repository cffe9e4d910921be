package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
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
		out.Cost = new(money.USD(r.OwnCostMicros))
	}
	return out
}

// LimitsOf are the limits that there are.
func LimitsOf(l api.RunLimits) (out api.Limits) {
	if l.MaxTurns > 0 {
		out.MaxTurns = &l.MaxTurns
	}
	if l.MaxCostMicros > 0 {
		out.MaxCost = new(money.USD(l.MaxCostMicros))
	}
	if l.MaxTaskMicros > 0 {
		out.MaxCostTask = new(money.USD(l.MaxTaskMicros))
	}
	span := func(ms int64) *string {
		if ms <= 0 {
			return nil
		}
		return new((time.Duration(ms) * time.Millisecond).String())
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

// AnsweredOf is the document of what an answer did.
func AnsweredOf(r engine.Replied) api.Answered {
	return api.Answered{
		Question: r.Asked.ID, Task: r.Asked.Ref.ID, Run: r.Run.ID,
		Approve: r.Answer.Approve, Text: r.Answer.Text, By: r.Answer.By,
	}
}

// UndoneOf is the document of what engine.Undo returns.
func UndoneOf(action api.Action, task api.TaskActions, files *api.RestoreResult, o actions.Options) api.Undone {
	out := api.Undone{TaskActions: task, DryRun: o.DryRun, Restore: files}
	if out.Undone = &action; o.Redo {
		out.Undone, out.Redone = nil, &action
	}
	return out
}

// CondensedOf is the document of what engine.Condense returns, or with dry engine.CondensePlan.
func CondensedOf(id string, c engine.Condensed, dry bool) api.Condensed {
	out := api.Condensed{
		Task: id, DryRun: dry, Condense: c.ID, Messages: c.Messages, Sent: c.Sent, Kept: c.Kept,
		Before: c.Before, After: c.After, Summary: c.Text,
	}
	if c.CostKnown {
		out.Cost = new(money.USD(c.CostMicro))
	}
	return out
}

// CommitsOf returns all commits of a task's journal, the oldest first. journal.ErrNotFound: the task has no journal.
func CommitsOf(ctx context.Context, v *store.View) ([]api.Commit, error) {
	if v.Log == nil {
		return nil, fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, journal.ErrNotFound)
	}
	var all []api.Commit
	for c, err := range v.Log.Read(ctx, 1) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			all = append(all, api.Commit{Seq: lost.Seq, Damage: lost.Reason})
		case err != nil:
			return nil, fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, err)
		default:
			all = append(all, api.Commit{Seq: c.Seq, Epoch: c.Epoch, At: api.Stamp(c.At), By: c.By, Events: c.Events})
		}
	}
	return all, nil
}

// ContextUseOf is the document of what engine.ContextAs returns.
func ContextUseOf(id string, u agent.ContextUse, who string) api.ContextUse {
	out := api.ContextUse{Task: id, Model: u.Model, Used: u.Used, Counted: u.Counted, Messages: u.Messages, Parts: []api.ContextPart{}}
	if u.Window > 0 {
		out.Window, out.Reply, out.Free = &u.Window, &u.Reply, &u.Free
	}
	for _, p := range u.Parts {
		out.Parts = append(out.Parts, api.ContextPart(p))
	}
	if who != "" {
		out.AsIf = &who
	}
	return out
}

// FamilyOf returns a task and all of its descendants, also empty ones: a subtask is saved before its first message.
func FamilyOf(ctx context.Context, s *store.Store, ref store.Ref) (api.Family, error) {
	got, err := s.List(ctx, store.Filter{Tree: true, Empty: true, Sort: "oldest"})
	if err != nil {
		return api.Family{}, err
	}
	at := slices.IndexFunc(got.Items, func(t api.Summary) bool {
		return t.ID == ref.ID && (t.Path == ref.Dir || slices.Contains(t.Copies, ref.Dir))
	})
	if at < 0 {
		return api.Family{}, fmt.Errorf("%w: %q", store.ErrNotFound, ref.ID)
	}
	to := at + 1
	for to < len(got.Items) && got.Depths[to] > got.Depths[at] {
		to++
	}
	return api.Family{Tasks: got.Items[at:to], Depths: got.Depths[at:to]}, nil
}
