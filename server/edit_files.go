package server

import (
	"net/http"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

func (s *Server) diff(a *asked) (any, error) {
	q := service.DiffQuery{From: given(a.PathValue("c")), To: a.text["to"], Lines: !a.flag["stat"]}
	for _, path := range strings.Split(a.text["path"], "\n") {
		if path = strings.TrimSpace(path); path != "" {
			q.Paths = append(q.Paths, path)
		}
	}
	return s.service.Diff(a.Context(), a.id, q)
}

func (s *Server) saveCheckpoint(a *asked) (*reply, error) {
	doc, err := s.service.SaveCheckpoint(a.Context(), a.call(), a.id)
	if err == nil && !doc.Saved {
		return &reply{status: http.StatusOK, doc: doc}, nil
	}
	return &reply{doc: doc}, err
}

func (s *Server) restore(a *asked) (*reply, error) {
	var n api.NewRestore
	if err := a.read(&n); err != nil {
		return nil, err
	}
	doc, err := s.service.Restore(a.Context(), a.call(), a.id, given(a.PathValue("c")), n)
	return &reply{doc: doc}, err
}

// newest in a path means the checkpoint before the newest change.
const newest = "newest"

func given(c string) string {
	if c == newest {
		return ""
	}
	return c
}
