package server

import (
	"context"
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/service"
)

// streamRun answers with the events of a task behind a place, until one of its runs has
// ended; a run that waits for a person has not. Then stream.end says so. Who comes back
// with Last-Event-ID goes on there.
func (s *Server) streamRun(w http.ResponseWriter, a *asked, t service.Task, from events.Cursor, run string) *api.Problem {
	if last := a.Header.Get("Last-Event-ID"); last != "" {
		var ok bool
		if from, ok = events.ParseCursor(last); !ok {
			return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event such as 1.7-0")
		}
	}
	w.Header().Set("Roost-Run-Id", run)
	return s.streamTask(w, a, t, func(ctx context.Context, f *eventStream) (events.Cursor, error) {
		f.last, f.runEnded = service.EndsRun(run), s.over(run)
		return from, f.check(ctx, t, from)
	})
}

// over reports whether a run has ended, also one that was killed.
func (s *Server) over(run string) func() bool {
	return func() bool { return s.service.RunOver(context.Background(), run) }
}

// runEvents streams the events of a run alone.
func (s *Server) runEvents(w http.ResponseWriter, a *asked) *api.Problem {
	if s.service.ReadOnly() != nil {
		return problem(http.StatusServiceUnavailable, "read_only", "This server only reads", "it does not know runs", "GET /v1/tasks")
	}
	wants, p := a.wanted()
	if p != nil {
		return p
	}
	run := a.PathValue("rid")
	t, doc, err := s.service.RunTask(a.Context(), run)
	if err != nil {
		return s.problemOf(a.Context(), err, run)
	}
	from := events.Cursor{}
	if given := a.given(); given != "" {
		var ok bool
		if from, ok = events.ParseCursor(given); !ok {
			return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event such as 1.7-0")
		}
		seen, err := t.SawEnd(a.Context(), doc, from)
		if err != nil {
			return s.problemOf(a.Context(), err, run)
		}
		if seen {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNoContent) // it makes a browser's EventSource stop
			return nil
		}
	}
	w.Header().Set("Roost-Run-Id", run)
	return s.streamTask(w, a, t, func(ctx context.Context, f *eventStream) (events.Cursor, error) {
		f.last, f.runEnded = service.EndsRun(run), s.over(run)
		f.wants = func(i events.Item) bool { return i.Run == run && (wants == nil || wants(i)) }
		return from, f.check(ctx, t, from)
	})
}

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
