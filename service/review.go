package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/usage"
	"github.com/roost-dev/roost/view"
)

// todoRows is how many of the newest messages are searched for the todo list.
const todoRows = 400

// CommitMessage suggests a message for a git commit of the files that a task changed. It asks no model and commits nothing.
func (s *Service) CommitMessage(ctx context.Context, id string) (api.CommitMessage, error) {
	out, err := read(ctx, s, id, func(v *store.View) (view.CommitFacts, error) {
		f := view.CommitFacts{Title: v.Summary.Title}
		_, f.Prompts, _ = export.Prompts(ctx, v, promptsMost)
		f.Done = api.Some(todosOf(ctx, v), func(one usage.Todo) (string, bool) { return one.Content, one.Status == usage.Completed })
		return f, ctx.Err()
	})
	if err != nil {
		return api.CommitMessage{}, err
	}
	d, err := s.Diff(ctx, id, DiffQuery{From: "0"})
	if err != nil && !errors.Is(err, checkpoints.ErrNone) {
		return api.CommitMessage{}, err
	}
	out.Files = d.Files
	return api.CommitMessage{Task: d.ID, Text: view.CommitMessage(out)}, nil
}

// todosOf returns a task's newest todo list, if its newest messages hold one.
func todosOf(ctx context.Context, v *store.View) (out []usage.Todo) {
	p, err := partOf(v, LinesOptions{})
	for i := p.size() - 1; err == nil && out == nil && i >= max(0, p.size()-todoRows) && ctx.Err() == nil; i-- {
		if p.isMade || p.list[i].Kind() == "ask:tool" || p.list[i].Kind() == "say:user_edit_todos" {
			raw, _, _ := p.read(v, i)                                // what cannot be read holds no list
			_ = json.Unmarshal(usage.LastTodos([][]byte{raw}), &out) // nor does most of what can
		}
	}
	return out
}

// comparedRows bounds the messages of each side that a comparison lists.
const comparedRows = 100

// Compare compares a task with another one, or with a branch of its own: it shows what each side did after the last message
// that both have.
func (s *Service) Compare(ctx context.Context, id, with string) (out api.Comparison, err error) {
	if with == "" {
		return out, api.Invalid(api.Wrong{Parameter: "with", Detail: "name another task, or a branch of this one"})
	}
	ref, err := s.store.FindLatest(ctx, id)
	if err != nil {
		return out, err
	}
	return store.FromView(ctx, s.store, ref, func(v *store.View) (out api.Comparison, err error) {
		a, err := history.SideOf(v, "")
		if err != nil {
			return out, err
		}
		if b, err := history.SideOf(v, with); err == nil {
			return s.compare(ctx, a, b)
		}
		other, err := s.store.FindLatest(ctx, with)
		if err != nil {
			return out, s.Problem(ctx, err, with)
		}
		return store.FromView(ctx, s.store, other, func(v *store.View) (api.Comparison, error) {
			b, err := history.SideOf(v, "")
			if err != nil {
				return out, err
			}
			return s.compare(ctx, a, b)
		})
	})
}

func (s *Service) compare(ctx context.Context, a, b *history.Side) (out api.Comparison, err error) {
	history.Compare(a, b)
	out.Common, out.Files = a.Common(), []api.FileDiff{}
	stretch := func(x *history.Side) checkpoints.Stretch {
		from, to := x.Ends()
		return checkpoints.Stretch{Ref: x.View.Ref, State: x.View.State, From: from, To: to}
	}
	p, q, between, why, err := s.engine.Checkpoints().Compare(ctx, stretch(a), stretch(b))
	if err != nil {
		return out, err
	}
	if out.Files = append(out.Files, between...); why != nil {
		out.Why = why.Error()
	}
	for _, one := range []struct {
		*history.Side
		did checkpoints.Stretched
	}{{a, p}, {b, q}} {
		side := api.ComparedSide{Task: one.View.Summary, Branch: one.Branch, Messages: one.Counts(), Files: []api.FileDiff{}}
		side.Rows, side.Left = one.Rows(comparedRows)
		side.Files = append(side.Files, one.did.Files...)
		if one.did.End > 0 {
			side.Checkpoint = fmt.Sprintf("c%d", one.did.End)
		}
		out.Sides = append(out.Sides, side)
	}
	return out, ctx.Err()
}
