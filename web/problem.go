package web

import (
	"net/http"

	"github.com/roost-dev/roost/api"
)

// trouble is a refusal as its page shows it.
type trouble struct {
	Problem *api.Problem
	Login   bool // the browser is not logged in
	Used    bool // by a log-in link that does not work
}

// Refuse answers with a page that says why there is no other one, and what to do.
func (w *Web) Refuse(out http.ResponseWriter, r *http.Request, p *api.Problem) {
	t := trouble{Problem: p, Login: p.Status == http.StatusUnauthorized, Used: p.Code == "login_used"}
	kind, title := "problem", p.Title
	if t.Login {
		kind, title = "login", "Log in"
	}
	if p.Allow != "" {
		out.Header().Set("Allow", p.Allow)
	}
	w.send(out, r, &page{Kind: kind, Title: title, Status: p.Status, Data: t})
}
