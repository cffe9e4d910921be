package server

import (
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/service"
)

// followed is a run whose events a client wants instead of a document.
type followed struct {
	Task string `json:"task"`
	Run  string `json:"run"`
	From string `json:"from,omitempty"` // the id of the event that it begins behind; "" = the start
}

func followedOf(f service.Follow) *followed {
	if f.Run == "" {
		return nil
	}
	out := &followed{Task: f.Task, Run: f.Run}
	if !f.From.IsStart() {
		out.From = f.From.String()
	}
	return out
}

// followed streams the events of a run, the same ones to a client that repeats the request.
func (s *Server) followed(w http.ResponseWriter, a *asked, f followed) *api.Problem {
	t, err := s.service.FindOwn(a.Context(), f.Task)
	if err != nil {
		return s.problemFor(a, err)
	}
	at, _ := events.ParseCursor(f.From)
	return s.streamRun(w, a, t, at, f.Run)
}
