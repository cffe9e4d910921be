package service

import (
	"context"
	"errors"
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/report"
)

// Context is what the next request of a task is made of, in tokens. The workspace is for a task that records none.
func (s *Service) Context(ctx context.Context, id, workspace string) (api.ContextUse, error) {
	if s.engine == nil {
		return api.ContextUse{}, problem(http.StatusServiceUnavailable, "read_only", "This server runs no tasks",
			"a server that runs tasks knows what would be sent", "roost show "+id+" --context")
	}
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return api.ContextUse{}, err
	}
	req := engine.Request{Task: ref.Source + ":" + ref.ID, Choice: setup.Choice{Workspace: workspace}}
	use, who, err := s.engine.ContextAs(ctx, req)
	if err != nil {
		return api.ContextUse{}, err
	}
	out := report.ContextUseOf(ref.ID, use, who)
	if who == "" {
		return out, nil
	}
	var unknown *setup.UnknownProfileError
	if _, err := s.engine.Context(ctx, req); errors.As(err, &unknown) {
		out.Unknown = &api.UnknownProfile{Name: unknown.Profile, Source: unknown.Source}
	}
	return out, nil
}
