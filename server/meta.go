package server

import (
	"net/http"
	"strings"

	"github.com/roost-dev/roost/api"
)

type health struct {
	Status string `json:"status"`
}

func (s *Server) healthz(*asked) (any, error) { return health{"ok"}, nil }

// readiness is the result of the checks, without paths: the route needs no token.
type readiness struct {
	Status string            `json:"status"` // ready, not ready
	Checks map[string]string `json:"checks"`
}

// readyz checks whether tasks can be read and kept, and whether the server is stopping. It reports the recovery of an
// earlier server's runs and does not wait for it.
func (s *Server) readyz(w http.ResponseWriter, a *asked) *api.Problem {
	out := readiness{"ready", map[string]string{"store": "ok", "server": "ok", "recovery": s.opt.Recovery.String()}}
	if why := s.room(); why != "" {
		out.Status, out.Checks["store"] = "not ready", why
	}
	switch {
	case s.stopping.Load(), s.ending.Load():
		out.Status, out.Checks["server"] = "not ready", "it is stopping"
	case s.service.Draining():
		out.Status, out.Checks["server"] = "not ready", "it starts no more runs"
	}
	status := http.StatusOK
	if out.Status != "ready" {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	if err := respond(w, a.Request, status, out); err != nil {
		return s.problemOf(a.Context(), err, "")
	}
	return nil
}

func (s *Server) version(*asked) (any, error) { return s.opt.Version, nil }

func (s *Server) describe(*asked) (any, error) {
	doc, err := s.document()
	return raw(doc), err
}

// login turns the key of the link into a cookie. The HEAD request of a prefetching browser does not use the key up.
func (s *Server) login(w http.ResponseWriter, a *asked) *api.Problem {
	if a.Method != http.MethodGet {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if !s.door.use(a.text["key"]) {
		return problem(http.StatusUnauthorized, "login_used", "The log-in link does not work",
			"it was used, or belongs to another start of the server", "roost serve prints a new one at each start")
	}
	http.SetCookie(w, s.door.cookie(a.TLS != nil))
	if strings.Contains(strings.Join(a.Header.Values("Accept"), ","), jsonMedia) { // a program, which needs no redirect
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	http.Redirect(w, a.Request, "/v1/tasks", http.StatusSeeOther)
	return nil
}
