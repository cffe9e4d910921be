package service

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/api"

	"github.com/roost-dev/roost/store/actions"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// When a kill kept an answer from a caller, the journal shows what the call did: the same call, made again, gets that
// answer and changes nothing.

// before returns the commits of an earlier attempt of a call, after it has finished an interrupted restore.
func (s *Service) before(ctx context.Context, c Call, ref store.Ref, id string) ([]journal.Commit, error) {
	if !c.Again || c.Key == "" {
		return nil, nil
	}
	if _, err := s.engine.Checkpoints().Finish(ctx, id); err != nil {
		return nil, err
	}
	return s.store.CommitsBy(ctx, ref, c.Key, s.since())
}

// eventsOf are the events of commits, in order.
func eventsOf(commits []journal.Commit) (out []task.Event) {
	for _, c := range commits {
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				out = append(out, e)
			}
		}
	}
	return out
}

// restoredBy is the restore in commits; nil when they hold no finished one.
func restoredBy(id string, commits []journal.Commit) *api.RestoreResult {
	r := noRestore(id)
	for _, e := range eventsOf(commits) {
		switch e := e.(type) {
		case task.RestoreBegun:
			r.To.Number, r.Safety = e.To, e.Safety
			for _, f := range e.Files {
				r.Files = append(r.Files, api.RestoreItem{Path: f.Path, Change: changeOf(f), How: f.How, Size: f.To.Size})
				r.Bytes += f.To.Size
			}
			for _, path := range e.Kept {
				r.Conflicts = append(r.Conflicts, api.RestoreItem{Path: path})
			}
		case task.RestoreEnded:
			if r.Outcome = e.Outcome; e.Left != nil {
				r.Left = e.Left
			}
		}
	}
	if r.Outcome != task.RestoreDone {
		return nil // it was rolled back, and changed nothing
	}
	return r
}

// noRestore is a restore that found nothing to do.
func noRestore(id string) *api.RestoreResult {
	return &api.RestoreResult{ID: id, Files: []api.RestoreItem{}, Conflicts: []api.RestoreItem{}, Lost: []api.RestoreItem{},
		Left: []string{}, Outcome: "nothing"}
}

func changeOf(f task.RestoreFile) string {
	switch {
	case f.From.Kind == api.KindGone:
		return "added"
	case f.To.Kind == api.KindGone:
		return "deleted"
	}
	return "changed"
}

// condensedBy is the summary in commits.
func condensedBy(id string, commits []journal.Commit) (api.Condensed, bool) {
	for _, e := range eventsOf(commits) {
		if c, ok := e.(task.HistoryCondensed); ok {
			return api.Condensed{Task: id, Condense: c.Condense, Messages: c.Messages, Before: c.Before, After: c.After}, true
		}
	}
	return api.Condensed{}, false
}

// undoneBy is the action that commits undid or redid.
func (s *Service) undoneBy(ctx context.Context, id string, o actions.Options, commits []journal.Commit) (api.Undone, bool, error) {
	var seq uint64
	for _, c := range commits {
		for _, raw := range c.Events {
			var e struct{ Undoes, Redoes uint64 }
			if json.Unmarshal(raw, &e) == nil {
				seq = max(seq, e.Undoes, e.Redoes)
			}
		}
	}
	if seq == 0 {
		return api.Undone{}, false, nil
	}
	now, err := actions.Find(ctx, s.store, id)
	if err != nil {
		return api.Undone{}, false, err
	}
	action := api.Action{ID: fmt.Sprintf("journal-%d", seq)}
	for _, d := range append(append([]api.Action{}, now.Redo...), now.Undo...) {
		if d.ID == action.ID {
			action = d
		}
	}
	return report.UndoneOf(action, now, restoredBy(now.Task.ID, commits), o), true, nil
}
