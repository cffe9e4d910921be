package server

import (
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/service"
)

func followedOf(f service.Follow) *idempotency.Followed {
	if f.Run == "" {
		return nil
	}
	out := &idempotency.Followed{Task: f.Task, Run: f.Run}
	if !f.From.IsStart() {
		out.From = f.From.String()
	}
	return out
}

// followed streams the events of a run, the same ones to a client that repeats the request.
func (s *Server) followed(w http.ResponseWriter, a *asked, f idempotency.Followed) *api.Problem {
	t, err := s.service.FindOwn(a.Context(), f.Task)
	if err != nil {
		return s.problemFor(a, err)
	}
	at, _ := events.ParseCursor(f.From)
	return s.streamRun(w, a, t, at, f.Run)
}
