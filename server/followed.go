package server

import (
	"errors"
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
)

// followed is a run whose events a client wants instead of a document.
type followed struct {
	Task string `json:"task"`
	Run  string `json:"run"`
	From string `json:"from,omitempty"` // the id of the event that it begins behind; "" = the start
}

func followedOf(task, run string, from events.Cursor) *followed {
	f := &followed{Task: task, Run: run}
	if !from.IsStart() {
		f.From = from.String()
	}
	return f
}

// followed streams the events of a run, the same ones to who repeats the request.
func (s *Server) followed(w http.ResponseWriter, a *asked, f followed) *api.Problem {
	ref, err := s.opt.Store.Find(a.Context(), store.OwnSource+":"+f.Task)
	if errors.Is(err, store.ErrNotFound) { // of another tool, and continued in its place
		ref, err = s.opt.Store.Find(a.Context(), f.Task)
	}
	if err != nil {
		return s.problemFor(a, err)
	}
	at, _ := events.ParseCursor(f.From)
	return s.streamRun(w, a, ref, at, f.Run)
}
