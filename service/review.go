package service

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
	"github.com/roost-dev/roost/view"
)

// todoRows bounds the newest messages among which the todo list is looked for.
const todoRows = 400

// CommitMessage suggests a message for a commit of what a task changed. No model is asked, and nothing is committed.
func (s *Service) CommitMessage(ctx context.Context, id string) (api.CommitMessage, error) {
	out, err := read(ctx, s, id, func(v *store.View) (view.CommitFacts, error) {
		f := view.CommitFacts{Title: v.Summary.Title}
		_, f.Prompts, _ = export.Prompts(ctx, v, promptsMost)
		f.Done = doneOf(ctx, v)
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

// doneOf are the entries of a task's newest todo list that are done.
func doneOf(ctx context.Context, v *store.View) (out []string) {
	p, err := partOf(v, task.UI, false)
	if err != nil {
		return nil
	}
	for i := p.size() - 1; i >= max(0, p.size()-todoRows) && ctx.Err() == nil; i-- {
		raw, _, err := p.read(v, i)
		if err != nil {
			continue
		}
		list := usage.LastTodos([][]byte{raw})
		if list == nil {
			continue
		}
		var todos []usage.Todo
		if json.Unmarshal(list, &todos) != nil {
			return nil
		}
		for _, one := range todos {
			if one.Status == "completed" {
				out = append(out, one.Content)
			}
		}
		return out
	}
	return nil
}
