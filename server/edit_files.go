package server

import (
	"net/http"
	"strings"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
)

// errReadOnly is what a server without an engine says to what needs one.
func errReadOnly() error {
	return problem(http.StatusServiceUnavailable, "read_only", "This server only reads", "it was started without what works on tasks", "roost serve")
}

func (s *Server) checkpoints(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, errReadOnly()
	}
	l, err := s.opt.Engine.Checkpoints(a.Context(), a.id)
	if l.Checkpoints == nil {
		l.Checkpoints = []engine.Checkpoint{}
	}
	return l, err
}

func (s *Server) diff(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, errReadOnly()
	}
	o := engine.DiffOptions{From: given(a.PathValue("c")), To: a.text["to"], Patch: !a.flag["stat"]}
	for _, path := range strings.Split(a.text["path"], "\n") {
		if path = strings.TrimSpace(path); path != "" {
			o.Paths = append(o.Paths, path)
		}
	}
	d, err := s.opt.Engine.DiffCheckpoints(a.Context(), a.id, o)
	if d.Files == nil {
		d.Files = []engine.FileDiff{}
	}
	return d, err
}

func (s *Server) saveCheckpoint(a *asked) (*reply, error) {
	ref, err := s.idle(a)
	if err != nil {
		return nil, err
	}
	// Asked again it saves nothing new: the files are as the newest checkpoint says.
	c, saved, finish, err := s.opt.Engine.SaveCheckpoint(a.lasting(), a.id)
	if err != nil {
		return nil, err
	}
	s.written(a.Context(), a, finish)
	if !saved {
		return &reply{status: http.StatusOK, doc: report.SavedCheckpoint{Task: ref.ID}}, nil
	}
	return &reply{doc: report.SavedCheckpoint{Task: ref.ID, Saved: true, Checkpoint: &c}}, nil
}

func (s *Server) restore(a *asked) (*reply, error) {
	var body report.NewRestore
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
	o := engine.RestoreOptions{To: given(a.PathValue("c")), Paths: body.Paths, OnConflict: rule, Workspace: body.Workspace, DryRun: body.DryRun}
	o.Planned = func(r engine.RestoreResult) error {
		if rule == "" && len(r.Files) == 0 && len(r.Conflicts) > 0 {
			return conflicts(ref.ID, r.Conflicts) // nobody said what becomes of them, and there is nothing else to do
		}
		return nil
	}
	r, finish, err := s.opt.Engine.Restore(ctx, a.id, o)
	if err != nil {
		return nil, err
	}
	s.written(ctx, a, finish)
	return &reply{doc: r}, nil
}
