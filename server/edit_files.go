package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/report"
)

// errReadOnly is the problem of a request that needs an engine, at a server without one.
func errReadOnly() error {
	return problem(http.StatusServiceUnavailable, "read_only", "This server only reads",
		"it was started without what works on tasks", "roost serve")
}

func (s *Server) checkpoints(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, errReadOnly()
	}
	l, err := s.opt.Engine.Checkpoints().List(a.Context(), a.id)
	if l.Checkpoints == nil {
		l.Checkpoints = []api.Checkpoint{}
	}
	return l, err
}

func (s *Server) diff(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, errReadOnly()
	}
	o := checkpoints.DiffOptions{From: given(a.PathValue("c")), To: a.text["to"], Patch: !a.flag["stat"]}
	for _, path := range strings.Split(a.text["path"], "\n") {
		if path = strings.TrimSpace(path); path != "" {
			o.Paths = append(o.Paths, path)
		}
	}
	d, err := s.opt.Engine.Checkpoints().Diff(a.Context(), a.id, o)
	if d.Files == nil {
		d.Files = []api.FileDiff{}
	}
	return d, err
}

func (s *Server) saveCheckpoint(a *asked) (*reply, error) {
	ref, err := s.idle(a)
	if err != nil {
		return nil, err
	}
	// A repeat saves nothing: the files equal the newest checkpoint.
	c, saved, finish, err := s.opt.Engine.Checkpoints().Save(a.lasting(), a.id)
	if err != nil {
		return nil, err
	}
	s.written(a.Context(), a, finish)
	if !saved {
		return &reply{status: http.StatusOK, doc: api.SavedCheckpoint{Task: ref.ID}}, nil
	}
	return &reply{doc: api.SavedCheckpoint{Task: ref.ID, Saved: true, Checkpoint: &c}}, nil
}

func (s *Server) restore(a *asked) (*reply, error) {
	var body api.NewRestore
	if err := a.read(&body); err != nil {
		return nil, err
	}
	rule, err := conflictRule(body.OnConflict)
	if err == nil {
		err = folder("/workspace", body.Workspace)
	}
	if err != nil {
		return nil, err
	}
	ref, err := s.idle(a)
	if err != nil {
		return nil, err
	}
	ctx := a.lasting()
	if !body.DryRun {
		done, err := s.before(ctx, a, ref)
		if err != nil {
			return nil, err
		}
		if r := restoredBy(ref.ID, done); r != nil {
			return &reply{doc: r}, nil
		}
	}
	o := checkpoints.RestoreOptions{To: given(a.PathValue("c")), Paths: body.Paths, OnConflict: rule,
		Workspace: body.Workspace, DryRun: body.DryRun}
	o.Planned = func(r api.RestoreResult) error {
		if err := agreed(body.Plan, r); err != nil {
			return err
		}
		if rule == "" && len(r.Files) == 0 && len(r.Conflicts) > 0 {
			return report.ConflictProblem(r) // the request names no rule for conflicts, and nothing else would change
		}
		return nil
	}
	r, finish, err := s.opt.Engine.Checkpoints().Restore(ctx, a.id, o)
	if err != nil {
		return nil, err
	}
	s.written(ctx, a, finish)
	if r.DryRun {
		r.Plan = planOf(r)
	}
	return &reply{doc: r}, nil
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
