package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/roost-dev/roost/api"
)

func problem(status int, code, title, detail string, suggestions ...string) *api.Problem {
	return api.NewProblem(status, code, title, detail, suggestions...)
}

// problemOf is the problem of an error about a task.
func (s *Server) problemOf(ctx context.Context, err error, id string) *api.Problem {
	return s.service.Problem(ctx, err, id)
}

// fail writes a problem.
func fail(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	out := *p
	out.Type, out.Instance, out.Request = "about:blank#"+p.Code, r.URL.EscapedPath(), w.Header().Get(requestID)
	if out.Suggestions == nil {
		out.Suggestions = []string{}
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.After != "" {
		h.Set("Retry-After", p.After)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="roost"`)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(out) // it fails when the client has disconnected
	}
}
