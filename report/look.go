package report

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
)

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
