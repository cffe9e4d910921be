package server

import (
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/server/metrics"
)

// audit logs what a request changed, the door that it came through, and its origin. It never logs text of users: of an
// answer it logs the decision.
func (s *Server) audit(a *asked, doc any) {
	about := []any{"method", a.Method, "route", a.route.path, "task", a.id}
	words := "changed"
	switch done := doc.(type) {
	case api.Answered:
		words = "answered"
		about = append(about[:len(about)-1], done.Task, "run", done.Run, "question", done.Question, "decision", metrics.Decision(done.Approve))
	case api.Sent:
		about = append(about, "run", done.Run, "delivered", done.Delivered)
		if done.Question != "" {
			words = "answered"
			about = append(about, "question", done.Question, "decision", "answered")
		}
	case api.Run:
		about = append(about[:len(about)-1], done.Task, "run", done.ID, "state", done.State)
	}
	about = append(about, "door", entrance(a.Request), "from", addressOf(a.Request), "request_id", idOf(a.Request))
	s.opt.Log.Info(words, about...)
}
