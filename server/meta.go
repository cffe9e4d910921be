package server

import (
	"net/http"
	"strings"
)

type health struct {
	Status string `json:"status"`
}

func (s *Server) healthz(*asked) (any, error) { return health{"ok"}, nil }

// readiness says which checks hold, without paths: no token is asked for.
type readiness struct {
	Status string            `json:"status"` // ready, not ready
	Checks map[string]string `json:"checks"`
}

// readyz looks whether tasks can be read and kept, and whether the server means to go on.
// What an earlier server left is taken up beside: it says so, and nobody waits for it.
func (s *Server) readyz(w http.ResponseWriter, a *asked) *Problem {
	out := readiness{"ready", map[string]string{"store": "ok", "server": "ok", "recovery": s.opt.Recovery.String()}}
	if why := s.room(); why != "" {
		out.Status, out.Checks["store"] = "not ready", why
	}
	switch {
	case s.stopping.Load(), s.leaving.Load():
		out.Status, out.Checks["server"] = "not ready", "it is stopping"
	case s.drained():
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

// login turns the link's key into a cookie. A browser that looks ahead with HEAD does
// not use it up.
func (s *Server) login(w http.ResponseWriter, a *asked) *Problem {
	if a.Method != http.MethodGet {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if !s.door.use(a.text["key"]) {
		return problem(http.StatusUnauthorized, "login_used", "The log-in link does not work", "it was used, or belongs to another start of the server", "roost serve prints a new one at each start")
	}
	http.SetCookie(w, s.door.cookie(a.TLS != nil))
	if strings.Contains(strings.Join(a.Header.Values("Accept"), ","), jsonMedia) { // a program, which has no page to go to
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	http.Redirect(w, a.Request, "/v1/tasks", http.StatusSeeOther)
	return nil
}
