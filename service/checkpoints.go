package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/report"
)

// Checkpoints are the states of files that a task changed, the oldest first.
func (s *Service) Checkpoints(ctx context.Context, id string) (api.Checkpoints, error) {
	if err := s.writable(); err != nil {
		return api.Checkpoints{}, err
	}
	l, err := s.engine.Checkpoints().List(ctx, id)
	if l.Checkpoints == nil {
		l.Checkpoints = []api.Checkpoint{}
	}
	return l, err
}

// DiffQuery names what is compared.
type DiffQuery struct {
	From  string   // a checkpoint; "" = the one before the newest change
	To    string   // another one, or now; "" = now
	Paths []string // only these files and folders; none = all
	Lines bool     // also the differences by lines
}

// Diff is what differs between a checkpoint of a task and another one, or now.
func (s *Service) Diff(ctx context.Context, id string, q DiffQuery) (api.Diff, error) {
	if err := s.writable(); err != nil {
		return api.Diff{}, err
	}
	d, err := s.engine.Checkpoints().Diff(ctx, id, checkpoints.DiffOptions{From: q.From, To: q.To, Paths: q.Paths, Patch: q.Lines})
	if d.Files == nil {
		d.Files = []api.FileDiff{}
	}
	return d, err
}

// SaveCheckpoint saves a checkpoint of the files as they are now. It saves none when nothing differs from the newest
// one, so a repeated call needs no key.
func (s *Service) SaveCheckpoint(ctx context.Context, c Call, id string) (api.SavedCheckpoint, error) {
	ref, err := s.idle(ctx, id)
	if err != nil {
		return api.SavedCheckpoint{}, err
	}
	made, saved, finish, err := s.engine.Checkpoints().Save(c.acting(ctx), id)
	if err != nil {
		return api.SavedCheckpoint{}, err
	}
	s.finish(ctx, id, finish)
	if !saved {
		return api.SavedCheckpoint{Task: ref.ID}, nil
	}
	return api.SavedCheckpoint{Task: ref.ID, Saved: true, Checkpoint: &made}, nil
}

// Restore puts the files that a task changed back as they were at a checkpoint; "" is the one before the newest change.
func (s *Service) Restore(ctx context.Context, c Call, id, checkpoint string, n api.NewRestore) (api.RestoreResult, error) {
	err := conflictRule(n.OnConflict)
	if err == nil {
		err = folder("/workspace", n.Workspace)
	}
	if err != nil {
		return api.RestoreResult{}, err
	}
	ref, err := s.idle(ctx, id)
	if err != nil {
		return api.RestoreResult{}, err
	}
	ctx = c.acting(ctx)
	if !n.DryRun {
		done, err := s.before(ctx, c, ref, id)
		if err != nil {
			return api.RestoreResult{}, err
		}
		if r := restoredBy(ref.ID, done); r != nil {
			return *r, nil
		}
	}
	r, finish, err := s.engine.Checkpoints().Restore(ctx, id, checkpoints.RestoreOptions{
		To:         checkpoint,
		Paths:      n.Paths,
		OnConflict: n.OnConflict,
		Workspace:  n.Workspace,
		DryRun:     n.DryRun,
		Planned: func(r api.RestoreResult) error {
			if err := agreed(n.Plan, r); err != nil {
				return err
			}
			if n.OnConflict == "" && len(r.Files) == 0 && len(r.Conflicts) > 0 {
				return report.ConflictProblem(r) // the call names no rule for conflicts, and nothing else would change
			}
			return nil
		},
	})
	if err != nil {
		return api.RestoreResult{}, err
	}
	s.finish(ctx, id, finish)
	if r.DryRun {
		r.Plan = planOf(r)
	}
	return r, nil
}

// planOf is a hash of what a restore would do.
func planOf(r api.RestoreResult) string {
	doc, _ := json.Marshal(struct { // strings and numbers: it cannot fail
		To                     int
		Files, Conflicts, Lost []api.RestoreItem
	}{r.To.Number, slices.Concat([]api.RestoreItem{}, r.Files), slices.Concat([]api.RestoreItem{}, r.Conflicts),
		slices.Concat([]api.RestoreItem{}, r.Lost)})
	return hash(string(doc))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// agreed refuses a restore that would not do what the plan of a dry run names. An empty plan accepts anything.
func agreed(plan string, now api.RestoreResult) error {
	if plan == "" || plan == planOf(now) {
		return nil
	}
	p := problem(http.StatusConflict, "changed_meanwhile", "The files changed since the dry run",
		"files changed while it was asked; nothing was changed", "the same request with dry_run, then with its new plan")
	p.Task, p.Retryable = now.ID, true
	return p
}
