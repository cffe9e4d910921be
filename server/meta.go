package server

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
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

// readyz looks whether tasks can be read and whether the server means to go on. A root
// that is not there yet is ready: it comes into being with the first task. What an earlier
// server left is taken up beside: it says so, and nobody waits for it.
func (s *Server) readyz(w http.ResponseWriter, a *asked) *Problem {
	out := readiness{"ready", map[string]string{"store": "ok", "server": "ok", "recovery": s.opt.Recovery.String()}}
	for _, dir := range []string{s.opt.Store.Root(), filepath.Join(s.opt.Store.Root(), "tasks")} {
		if why := unlistable(dir); why != "" {
			out.Status, out.Checks["store"] = "not ready", why
			break
		}
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

func unlistable(dir string) string {
	f, err := os.Open(dir)
	if err == nil {
		_, err = f.Readdirnames(1)
		f.Close()
	}
	switch {
	case err == nil, errors.Is(err, os.ErrNotExist), err.Error() == "EOF":
		return ""
	case errors.Is(err, fs.ErrPermission):
		return "it may not be read"
	}
	return "it cannot be read"
}

func (s *Server) version(*asked) (any, error) { return s.opt.Version, nil }

func (s *Server) describe(*asked) (any, error) { return raw(s.document), nil }

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
	http.Redirect(w, a.Request, "/v1/tasks", http.StatusSeeOther)
	return nil
}
